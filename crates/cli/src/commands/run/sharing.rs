//! Which virtual processors share memory, as a recording in the format of `sidestep gang watch --save`.

use sidestep_gang::{CoscheduledSets, SharingMatrix, TaskId};
use sidestep_gang_linux::process::ThreadName;
use sidestep_gang_linux::recording::Recording;
use sidestep_gang_linux::watch::{WatchedThread, Way};
use sidestep_hypervisor::description::Description;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{Host, Report};

/// What was found on a host: virtual machines are programs, and their virtual processors threads in their order.
pub fn recording(host: &Host, report: &Report) -> Recording {
    let mut threads = Vec::new();
    let mut sets = Vec::new();
    let mut events = Vec::new();
    for (index, machine) in report.machines.iter().enumerate() {
        let first = threads.len();
        let (count, runs) = {
            let machine = locked(&host.machines()[index]);
            (machine.processors().len(), machine.exit_code().is_none())
        };
        threads.extend((0..count).map(|place| WatchedThread {
            task: TaskId::new(first + place),
            name: ThreadName {
                process: index as i32,
                thread: (first + place) as i32,
                start: 0,
            },
            program: machine.name.clone(),
            place,
            is_alive: runs,
        }));
        let moved = |task: TaskId| TaskId::new(first + task.index());
        let own = host.sets_of(index).sets().iter();
        sets.extend(own.map(|set| set.iter().copied().map(moved).collect::<Vec<_>>()));
        let alone: Vec<TaskId> = (0..count).map(TaskId::new).collect();
        let alone = alone
            .into_iter()
            .filter(|task| host.sets_of(index).set_of(*task).is_none());
        sets.extend(alone.map(|task| vec![moved(task)]));
        if let Some(detection) = &machine.detection {
            let pairs =
                (0..count).flat_map(|right| (0..right).map(move |left| [left, right].map(TaskId::new)));
            events.extend(pairs.map(|[left, right]| {
                let count = detection.matrix.events(left, right);
                (moved(left), moved(right), count)
            }));
        }
    }
    let mut matrix = SharingMatrix::new(threads.len());
    for (left, right, count) in events {
        matrix.record(left, right, count);
    }
    let sets = CoscheduledSets::new(sets).expect("virtual machines and their sets are disjoint");
    Recording::new(way(), threads, matrix, sets)
}

/// How the monitor sees it.
fn way() -> Way {
    Way {
        faults: "present bits taken away from the shadow translations of virtual processors".to_owned(),
        rate: "the table `[detection]` of the host".to_owned(),
        misses: vec![
            "code".to_owned(),
            "pages smaller than their region's preferred size, unless they miss in the TLB".to_owned(),
        ],
        amounts: "not estimated".to_owned(),
    }
}

/// Refuses a host that finds out nothing.
pub fn check(name: &str, description: &Description) -> Result<(), String> {
    match description.detection {
        Some(_) => Ok(()),
        None => Err(format!(
            "{name}: --matrix: the host finds out nothing of sharing; expected a table `[detection]` in it"
        )),
    }
}
