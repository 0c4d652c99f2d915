//! The slow form of the tree, which tests and the benchmark hold the fast one against.

use super::{Dependency, Join, NodeId, Pairing, SharingMatrix, TaskId};

/// The tree as the paper's text reads, each dependency computed from the matrix whenever it is needed.
pub(super) fn joins(matrix: &SharingMatrix, pairing: Pairing) -> Vec<Join> {
    let mut joins: Vec<Join> = Vec::new();
    let mut subtrees: Vec<(NodeId, Vec<usize>)> = (0..matrix.tasks())
        .map(|task| (NodeId::new(task), vec![task]))
        .collect();
    let mut step = 0;
    while subtrees.len() > 1 {
        step += 1;
        let mut waiting = std::mem::take(&mut subtrees);
        while waiting.len() > 1 {
            let mut best: Option<(Dependency, usize, usize)> = None;
            for left in 0..waiting.len() {
                for right in left + 1..waiting.len() {
                    let mut events = 0;
                    for &x in &waiting[left].1 {
                        for &y in &waiting[right].1 {
                            events += u128::from(matrix.events(TaskId::new(x), TaskId::new(y)));
                        }
                    }
                    let pairs = (waiting[left].1.len() * waiting[right].1.len()) as u64;
                    let dependency = Dependency { events, pairs };
                    if best.is_none_or(|(highest, ..)| dependency.ratio() > highest.ratio()) {
                        best = Some((dependency, left, right));
                    }
                }
            }
            let (dependency, left, right) = best.expect("two subtrees are a pair");
            let (right_node, right_tasks) = waiting.remove(right);
            let (left_node, mut tasks) = waiting.remove(left);
            tasks.extend(right_tasks);
            tasks.sort_unstable();
            let node = NodeId::new(matrix.tasks() + joins.len());
            joins.push(Join {
                left: left_node,
                right: right_node,
                dependency,
                step,
            });
            subtrees.push((node, tasks));
            if pairing == Pairing::Single {
                break;
            }
        }
        subtrees.append(&mut waiting);
        subtrees.sort_by_key(|(_, tasks)| tasks[0]);
    }
    joins
}

/// A matrix of groups of eight tasks that share much, with a little between all.
pub(super) fn groups_of_eight(tasks: u32) -> SharingMatrix {
    let mut matrix = SharingMatrix::new(tasks as usize);
    for row in 0..tasks {
        for column in 0..row {
            let close = if row / 8 == column / 8 { 1000 } else { 0 };
            let noise = (row.wrapping_mul(2_654_435_761) ^ column.wrapping_mul(40_503)) >> 28;
            matrix.record(TaskId(row), TaskId(column), u64::from(close + noise));
        }
    }
    matrix
}
