//! The paper's example step by step, and the fast algorithms against one that recomputes everything.

use super::*;
use proptest::prelude::*;

/// Figure 3 of the paper.
pub(crate) fn figure_3() -> SharingMatrix {
    let rows = [
        [0, 6, 1, 9, 6],
        [6, 0, 1, 6, 7],
        [1, 1, 0, 1, 1],
        [9, 6, 1, 0, 6],
        [6, 7, 1, 6, 0],
    ];
    SharingMatrix::from_rows(&rows.map(|row| row.to_vec())).expect("the paper's matrix is symmetric")
}

/// The subtrees after a step: their tasks and the dependency at their top.
fn state(tree: &DependencyTree, step: usize) -> Vec<(Vec<u32>, Ratio)> {
    let describe = |top: NodeId| {
        (
            tree.tasks_of(top).into_iter().map(|task| task.0).collect(),
            tree.dependency(top),
        )
    };
    tree.subtrees_after(step).into_iter().map(describe).collect()
}

#[test]
fn figure_4_is_built_in_its_three_steps() {
    let tree = DependencyTree::build(&figure_3(), Pairing::Rounds);
    let value = |d| Ratio::new(d, 1);
    assert_eq!(tree.steps(), 3);
    assert_eq!(
        state(&tree, 0),
        (0..5).map(|task| (vec![task], value(0))).collect::<Vec<_>>()
    );
    assert_eq!(
        state(&tree, 1),
        [
            (vec![0, 3], value(9)),
            (vec![1, 4], value(7)),
            (vec![2], value(0))
        ]
    );
    assert_eq!(
        state(&tree, 2),
        [(vec![0, 1, 3, 4], value(6)), (vec![2], value(0))]
    );
    assert_eq!(state(&tree, 3), [(vec![0, 1, 2, 3, 4], value(1))]);
    let events: Vec<_> = tree
        .joins()
        .iter()
        .map(|join| (join.dependency.events, join.dependency.pairs))
        .collect();
    assert_eq!(
        events,
        [(9, 1), (7, 1), (24, 4), (4, 4)],
        "equation (1): sums and numbers of pairs"
    );
}

#[test]
fn single_joins_make_the_same_tree_of_figure_3_in_four_steps() {
    let rounds = DependencyTree::build(&figure_3(), Pairing::Rounds);
    let single = DependencyTree::build(&figure_3(), Pairing::Single);
    assert_eq!(single.steps(), 4);
    let shape = |tree: &DependencyTree| {
        tree.joins()
            .iter()
            .map(|join| (join.left, join.right, join.dependency))
            .collect::<Vec<_>>()
    };
    assert_eq!(shape(&rounds), shape(&single));
}

#[test]
fn ties_go_to_the_lowest_tasks() {
    let rows: Vec<Vec<u64>> = (0..4)
        .map(|row| (0..4).map(|column| u64::from(row != column)).collect())
        .collect();
    let matrix = SharingMatrix::from_rows(&rows).expect("symmetric");
    let tree = DependencyTree::build(&matrix, Pairing::Rounds);
    let first: Vec<_> = tree
        .subtrees_after(1)
        .into_iter()
        .map(|top| tree.tasks_of(top))
        .collect();
    assert_eq!(first, [[TaskId(0), TaskId(1)], [TaskId(2), TaskId(3)]]);
}

#[test]
fn three_together_and_one_apart_show_the_difference_of_the_pairings() {
    let rows = [[0, 5, 5, 0], [5, 0, 5, 0], [5, 5, 0, 0], [0, 0, 0, 0]].map(|row: [u64; 4]| row.to_vec());
    let matrix = SharingMatrix::from_rows(&rows).expect("symmetric");
    let below_root = |pairing| {
        let tree = DependencyTree::build(&matrix, pairing);
        let root = *tree.join(tree.root().expect("a root")).expect("a join");
        (tree.tasks_of(root.left).len(), tree.tasks_of(root.right).len())
    };
    assert_eq!(below_root(Pairing::Rounds), (2, 2));
    assert_eq!(below_root(Pairing::Single), (3, 1));
}

