//! Sharing matrices, dependency trees and the time of cores as pictures.

use sidestep_gang::simulation::{CoreTime, Outcome};
use sidestep_gang::tree::NodeId;
use sidestep_gang::{CoscheduledSets, DependencyTree, Ratio, SharingMatrix, TaskId};
use sidestep_lab::{Breakdown, Drawing, Matrix, Node, Number, Part, Timeline, Tree};

/// A dependency value as a number of the laboratory's.
pub fn number(ratio: Ratio) -> Number {
    let clamp = |value: u128| i128::try_from(value).unwrap_or(i128::MAX);
    Number::ratio(clamp(ratio.numerator), clamp(ratio.denominator))
}

/// The matrix as a heat map.
pub fn matrix(title: &str, matrix: &SharingMatrix) -> Drawing {
    let names: Vec<String> = (0..matrix.tasks()).map(|task| task.to_string()).collect();
    let cell = |row: usize, column: usize| {
        (row != column).then(|| Number::from(matrix.events(TaskId::new(row), TaskId::new(column))))
    };
    let cells = (0..names.len())
        .map(|row| (0..names.len()).map(|column| cell(row, column)).collect())
        .collect();
    Drawing::Matrix(Matrix {
        title: title.to_owned(),
        rows: ("task".to_owned(), names.clone()),
        columns: ("task".to_owned(), names),
        cells,
        unit: "events".to_owned(),
    })
}

/// The part of a tree below a node, coloured by the sets it was cut into.
pub fn tree(title: &str, tree: &DependencyTree, top: NodeId, sets: &CoscheduledSets) -> Drawing {
    Drawing::Tree(Tree {
        title: title.to_owned(),
        root: node(tree, top, sets),
    })
}

fn node(tree: &DependencyTree, at: NodeId, sets: &CoscheduledSets) -> Node {
    let tasks = tree.tasks_of(at);
    let set_of = |task: &TaskId| sets.sets().iter().position(|set| set.contains(task));
    let first = set_of(&tasks[0]);
    let drawn = match tree.join(at) {
        Some(join) => {
            let children = vec![node(tree, join.left, sets), node(tree, join.right, sets)];
            Node::inner(number(tree.dependency(at)).to_decimal(3), children)
        }
        None => Node::leaf(tasks[0].to_string()),
    };
    // A node belongs to a set when all its tasks do.
    match first.filter(|set| tasks.iter().all(|task| set_of(task) == Some(*set))) {
        Some(set) => drawn.in_set(set as u32),
        None => drawn,
    }
}

/// The joins of a tree in the order of its steps. A step has no length of its own: steps are a microsecond apart.
pub fn steps(tree: &DependencyTree) -> Timeline {
    let mut timeline = Timeline::default();
    for step in 1..=tree.steps() {
        let track = timeline.track(format!("step {step}"));
        let joined = |&at: &NodeId| tree.join(at).is_some_and(|join| join.step == step);
        for at in tree.subtrees_after(step).into_iter().filter(joined) {
            let tasks: Vec<String> = tree.tasks_of(at).iter().map(ToString::to_string).collect();
            let name = format!(
                "{} at {}",
                tasks.join(" "),
                number(tree.dependency(at)).to_decimal(3)
            );
            timeline.instant(track, name, 1000 * step as u64);
        }
    }
    timeline
}

/// Where the time of all cores went.
pub fn core_time(title: &str, outcome: &Outcome) -> Drawing {
    let part = |name: String, time: &CoreTime| {
        let parts = [
            ("working", time.working_ns),
            ("housekeeping", time.housekeeping_ns),
            ("switching", time.overhead_ns),
            ("spinning", time.spinning_ns),
            ("kept idle", time.kept_idle_ns),
            ("idle", time.idle_ns),
        ];
        Part::sum(name, parts.map(|(name, value)| Part::leaf(name, value)).to_vec())
    };
    let cores = outcome.cores.iter().enumerate();
    let parts = cores
        .map(|(core, time)| part(format!("core {core}"), time))
        .collect();
    Drawing::Breakdown(Breakdown {
        title: title.to_owned(),
        unit: "ns".to_owned(),
        whole: Part::sum("all cores", parts),
    })
}

/// Who ran when on each core, as far as the simulation kept it.
pub fn timeline(outcome: &Outcome, names: &[String]) -> Timeline {
    let mut timeline = Timeline::default();
    let cores = outcome.cores.len();
    let tracks: Vec<usize> = (0..cores)
        .map(|core| timeline.track(format!("core {core}")))
        .collect();
    let mut running: Vec<Option<(TaskId, u64)>> = vec![None; cores];
    for turn in &outcome.turns {
        let core = turn.core.index();
        if let Some((task, since_ns)) = running[core].take()
            && turn.time_ns > since_ns
        {
            timeline.span(
                tracks[core],
                names[task.index()].clone(),
                since_ns,
                turn.time_ns - since_ns,
            );
        }
        running[core] = turn.task.map(|task| (task, turn.time_ns));
    }
    timeline
}
