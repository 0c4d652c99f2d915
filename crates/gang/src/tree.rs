//! The dependency tree: tasks joined pair by pair, the most dependent first (section 3 of the paper).
//!
//! The dependency of two subtrees X and Y is equation (1), `d = sum of CE(x, y) over all pairs / (|X| * |Y|)`, kept as
//! an exact fraction. A leaf has `d = 0`. Figure 4 joins several pairs in one step, so [`Pairing::Rounds`] does: in a
//! step, the pair of subtrees with the highest dependency is joined, then the highest among the subtrees not yet
//! joined in this step, until at most one is left; the next step starts from the new subtrees. [`Pairing::Single`]
//! joins one pair a step, so that a group of three is never torn by pairing its third member with a stranger.
//!
//! **Ties.** A subtree is named by its lowest task. Of pairs with equal dependency the one with the lowest first name
//! goes first, then the one with the lowest second name. The left child of a join is the one with the lower name.
//!
//! **Cost.** Sums of events between subtrees are carried along rather than recomputed, since the sum of a joined
//! subtree is the sum of its parts' sums. `Rounds` sorts the pairs once a step and halves the subtrees each time:
//! O(n² log n) in all. `Single` keeps all pairs in one heap; outdated ones are dropped when they surface, or by a sweep
//! when they are the larger part: also O(n² log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::identity::TaskId;
use crate::matrix::SharingMatrix;
use crate::ratio::Ratio;

/// How subtrees are paired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// As many pairs in a step as there are, each subtree in at most one: the paper's Figure 4.
    #[default]
    Rounds,
    /// One pair a step.
    Single,
}

/// A node of a [`DependencyTree`]; leaves come first, in the order of their tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(usize);

impl NodeId {
    /// The node of a number: first the tasks, then the joins, each in their order.
    pub const fn new(number: usize) -> Self {
        Self(number)
    }
}

/// The dependency of two subtrees: equation (1), unreduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Communication events between the two.
    pub events: u128,
    /// Pairs of tasks, one of each: never zero.
    pub pairs: u64,
}

impl Dependency {
    /// The value *d*.
    pub fn ratio(self) -> Ratio {
        Ratio::new(self.events, self.pairs.into())
    }
}

/// An internal node: two subtrees that were joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The subtree with the lowest task of both.
    pub left: NodeId,
    /// The other subtree.
    pub right: NodeId,
    /// Their dependency.
    pub dependency: Dependency,
    /// The step that joined them, from 1.
    pub step: usize,
}

/// All tasks of a matrix as a binary tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyTree {
    tasks: usize,
    joins: Vec<Join>,
}

impl DependencyTree {
    /// Builds the tree of a matrix.
    pub fn build(matrix: &SharingMatrix, pairing: Pairing) -> Self {
        let joins = match pairing {
            Pairing::Rounds => join_in_rounds(matrix),
            Pairing::Single => join_singly(matrix),
        };
        Self {
            tasks: matrix.tasks(),
            joins,
        }
    }

    /// How many tasks (leaves) there are.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// The topmost node; none for a matrix without tasks.
    pub fn root(&self) -> Option<NodeId> {
        (self.tasks + self.joins.len()).checked_sub(1).map(NodeId)
    }

    /// The joins in the order they were made.
    pub fn joins(&self) -> &[Join] {
        &self.joins
    }

    /// The node that a join made.
    pub fn join_node(&self, index: usize) -> NodeId {
        assert!(index < self.joins.len(), "join {index} of {}", self.joins.len());
        NodeId(self.tasks + index)
    }

    /// How many steps it took.
    pub fn steps(&self) -> usize {
        self.joins.last().map_or(0, |join| join.step)
    }

    /// The join at a node; none for a leaf.
    pub fn join(&self, node: NodeId) -> Option<&Join> {
        node.0.checked_sub(self.tasks).map(|index| &self.joins[index])
    }

    /// A node's dependency value; a leaf's is zero.
    pub fn dependency(&self, node: NodeId) -> Ratio {
        self.join(node)
            .map_or(Ratio::new(0, 1), |join| join.dependency.ratio())
    }

    /// A node's tasks, ascending.
    pub fn tasks_of(&self, node: NodeId) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match self.join(node) {
                Some(join) => open.extend([join.left, join.right]),
                None => tasks.push(TaskId::new(node.0)),
            }
        }
        tasks.sort_unstable();
        tasks
    }

    /// The subtrees that exist after a step, by their lowest task; step 0 has the leaves alone.
    pub fn subtrees_after(&self, step: usize) -> Vec<NodeId> {
        let made = self.joins.iter().take_while(|join| join.step <= step).count();
        let mut is_top = vec![true; self.tasks + made];
        for join in &self.joins[..made] {
            is_top[join.left.0] = false;
            is_top[join.right.0] = false;
        }
        let mut tops: Vec<NodeId> = (0..is_top.len())
            .filter(|&node| is_top[node])
            .map(NodeId)
            .collect();
        tops.sort_by_key(|&top| self.tasks_of(top)[0]);
        tops
    }
}

