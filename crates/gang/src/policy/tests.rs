//! What each policy promises, for any tasks, runnable or not, at any time.

use std::collections::BTreeSet;

use super::*;
use crate::sets::CoscheduledSets;
use crate::topology::Placement;
use proptest::prelude::*;

const SLOT_NS: u64 = 1000;

fn view(program: u32, runnable: bool) -> TaskView {
    TaskView {
        program: ProgramId(program),
        runnable,
        signalled: false,
        served_ns: 0,
        granted_ns: None,
        progress_ns: 0,
        core: None,
        home: CoreId(0),
    }
}

fn sets(sets: &[&[u32]]) -> CoscheduledSets {
    let sets = sets
        .iter()
        .map(|set| set.iter().map(|&task| TaskId(task)).collect())
        .collect();
    CoscheduledSets::new(sets).expect("a partition")
}

fn coscheduled(sets: CoscheduledSets, idle: IdleCores) -> Coscheduled {
    Coscheduled {
        sets,
        slot_ns: SLOT_NS,
        idle,
        placement: Placement::FirstFit,
    }
}

/// Asks for slot after slot as a driver does, and returns who ran in each.
fn slots(policy: &dyn Policy, tasks: &mut [TaskView], cores: usize, count: u64) -> Vec<Vec<u32>> {
    let topology = Topology::flat(cores);
    let mut history = Vec::new();
    for slot in 0..count {
        let moment = Moment {
            now_ns: slot * SLOT_NS,
            tasks,
            topology: &topology,
        };
        let assignment = policy.assign(&moment);
        let mut ran: Vec<u32> = assignment
            .grants
            .iter()
            .filter_map(|grant| grant.running())
            .map(|task| task.0)
            .collect();
        ran.sort_unstable();
        history.push(ran);
        for grant in assignment.grants {
            if let Grant::Run(task) | Grant::Reserved(task) = grant {
                tasks[task.index()].served_ns = (slot + 1) * SLOT_NS;
                tasks[task.index()].progress_ns += SLOT_NS;
            }
        }
    }
    history
}

#[test]
fn full_coscheduling_leaves_the_cores_that_a_whole_machine_does_not_use() {
    let mut tasks = vec![view(0, true), view(0, true), view(1, true)];
    let policy = coscheduled(sets(&[&[0, 1], &[2]]), IdleCores::Kept);
    assert_eq!(
        slots(&policy, &mut tasks, 2, 4),
        [vec![0, 1], vec![2], vec![0, 1], vec![2]]
    );
}

#[test]
fn partial_coscheduling_gives_three_halves_two_thirds_each() {
    let mut tasks = vec![view(0, true), view(0, true), view(1, true)];
    let policy = coscheduled(sets(&[&[0], &[1], &[2]]), IdleCores::Kept);
    let history = slots(&policy, &mut tasks, 2, 6);
    for task in 0..3 {
        assert_eq!(history.iter().filter(|ran| ran.contains(&task)).count(), 4);
    }
}

#[test]
fn a_blocked_member_keeps_its_core_unless_others_fill_it() {
    let tasks = [view(0, true), view(0, false), view(1, true)];
    let topology = Topology::flat(2);
    let moment = Moment {
        now_ns: 0,
        tasks: &tasks,
        topology: &topology,
    };
    let grants = |idle| coscheduled(sets(&[&[0, 1], &[2]]), idle).assign(&moment).grants;
    assert_eq!(
        grants(IdleCores::Kept),
        [Grant::Run(TaskId(0)), Grant::Reserved(TaskId(1))]
    );
    assert_eq!(
        grants(IdleCores::Filled),
        [Grant::Run(TaskId(0)), Grant::Fill(TaskId(2))]
    );
}

#[test]
fn a_set_larger_than_the_host_runs_in_turns() {
    let mut tasks = vec![view(0, true); 5];
    let policy = coscheduled(sets(&[&[0, 1, 2, 3, 4]]), IdleCores::Kept);
    let history = slots(&policy, &mut tasks, 2, 3);
    let ran: BTreeSet<u32> = history.iter().flatten().copied().collect();
    assert_eq!(ran.len(), 5, "every part had its turn: {history:?}");
}