#[test]
fn no_task_and_one_task_are_trees_too() {
    for pairing in [Pairing::Rounds, Pairing::Single] {
        assert_eq!(
            DependencyTree::build(&SharingMatrix::new(0), pairing).root(),
            None
        );
        let one = DependencyTree::build(&SharingMatrix::new(1), pairing);
        assert_eq!(one.tasks_of(one.root().expect("the leaf")), [TaskId(0)]);
    }
}

fn matrices() -> impl Strategy<Value = SharingMatrix> {
    // Small counts make many ties; large ones try the width of the sums.
    (0_usize..20, prop_oneof![Just(2_u64), Just(20), Just(u64::MAX)]).prop_flat_map(|(tasks, most)| {
        proptest::collection::vec(0..=most, tasks * tasks.saturating_sub(1) / 2).prop_map(move |events| {
            let mut matrix = SharingMatrix::new(tasks);
            let mut events = events.into_iter();
            for row in 0..tasks {
                for column in 0..row {
                    let count = events.next().expect("a count for each pair");
                    matrix.record(TaskId::new(row), TaskId::new(column), count);
                }
            }
            matrix
        })
    })
}

#[test]
fn ranks_of_the_largest_sums_and_pairs_tell_neighbouring_fractions_apart() {
    // 2^16 tasks in two halves: 2^30 pairs, each with up to 2^64 - 1 events.
    let pairs = 1_u64 << 30;
    let most = u128::from(u64::MAX) * u128::from(pairs);
    assert!(rank(most, pairs) > rank(most - 1, pairs));
    assert!(rank(1, pairs) > rank(0, pairs));
    // Two neighbouring fractions of denominators near 2^30.
    assert!(rank(u128::from(pairs - 1), pairs) > rank(u128::from(pairs - 2), pairs - 1));
    assert_eq!(rank(6, 4), rank(3, 2));
}

proptest! {
    #[test]
    fn ranks_compare_as_fractions_do(a: u128, b in 1_u64..=1 << 30, c: u128, d in 1_u64..=1 << 30, near: bool) {
        let (c, d) = if near { (a.wrapping_add(1), b) } else { (c, d) };
        // A pair has fewer than 2^64 events.
        let (a, c) = (a % (u128::from(b) << 64), c % (u128::from(d) << 64));
        let fractions = Ratio::new(a, b.into()).cmp(&Ratio::new(c, d.into()));
        prop_assert_eq!(rank(a, b).cmp(&rank(c, d)), fractions);
    }

    #[test]
    fn the_fast_trees_are_the_naive_trees(matrix in matrices()) {
        for pairing in [Pairing::Rounds, Pairing::Single] {
            prop_assert_eq!(DependencyTree::build(&matrix, pairing).joins, naive::joins(&matrix, pairing));
        }
    }

    #[test]
    fn every_task_is_one_leaf(matrix in matrices()) {
        for pairing in [Pairing::Rounds, Pairing::Single] {
            let tree = DependencyTree::build(&matrix, pairing);
            if let Some(root) = tree.root() {
                let all: Vec<TaskId> = (0..matrix.tasks()).map(TaskId::new).collect();
                prop_assert_eq!(tree.tasks_of(root), all);
            }
        }
    }
}

/// Not a test of speed (the benchmark is): only that the largest promised size is built whole.
#[test]
fn a_thousand_tasks_make_one_tree() {
    let matrix = naive::groups_of_eight(1024);
    for pairing in [Pairing::Rounds, Pairing::Single] {
        let tree = DependencyTree::build(&matrix, pairing);
        assert_eq!(tree.tasks_of(tree.root().expect("a root")).len(), 1024);
    }
}