/// A subtree while the tree is being built.
#[derive(Clone, Copy, Debug)]
struct Subtree {
    node: NodeId,
    /// Its lowest task, which is its name.
    lowest: usize,
    size: u64,
}

impl Subtree {
    fn leaf(task: usize) -> Self {
        Self {
            node: NodeId(task),
            lowest: task,
            size: 1,
        }
    }

    fn joined(node: usize, left: Self, right: Self) -> Self {
        Self {
            node: NodeId(node),
            lowest: left.lowest,
            size: left.size + right.size,
        }
    }
}

/// Sums of events between subtrees, as a full square so that rows can be added.
struct Sums {
    width: usize,
    events: Vec<u128>,
}

impl Sums {
    fn of(matrix: &SharingMatrix) -> Self {
        let width = matrix.tasks();
        let cell = |index| u128::from(matrix.events(TaskId::new(index / width), TaskId::new(index % width)));
        Self {
            width,
            events: (0..width * width).map(cell).collect(),
        }
    }

    fn between(&self, left: usize, right: usize) -> u128 {
        self.events[left * self.width + right]
    }
}

fn join_in_rounds(matrix: &SharingMatrix) -> Vec<Join> {
    let tasks = matrix.tasks();
    let mut subtrees: Vec<Subtree> = (0..tasks).map(Subtree::leaf).collect();
    let mut sums = Sums::of(matrix);
    let mut joins = Vec::with_capacity(tasks.saturating_sub(1));
    let mut step = 0;
    while subtrees.len() > 1 {
        step += 1;
        let mut grouped = vec![false; subtrees.len()];
        // Which old subtrees make up each new one.
        let mut parts: Vec<(usize, Option<usize>)> = Vec::with_capacity(subtrees.len().div_ceil(2));
        for (left, right) in pairs_by_dependency(&subtrees, &sums) {
            if !grouped[left] && !grouped[right] {
                grouped[left] = true;
                grouped[right] = true;
                parts.push((left, Some(right)));
            }
        }
        let mut next: Vec<Subtree> = Vec::with_capacity(parts.len() + 1);
        for &(left, right) in &parts {
            let right = right.expect("every part so far is a pair");
            let node = tasks + joins.len();
            joins.push(Join {
                left: subtrees[left].node,
                right: subtrees[right].node,
                dependency: Dependency {
                    events: sums.between(left, right),
                    pairs: subtrees[left].size * subtrees[right].size,
                },
                step,
            });
            next.push(Subtree::joined(node, subtrees[left], subtrees[right]));
        }
        if let Some(alone) = grouped.iter().position(|&grouped| !grouped) {
            parts.push((alone, None));
            next.push(subtrees[alone]);
        }
        // Keep subtrees ordered by name, so that an index pair in order is a pair of names in order.
        let mut order: Vec<usize> = (0..next.len()).collect();
        order.sort_unstable_by_key(|&index| next[index].lowest);
        subtrees = order.iter().map(|&index| next[index]).collect();
        let parts: Vec<_> = order.iter().map(|&index| parts[index]).collect();
        sums = merged(&sums, &parts);
    }
    joins
}

/// All pairs of subtrees, the highest dependency first, ties by name. `subtrees` is ordered by name.
fn pairs_by_dependency(subtrees: &[Subtree], sums: &Sums) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(Ratio, usize, usize)> = Vec::with_capacity(subtrees.len() * (subtrees.len() - 1) / 2);
    for (right, second) in subtrees.iter().enumerate() {
        for (left, first) in subtrees[..right].iter().enumerate() {
            let size = u128::from(first.size * second.size);
            pairs.push((Ratio::new(sums.between(left, right), size), left, right));
        }
    }
    pairs.sort_unstable_by(|one, two| two.0.cmp(&one.0).then((one.1, one.2).cmp(&(two.1, two.2))));
    pairs.into_iter().map(|(_, left, right)| (left, right)).collect()
}

/// The sums between subtrees that are each made of one or two old ones.
fn merged(sums: &Sums, parts: &[(usize, Option<usize>)]) -> Sums {
    let width = parts.len();
    let mut events = Vec::with_capacity(width * width);
    for &(row, other_row) in parts {
        for &(column, other_column) in parts {
            let across =
                |row| sums.between(row, column) + other_column.map_or(0, |column| sums.between(row, column));
            events.push(across(row) + other_row.map_or(0, across));
        }
    }
    Sums { width, events }
}