#[test]
fn a_relaxed_leader_is_stopped_and_the_slowest_is_not() {
    let mut tasks = [view(0, true), view(0, true), view(0, false)];
    tasks[0].progress_ns = 500;
    let topology = Topology::flat(4);
    let moment = Moment {
        now_ns: 0,
        tasks: &tasks,
        topology: &topology,
    };
    let running = |skew_max_ns| {
        let policy = Relaxed {
            slot_ns: SLOT_NS,
            skew_max_ns,
            placement: Placement::FirstFit,
        };
        let assignment = policy.assign(&moment);
        let tasks: BTreeSet<u32> = assignment
            .grants
            .iter()
            .filter_map(|grant| grant.running())
            .map(|task| task.0)
            .collect();
        (tasks, assignment.until_ns)
    };
    assert_eq!(
        running(500),
        ([1].into(), 500),
        "the leader is stopped until the other has caught up"
    );
    assert_eq!(
        running(700),
        ([0, 1].into(), 200),
        "asked again before the leader can exceed the skew"
    );
}

#[test]
fn a_task_with_an_interrupt_goes_first_in_every_second_slot_and_leaves_the_others_theirs() {
    let mut tasks = vec![view(0, true), view(1, true), view(2, true)];
    tasks[2].signalled = true;
    let topology = Topology::flat(1);
    let free = Free { slot_ns: SLOT_NS };
    let at = |tasks: &[TaskView], now_ns| {
        let moment = Moment {
            now_ns,
            tasks,
            topology: &topology,
        };
        free.assign(&moment).grants[0].running()
    };
    let turns: Vec<_> = (0..6).map(|slot| at(&tasks, slot * SLOT_NS)).collect();
    let [first, second, third] = [0, 1, 2].map(|task| Some(TaskId(task)));
    assert_eq!(turns, [third, second, third, first, third, second]);
    // Of two the longest waiting is first, and keeps the core for a slot.
    tasks[1].signalled = true;
    tasks[2].served_ns = 50;
    assert_eq!(at(&tasks, 100), second);
    tasks[1].core = Some(CoreId(0));
    tasks[1].served_ns = 200;
    tasks[1].granted_ns = Some(100);
    assert_eq!(at(&tasks, 200), second);
    tasks[1].granted_ns = Some(0);
    assert_eq!(at(&tasks, SLOT_NS * 2), third);
}

#[test]
fn a_set_that_an_interrupt_has_woken_goes_first_in_every_second_slot() {
    // Task 3 waits least long, and so does its set.
    let mut tasks = [0, 0, 50, 50].map(|served_ns| TaskView {
        served_ns,
        ..view(0, true)
    });
    tasks[3].signalled = true;
    let topology = Topology::flat(2);
    let at = |policy: &dyn Policy, tasks: &[TaskView], now_ns| {
        let moment = Moment {
            now_ns,
            tasks,
            topology: &topology,
        };
        let mut ran: Vec<u32> = policy
            .assign(&moment)
            .grants
            .iter()
            .filter_map(|grant| grant.running())
            .map(|task| task.0)
            .collect();
        ran.sort_unstable();
        ran
    };
    let gang = coscheduled(sets(&[&[0, 1], &[2, 3]]), IdleCores::Filled);
    let relaxed = Relaxed {
        slot_ns: SLOT_NS,
        skew_max_ns: 2 * SLOT_NS,
        placement: Placement::FirstFit,
    };
    assert_eq!(at(&gang, &tasks, 0), [2, 3]);
    assert_eq!(at(&gang, &tasks, SLOT_NS), [0, 1]);
    assert!(at(&relaxed, &tasks, 0).contains(&3));
    assert_eq!(at(&relaxed, &tasks, SLOT_NS), [0, 1]);
    // One that waits longer and is woken later does not take the cores before a slot is over.
    tasks[0].signalled = true;
    (tasks[2].granted_ns, tasks[3].granted_ns) = (Some(0), Some(0));
    assert_eq!(at(&gang, &tasks, 500), [2, 3]);
    assert_eq!(at(&gang, &tasks, 2 * SLOT_NS), [0, 1]);
    // One that is blocked calls for nothing.
    tasks[3].runnable = false;
    tasks[0].signalled = false;
    assert_eq!(at(&gang, &tasks, 2 * SLOT_NS), [0, 1]);
}

