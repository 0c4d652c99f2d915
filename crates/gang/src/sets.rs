//! Coscheduled sets: the dependency tree cut into groups of tasks that should run together.
//!
//! [`Selection::Factor`] is the paper's walk: from the root, a tree is split when a subtree's dependency value is more
//! than *t* times its own; each part becomes a set and is walked in turn.
//!
//! [`Selection::Modularity`] needs no factor. Of all partitions that cut the tree, it takes the one of greatest
//! modularity (Newman and Girvan): the events inside the sets less what would be expected there if every task kept
//! its number of events but had them with anyone. A set's part of the sum depends on that set alone, so the best cut
//! of a node is the better of "one set" and "the best cuts of its two children", found in one walk of the tree.
//! Where both are equal the smaller sets are taken, so a task without any events is alone.
//!
//! Either way a set larger than a limit (the cores of the host, of a socket) can be split further along the tree.

use serde::{Deserialize, Serialize};

use crate::identity::TaskId;
use crate::matrix::SharingMatrix;
use crate::ratio::Ratio;
use crate::tree::{DependencyTree, NodeId, Pairing};

/// How the tree is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The paper's factor *t*.
    Factor(Ratio),
    /// The cut of greatest modularity.
    Modularity,
}

/// A partition of tasks: each task in exactly one set, sets and members ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<TaskId>>", into = "Vec<Vec<TaskId>>")]
pub struct CoscheduledSets {
    sets: Vec<Vec<TaskId>>,
}

/// Why lists of tasks are not a partition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetsError {
    /// A task is in two sets, or twice in one.
    #[error("task {task} is in more than one set")]
    Repeated {
        /// The task.
        task: TaskId,
    },
    /// A set has no tasks.
    #[error("set {set} is empty")]
    Empty {
        /// Its place in the list, from zero.
        set: usize,
    },
}

impl CoscheduledSets {
    /// The partition with these sets.
    ///
    /// # Errors
    /// When a set is empty or a task is in two.
    pub fn new(mut sets: Vec<Vec<TaskId>>) -> Result<Self, SetsError> {
        if let Some(set) = sets.iter().position(Vec::is_empty) {
            return Err(SetsError::Empty { set });
        }
        for set in &mut sets {
            set.sort_unstable();
        }
        sets.sort_unstable();
        let mut tasks: Vec<TaskId> = sets.iter().flatten().copied().collect();
        tasks.sort_unstable();
        if let Some(pair) = tasks.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SetsError::Repeated { task: pair[0] });
        }
        Ok(Self { sets })
    }

    /// One set of all tasks: full coscheduling.
    pub fn one(tasks: usize) -> Self {
        let all: Vec<TaskId> = (0..tasks).map(TaskId::new).collect();
        Self {
            sets: if all.is_empty() { Vec::new() } else { vec![all] },
        }
    }

    /// Every task alone.
    pub fn singles(tasks: usize) -> Self {
        Self {
            sets: (0..tasks).map(|task| vec![TaskId::new(task)]).collect(),
        }
    }

    /// Cuts a matrix's tree into sets.
    pub fn select(matrix: &SharingMatrix, tree: &DependencyTree, selection: Selection) -> Self {
        let Some(root) = tree.root() else {
            return Self::default();
        };
        let nodes = match selection {
            Selection::Factor(factor) => split_by_factor(tree, root, factor),
            Selection::Modularity => split_by_modularity(matrix, tree, root),
        };
        Self::of_nodes(tree, &nodes)
    }

    /// Builds the tree and cuts it. The paper's pairing goes with its factor; without a factor, pairs are joined
    /// singly.
    pub fn find(matrix: &SharingMatrix, selection: Selection) -> Self {
        let pairing = match selection {
            Selection::Factor(_) => Pairing::Rounds,
            Selection::Modularity => Pairing::Single,
        };
        Self::select(matrix, &DependencyTree::build(matrix, pairing), selection)
    }

    /// The same partition, with every set of more than `limit` tasks split along the tree until it fits.
    ///
    /// # Panics
    /// When `limit` is zero.
    pub fn limited_to(&self, limit: usize, tree: &DependencyTree) -> Self {
        assert!(limit > 0, "a set holds at least one task");
        let mut sets = Vec::new();
        for set in &self.sets {
            if set.len() <= limit {
                sets.push(set.clone());
                continue;
            }
            let inside = |node: NodeId| {
                let tasks = tree.tasks_of(node);
                let common: Vec<TaskId> = tasks.into_iter().filter(|task| set.contains(task)).collect();
                common
            };
            let mut open: Vec<NodeId> = tree.root().into_iter().collect();
            while let Some(node) = open.pop() {
                let part = inside(node);
                match tree.join(node) {
                    Some(join) if part.len() > limit => open.extend([join.left, join.right]),
                    _ if !part.is_empty() => sets.push(part),
                    _ => {}
                }
            }
        }
        Self::new(sets).expect("parts of a partition are a partition")
    }

    /// The sets.
    pub fn sets(&self) -> &[Vec<TaskId>] {
        &self.sets
    }

    /// The set a task is in.
    pub fn set_of(&self, task: TaskId) -> Option<&[TaskId]> {
        self.sets
            .iter()
            .find(|set| set.binary_search(&task).is_ok())
            .map(Vec::as_slice)
    }

    /// Modularity in millionths, rounded toward zero; zero for a matrix without events.
    pub fn modularity_millionths(&self, matrix: &SharingMatrix) -> i64 {
        let weights = Weights::of(matrix);
        if weights.total == 0 {
            return 0;
        }
        let sum: i128 = self
            .sets
            .iter()
            .map(|set| weights.share(weights.inside(set), weights.degree(set)))
            .sum();
        (sum * 1_000_000 / (4 * weights.total * weights.total)) as i64
    }

    fn of_nodes(tree: &DependencyTree, nodes: &[NodeId]) -> Self {
        let sets = nodes.iter().map(|&node| tree.tasks_of(node)).collect();
        Self::new(sets).expect("disjoint subtrees are a partition")
    }
}