/// A possible join on the heap: the greatest is the next to be made.
///
/// Small and compared as whole numbers, because there are half a million of 1,024 tasks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// [`rank`] of the dependency.
    rank: u128,
    /// The names of both subtrees, lower first; of equal ranks the lowest names are the greatest candidate.
    names: Reverse<(u32, u32)>,
    /// Their nodes, which tell whether both still exist.
    nodes: (u32, u32),
}

impl Candidate {
    fn new(events: u128, left: Subtree, right: Subtree) -> Self {
        let index = |number: usize| u32::try_from(number).expect("at most 2^17 nodes");
        Self {
            rank: rank(events, left.size * right.size),
            names: Reverse((index(left.lowest), index(right.lowest))),
            nodes: (index(left.node.0), index(right.node.0)),
        }
    }

    fn names(&self) -> (usize, usize) {
        let Reverse((left, right)) = self.names;
        (left as usize, right as usize)
    }

    /// Whether both subtrees are still there, each at the index of its name.
    fn is_current(&self, subtrees: &[Option<Subtree>]) -> bool {
        let (left, right) = self.names();
        let is =
            |index: usize, node: u32| subtrees[index].is_some_and(|subtree| subtree.node.0 == node as usize);
        is(left, self.nodes.0) && is(right, self.nodes.1)
    }
}

/// The value `events / pairs` in units of 2^-60, rounded down: ranks compare exactly as the fractions do.
///
/// 65,536 tasks make at most 2^30 pairs between two subtrees, so two fractions that differ do so by at least one
/// unit; and as each pair has at most 2^64 events, a rank stays below 2^124.
fn rank(events: u128, pairs: u64) -> u128 {
    let pairs = u128::from(pairs);
    let (whole, rest) = match u64::try_from(events) {
        Ok(events) => (
            u128::from(events / pairs as u64),
            u128::from(events % pairs as u64),
        ),
        Err(_) => (events / pairs, events % pairs),
    };
    (whole << 60) + (rest << 60) / pairs
}

fn join_singly(matrix: &SharingMatrix) -> Vec<Join> {
    let tasks = matrix.tasks();
    let mut sums = Sums::of(matrix);
    // A subtree lives at the index of its name; a joined one takes the lower index.
    let mut subtrees: Vec<Option<Subtree>> = (0..tasks).map(|task| Some(Subtree::leaf(task))).collect();
    let mut initial = Vec::with_capacity(tasks * tasks.saturating_sub(1) / 2);
    for right in 0..tasks {
        for left in 0..right {
            let events = sums.between(left, right);
            initial.push(Candidate::new(events, Subtree::leaf(left), Subtree::leaf(right)));
        }
    }
    let mut heap = BinaryHeap::from(initial);
    let mut joins = Vec::with_capacity(tasks.saturating_sub(1));
    while joins.len() + 1 < tasks {
        let best = heap
            .pop()
            .expect("there is a candidate for each pair of subtrees");
        if !best.is_current(&subtrees) {
            continue;
        }
        let (left, right) = best.names();
        let (first, second) = (
            subtrees[left].expect("it is current"),
            subtrees[right].expect("it is current"),
        );
        joins.push(Join {
            left: first.node,
            right: second.node,
            dependency: Dependency {
                events: sums.between(left, right),
                pairs: first.size * second.size,
            },
            step: joins.len() + 1,
        });
        let whole = Subtree::joined(tasks + joins.len() - 1, first, second);
        subtrees[left] = Some(whole);
        subtrees[right] = None;
        let alive = tasks - joins.len();
        if heap.len() > OUTDATED_MOST * alive * alive {
            heap.retain(|candidate| candidate.is_current(&subtrees));
        }
        for other in subtrees.iter().flatten().filter(|other| other.lowest != left) {
            let sum = sums.between(left, other.lowest) + sums.between(right, other.lowest);
            sums.events[left * tasks + other.lowest] = sum;
            sums.events[other.lowest * tasks + left] = sum;
            let (low, high) = if other.lowest < left {
                (*other, whole)
            } else {
                (whole, *other)
            };
            heap.push(Candidate::new(sum, low, high));
        }
    }
    joins
}

/// The heap is swept once it holds so many times the square of the subtrees, which is twice their pairs: dropping an
/// outdated candidate in a sweep is cheaper than letting it surface.
const OUTDATED_MOST: usize = 1;

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