#[test]
fn free_cores_change_at_different_times() {
    let tasks: Vec<TaskView> = (0..4)
        .map(|task| TaskView {
            home: CoreId(task % 2),
            ..view(0, true)
        })
        .collect();
    let topology = Topology::flat(2);
    let at = |now_ns| {
        let moment = Moment {
            now_ns,
            tasks: &tasks,
            topology: &topology,
        };
        let assignment = Free { slot_ns: SLOT_NS }.assign(&moment);
        (
            assignment
                .grants
                .iter()
                .map(|grant| grant.running().map(|task| task.0))
                .collect::<Vec<_>>(),
            assignment.until_ns,
        )
    };
    assert_eq!(at(0), (vec![Some(2), Some(1)], 500));
    assert_eq!(at(500), (vec![Some(2), Some(3)], 1000));
    assert_eq!(at(1000), (vec![Some(0), Some(3)], 1500));
}

/// Some tasks of some programs, in some sets, on some cores.
#[derive(Debug, Clone)]
struct Case {
    tasks: Vec<TaskView>,
    labels: Vec<u32>,
    cores: usize,
    now_ns: u64,
}

impl Case {
    fn policies(&self) -> Vec<Box<dyn Policy>> {
        let partition = partition(&self.labels);
        let placement = Placement::Nearest;
        let set_policy = |idle| Coscheduled {
            sets: partition.clone(),
            slot_ns: SLOT_NS,
            idle,
            placement,
        };
        vec![
            Box::new(set_policy(IdleCores::Kept)),
            Box::new(set_policy(IdleCores::Filled)),
            Box::new(Free { slot_ns: SLOT_NS }),
            Box::new(Relaxed {
                slot_ns: SLOT_NS,
                skew_max_ns: 300,
                placement,
            }),
        ]
    }
}

fn partition(labels: &[u32]) -> CoscheduledSets {
    let mut groups = std::collections::BTreeMap::<u32, Vec<TaskId>>::new();
    for (task, &label) in labels.iter().enumerate() {
        groups.entry(label).or_default().push(TaskId::new(task));
    }
    CoscheduledSets::new(groups.into_values().collect()).expect("labels are a partition")
}

fn cases() -> impl Strategy<Value = Case> {
    (1_usize..9, 1_usize..16).prop_flat_map(|(cores, tasks)| {
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        let task = (0_u32..3, flags, 0_u64..5000, 0_u64..1000, 0..cores as u32).prop_map(
            move |(program, (runnable, signalled, is_granted), served_ns, progress_ns, core)| TaskView {
                program: ProgramId(program),
                runnable,
                signalled,
                served_ns,
                granted_ns: is_granted.then_some(served_ns),
                progress_ns,
                core: Some(CoreId(core)),
                home: CoreId(core),
            },
        );
        let labels = proptest::collection::vec(0_u32..5, tasks);
        (
            proptest::collection::vec(task, tasks),
            labels,
            Just(cores),
            5000_u64..9000,
        )
            .prop_map(|(tasks, labels, cores, now_ns)| Case {
                tasks,
                labels,
                cores,
                now_ns,
            })
    })
}

