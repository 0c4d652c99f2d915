//! Finds the row of the opcode table for a slot by testing one bit after another.
//!
//! Built from the rows' masks alone: each inner node tests the bit that separates its rows best, a leaf holds the
//! few rows that are left. A row that leaves a tested bit open is in both branches.

use super::form::Form;
use super::instruction::UnitClass;

enum Node {
    /// Tests a bit; the indices are the nodes for 0 and 1.
    Test { bit: u8, branches: [u16; 2] },
    /// The rows that are left, most fixed bits first.
    Leaf(Box<[u16]>),
}

/// A decision tree over the rows of one class.
pub(super) struct DecisionTree {
    nodes: Vec<Node>,
}

impl DecisionTree {
    /// The tree over all rows of a class.
    pub(super) fn build(forms: &[Form], class: UnitClass) -> DecisionTree {
        let rows = (0..forms.len() as u16)
            .filter(|row| forms[*row as usize].class == class)
            .collect();
        let mut tree = DecisionTree { nodes: Vec::new() };
        tree.add(forms, rows);
        tree
    }

    fn add(&mut self, forms: &[Form], mut rows: Vec<u16>) -> u16 {
        let index = self.nodes.len() as u16;
        let Some(bit) = best_bit(forms, &rows) else {
            rows.sort_by_key(|row| std::cmp::Reverse(forms[*row as usize].mask.count_ones()));
            self.nodes.push(Node::Leaf(rows.into()));
            return index;
        };
        self.nodes.push(Node::Leaf(Box::new([])));
        let branches = [0, 1].map(|value| {
            let admits = |row: &u16| {
                let form = &forms[*row as usize];
                form.mask >> bit & 1 == 0 || form.value >> bit & 1 == value
            };
            let remaining = rows.iter().copied().filter(admits).collect();
            self.add(forms, remaining)
        });
        self.nodes[index as usize] = Node::Test { bit, branches };
        index
    }

    /// The rows that may match a slot.
    pub(super) fn candidates(&self, slot: u64) -> &[u16] {
        let mut index = 0;
        loop {
            match &self.nodes[index as usize] {
                Node::Test { bit, branches } => index = branches[(slot >> bit & 1) as usize],
                Node::Leaf(rows) => return rows,
            }
        }
    }
}

/// The bit whose larger branch is smallest; `None` when no bit makes both branches smaller.
fn best_bit(forms: &[Form], rows: &[u16]) -> Option<u8> {
    let larger_branch = |bit: &u8| {
        let count = |value: u64| {
            let admits = |row: &&u16| {
                let form = &forms[**row as usize];
                form.mask >> bit & 1 == 0 || form.value >> bit & 1 == value
            };
            rows.iter().filter(admits).count()
        };
        count(0).max(count(1))
    };
    (0..41)
        .rev()
        .min_by_key(larger_branch)
        .filter(|bit| larger_branch(bit) < rows.len())
}