impl TryFrom<Vec<Vec<TaskId>>> for CoscheduledSets {
    type Error = SetsError;

    fn try_from(sets: Vec<Vec<TaskId>>) -> Result<Self, SetsError> {
        Self::new(sets)
    }
}

impl From<CoscheduledSets> for Vec<Vec<TaskId>> {
    fn from(sets: CoscheduledSets) -> Self {
        sets.sets
    }
}

impl std::fmt::Display for CoscheduledSets {
    /// As `{0 1 3 4} {2}`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, set) in self.sets.iter().enumerate() {
            let names: Vec<String> = set.iter().map(TaskId::to_string).collect();
            write!(
                formatter,
                "{}{{{}}}",
                if index == 0 { "" } else { " " },
                names.join(" ")
            )?;
        }
        Ok(())
    }
}

fn split_by_factor(tree: &DependencyTree, root: NodeId, factor: Ratio) -> Vec<NodeId> {
    let mut sets = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        let own = tree.dependency(node);
        let exceeds = |child| factor.is_exceeded(tree.dependency(child), own);
        match tree.join(node) {
            Some(join) if exceeds(join.left) || exceeds(join.right) => open.extend([join.left, join.right]),
            _ => sets.push(node),
        }
    }
    sets
}

/// Events as signed numbers small enough for exact products.
struct Weights {
    /// Events inside no set in particular: all of them, each pair once.
    total: i128,
    /// Counts are divided by this power of two, so that `4 * total²` fits.
    shift: u32,
    degrees: Vec<i128>,
    rows: Vec<Vec<i128>>,
}

impl Weights {
    fn of(matrix: &SharingMatrix) -> Self {
        let bits = 128 - matrix.total().leading_zeros();
        let shift = bits.saturating_sub(60);
        let rows: Vec<Vec<i128>> = matrix
            .rows()
            .into_iter()
            .map(|row| {
                row.into_iter()
                    .map(|count| i128::from(count >> shift.min(63)))
                    .collect()
            })
            .collect();
        let degrees: Vec<i128> = rows.iter().map(|row| row.iter().sum()).collect();
        let total = degrees.iter().sum::<i128>() / 2;
        Self {
            total,
            shift,
            degrees,
            rows,
        }
    }