proptest! {
    #[test]
    fn a_decision_is_sound_and_repeats(case in cases()) {
        let topology = Topology::flat(case.cores);
        let moment = Moment { now_ns: case.now_ns, tasks: &case.tasks, topology: &topology };
        for policy in case.policies() {
            let assignment = policy.assign(&moment);
            prop_assert_eq!(&policy.assign(&moment), &assignment, "a pure function");
            prop_assert!(assignment.until_ns > case.now_ns && assignment.until_ns <= case.now_ns + SLOT_NS);
            prop_assert_eq!(assignment.grants.len(), case.cores);
            let running: Vec<TaskId> = assignment.grants.iter().filter_map(|grant| grant.running()).collect();
            let distinct: BTreeSet<TaskId> = running.iter().copied().collect();
            prop_assert_eq!(distinct.len(), running.len(), "no task twice");
            prop_assert!(running.iter().all(|task| case.tasks[task.index()].runnable));
            let runnable = case.tasks.iter().filter(|task| task.runnable).count();
            prop_assert_eq!(running.is_empty(), runnable == 0, "someone runs if anyone can");
        }
    }

    #[test]
    fn a_set_runs_whole_or_not_at_all(case in cases()) {
        let topology = Topology::flat(case.cores);
        let moment = Moment { now_ns: case.now_ns, tasks: &case.tasks, topology: &topology };
        let sets = partition(&case.labels);
        let policy = coscheduled(sets.clone(), IdleCores::Kept);
        let grants = policy.assign(&moment).grants;
        for set in sets.sets().iter().filter(|set| set.len() <= case.cores) {
            let placed = |task: &&TaskId| {
                grants.iter().any(|&grant| grant == Grant::Run(**task) || grant == Grant::Reserved(**task))
            };
            let count = set.iter().filter(placed).count();
            prop_assert!(count == 0 || count == set.len(), "{} of {} members have cores", count, set.len());
        }
    }

    #[test]
    fn filled_cores_are_idle_only_when_nobody_waits(case in cases()) {
        let topology = Topology::flat(case.cores);
        let moment = Moment { now_ns: case.now_ns, tasks: &case.tasks, topology: &topology };
        let runnable = case.tasks.iter().filter(|task| task.runnable).count();
        let filled = coscheduled(partition(&case.labels), IdleCores::Filled);
        for policy in [&filled as &dyn Policy, &Free { slot_ns: SLOT_NS }] {
            let grants = policy.assign(&moment).grants;
            let running = grants.iter().filter(|grant| grant.running().is_some()).count();
            prop_assert_eq!(running, runnable.min(case.cores));
        }
    }

    /// The stated bounds: a task that stays runnable runs within as many slots as there are tasks, or twice as many
    /// while there are interrupts, even though the sets change every slot and the other tasks come and go.
    #[test]
    fn no_task_starves_under_changing_sets(
        mut case in cases(),
        changes in proptest::collection::vec(
            (proptest::collection::vec(0_u32..5, 16), any::<u16>(), any::<u16>()), 32
        ),
        steady in any::<proptest::sample::Index>(),
        filled: bool,
        has_interrupts: bool,
    ) {
        let topology = Topology::flat(case.cores);
        let steady = steady.index(case.tasks.len());
        let mut ran = false;
        let mut now_ns = (case.now_ns / SLOT_NS) * SLOT_NS;
        let slots = case.tasks.len() * if has_interrupts { 2 } else { 1 };
        for (labels, runnable, signalled) in changes.iter().take(slots) {
            for (task, view) in case.tasks.iter_mut().enumerate() {
                view.runnable = task == steady || runnable & (1 << task) != 0;
                // The steady one gets none: that could only help it.
                view.signalled = has_interrupts && task != steady && signalled & (1 << task) != 0;
            }
            let idle = if filled { IdleCores::Filled } else { IdleCores::Kept };
            let policy = coscheduled(partition(&labels[..case.tasks.len()]), idle);
            let moment = Moment { now_ns, tasks: &case.tasks, topology: &topology };
            let assignment = policy.assign(&moment);
            for grant in &assignment.grants {
                ran |= grant.running() == Some(TaskId::new(steady));
                if let Grant::Run(task) | Grant::Reserved(task) = *grant {
                    case.tasks[task.index()].granted_ns = Some(now_ns);
                    case.tasks[task.index()].served_ns = now_ns + SLOT_NS;
                }
            }
            now_ns += SLOT_NS;
        }
        prop_assert!(ran, "task {steady} did not run in {slots} slots");
    }
}