    fn inside(&self, set: &[TaskId]) -> i128 {
        let row = |left: &TaskId| {
            set.iter()
                .map(|right| self.rows[left.index()][right.index()])
                .sum::<i128>()
        };
        set.iter().map(row).sum::<i128>() / 2
    }

    fn degree(&self, set: &[TaskId]) -> i128 {
        set.iter().map(|task| self.degrees[task.index()]).sum()
    }

    /// A set's part of the modularity, times `4 * total²`.
    fn share(&self, inside: i128, degree: i128) -> i128 {
        4 * self.total * inside - degree * degree
    }
}

/// What is known of a node's tasks while the tree is walked upwards.
#[derive(Clone, Debug)]
struct Cut {
    inside: i128,
    degree: i128,
    /// The modularity of the best cut below, times `4 * total²`.
    best: i128,
    sets: Vec<NodeId>,
}

fn split_by_modularity(matrix: &SharingMatrix, tree: &DependencyTree, root: NodeId) -> Vec<NodeId> {
    let weights = Weights::of(matrix);
    // Joins are made after their parts, so one pass in order of creation is a walk upwards.
    let mut cuts: std::collections::BTreeMap<NodeId, Cut> = std::collections::BTreeMap::new();
    let leaf = |node: NodeId| {
        let degree = weights.degree(&tree.tasks_of(node));
        Cut {
            inside: 0,
            degree,
            best: weights.share(0, degree),
            sets: vec![node],
        }
    };
    for node in tree.subtrees_after(0) {
        cuts.insert(node, leaf(node));
    }
    for (index, join) in tree.joins().iter().enumerate() {
        let take = |cuts: &mut std::collections::BTreeMap<NodeId, Cut>, node| {
            cuts.remove(&node)
                .expect("a part is made before it is joined, and joined once")
        };
        let (mut left, right) = (take(&mut cuts, join.left), take(&mut cuts, join.right));
        let between = (join.dependency.events >> weights.shift) as i128;
        let (inside, degree) = (left.inside + right.inside + between, left.degree + right.degree);
        let whole = weights.share(inside, degree);
        let node = tree.join_node(index);
        let cut = if whole > left.best + right.best {
            Cut {
                inside,
                degree,
                best: whole,
                sets: vec![node],
            }
        } else {
            left.sets.extend(right.sets);
            Cut {
                inside,
                degree,
                best: left.best + right.best,
                sets: left.sets,
            }
        };
        cuts.insert(node, cut);
    }
    cuts.remove(&root).expect("the root is the last node").sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matrix(rows: &[&[u64]]) -> SharingMatrix {
        let rows: Vec<Vec<u64>> = rows.iter().map(|row| row.to_vec()).collect();
        SharingMatrix::from_rows(&rows).expect("symmetric")
    }

    fn factor(text: &str) -> Selection {
        Selection::Factor(text.parse().expect("a ratio"))
    }

    #[test]
    fn figure_4_is_split_at_its_root_alone() {
        let figure_3 = matrix(&[
            &[0, 6, 1, 9, 6],
            &[6, 0, 1, 6, 7],
            &[1, 1, 0, 1, 1],
            &[9, 6, 1, 0, 6],
            &[6, 7, 1, 6, 0],
        ]);
        let sets = |selection| CoscheduledSets::find(&figure_3, selection).to_string();
        assert_eq!(
            sets(factor("1.5")),
            "{0 1 3 4} {2}",
            "9 is not more than 1.5 times 6"
        );
        assert_eq!(sets(factor("1.49")), "{0 3} {1 4} {2}");
        assert_eq!(sets(factor("6")), "{0 1 2 3 4}", "6 is not more than 6 times 1");
        assert_eq!(
            sets(Selection::Modularity),
            "{0 1 2 3 4}",
            "task 2 has a fair share of what few events it has"
        );
    }

    #[test]
    fn two_pairs_of_unlike_strength_need_no_factor() {
        let pairs = matrix(&[&[0, 1000, 1, 1], &[1000, 0, 1, 1], &[1, 1, 0, 50], &[1, 1, 50, 0]]);
        assert_eq!(
            CoscheduledSets::find(&pairs, Selection::Modularity).to_string(),
            "{0 1} {2 3}"
        );
    }

    #[test]
    fn without_events_the_factor_keeps_all_together_and_modularity_none() {
        let silent = SharingMatrix::new(3);
        assert_eq!(
            CoscheduledSets::find(&silent, factor("1.5")).to_string(),
            "{0 1 2}"
        );
        assert_eq!(
            CoscheduledSets::find(&silent, Selection::Modularity).to_string(),
            "{0} {1} {2}"
        );
        let empty = SharingMatrix::new(0);
        assert_eq!(
            CoscheduledSets::find(&empty, Selection::Modularity).sets().len(),
            0
        );
    }

    #[test]
    fn a_limit_splits_along_the_tree() {
        let pairs = matrix(&[&[0, 9, 5, 5], &[9, 0, 5, 5], &[5, 5, 0, 9], &[5, 5, 9, 0]]);
        let tree = DependencyTree::build(&pairs, Pairing::Single);
        let all = CoscheduledSets::one(4);
        assert_eq!(all.limited_to(4, &tree), all);
        assert_eq!(all.limited_to(3, &tree).to_string(), "{0 1} {2 3}");
        assert_eq!(all.limited_to(1, &tree), CoscheduledSets::singles(4));
    }

    #[test]
    fn a_list_that_is_no_partition_is_refused() {
        let tasks = |numbers: &[u32]| numbers.iter().map(|&number| TaskId(number)).collect::<Vec<_>>();
        assert_eq!(
            CoscheduledSets::new(vec![tasks(&[0, 1]), tasks(&[1])]),
            Err(SetsError::Repeated { task: TaskId(1) })
        );
        assert_eq!(
            CoscheduledSets::new(vec![tasks(&[0]), tasks(&[])]),
            Err(SetsError::Empty { set: 1 })
        );
    }

    /// Every partition that cuts the tree below a node.
    fn all_cuts(tree: &DependencyTree, node: NodeId) -> Vec<Vec<NodeId>> {
        let mut cuts = vec![vec![node]];
        if let Some(join) = tree.join(node) {
            for left in all_cuts(tree, join.left) {
                for right in all_cuts(tree, join.right) {
                    cuts.push(left.iter().chain(&right).copied().collect());
                }
            }
        }
        cuts
    }

    fn small_matrices() -> impl Strategy<Value = SharingMatrix> {
        (1_usize..7).prop_flat_map(|tasks| {
            proptest::collection::vec(0_u64..30, tasks * tasks).prop_map(move |counts| {
                let mut matrix = SharingMatrix::new(tasks);
                for row in 0..tasks {
                    for column in 0..row {
                        matrix.record(
                            TaskId::new(row),
                            TaskId::new(column),
                            counts[row * tasks + column],
                        );
                    }
                }
                matrix
            })
        })
    }

    proptest! {
        #[test]
        fn modularity_is_the_best_of_all_cuts(matrix in small_matrices()) {
            let tree = DependencyTree::build(&matrix, Pairing::Single);
            let found = CoscheduledSets::select(&matrix, &tree, Selection::Modularity);
            let root = tree.root().expect("at least one task");
            let best = all_cuts(&tree, root)
                .iter()
                .map(|cut| CoscheduledSets::of_nodes(&tree, cut).modularity_millionths(&matrix))
                .max();
            prop_assert_eq!(Some(found.modularity_millionths(&matrix)), best);
        }

        #[test]
        fn sets_are_a_partition_and_a_larger_factor_never_splits_more(matrix in small_matrices()) {
            let mut fewest = usize::MAX;
            for text in ["1", "1.5", "2", "4"] {
                let found = CoscheduledSets::find(&matrix, factor(text));
                prop_assert_eq!(found.sets().iter().map(Vec::len).sum::<usize>(), matrix.tasks());
                prop_assert!(found.sets().len() <= fewest);
                fewest = found.sets().len();
            }
        }
    }
}
