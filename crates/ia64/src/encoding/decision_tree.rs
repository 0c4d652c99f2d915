//! Finds the row of the opcode table for a slot by testing one bit after another.
//!
//! Built from the rows' masks alone: below the major opcode, each inner node tests the bit that separates its rows
//! best, a leaf holds the few rows that are left. A row that leaves a tested bit open is in both branches.

use std::cmp::Reverse;

use super::form::Form;
use super::instruction::UnitClass;

/// The major opcode, which every row fixes, is the four highest bits of a slot.
const MAJOR_SHIFT: u8 = 37;
const MAJOR_OPCODES: usize = 16;

#[derive(Clone, Copy)]
enum Node {
    /// Tests a bit; the indices are the nodes for 0 and 1.
    Test { bit: u8, branches: [u16; 2] },
    /// The rows that are left, as a range of the tree's candidates, most fixed bits first.
    Leaf { start: u16, end: u16 },
}

/// What of a row decides whether it is meant. Rows themselves are large: a short program would fetch most of them.
#[derive(Clone, Copy)]
struct Candidate {
    mask: u64,
    value: u64,
    row: u16,
}

/// A decision tree over the rows of one class.
pub(super) struct DecisionTree {
    /// The first node for each major opcode.
    roots: [u16; MAJOR_OPCODES],
    nodes: Vec<Node>,
    candidates: Vec<Candidate>,
}

impl DecisionTree {
    /// The tree over all rows of a class.
    pub(super) fn build(forms: &[Form], class: UnitClass) -> DecisionTree {
        let mut rows = [const { Vec::new() }; MAJOR_OPCODES];
        for (row, form) in forms.iter().enumerate().filter(|(_, form)| form.class == class) {
            assert_eq!(form.mask >> MAJOR_SHIFT, 0xf, "a row fixes the major opcode");
            rows[(form.value >> MAJOR_SHIFT) as usize].push(row as u16);
        }
        let mut tree = DecisionTree {
            roots: [0; MAJOR_OPCODES],
            nodes: Vec::new(),
            candidates: Vec::new(),
        };
        tree.roots = rows.map(|rows| tree.add(forms, rows));
        tree
    }

    /// Adds the node for some rows and those below it. Returns its index.
    fn add(&mut self, forms: &[Form], mut rows: Vec<u16>) -> u16 {
        let index = self.nodes.len();
        let Some(bit) = best_bit(forms, &rows) else {
            rows.sort_by_key(|row| Reverse(forms[*row as usize].mask.count_ones()));
            let start = self.candidates.len() as u16;
            self.candidates.extend(rows.into_iter().map(|row| {
                let Form { mask, value, .. } = forms[row as usize];
                Candidate { mask, value, row }
            }));
            self.nodes.push(Node::Leaf {
                start,
                end: self.candidates.len() as u16,
            });
            return index as u16;
        };
        // The place of this node, which comes before those below it.
        self.nodes.push(Node::Leaf { start: 0, end: 0 });
        let branches = [0, 1].map(|value| {
            let remaining = rows
                .iter()
                .copied()
                .filter(|row| admits(&forms[*row as usize], bit, value));
            self.add(forms, remaining.collect())
        });
        self.nodes[index] = Node::Test { bit, branches };
        index as u16
    }

    /// The row that a slot matches: of several, one with most fixed bits.
    pub(super) fn find(&self, slot: u64) -> Option<u16> {
        let mut index = self.roots[(slot >> MAJOR_SHIFT) as usize % MAJOR_OPCODES];
        loop {
            match self.nodes[index as usize] {
                Node::Test { bit, branches } => index = branches[(slot >> bit & 1) as usize],
                Node::Leaf { start, end } => {
                    let candidates = &self.candidates[start as usize..end as usize];
                    let found = candidates.iter().find(|row| slot & row.mask == row.value);
                    return found.map(|candidate| candidate.row);
                }
            }
        }
    }
}

/// Whether a form can have the value in a bit.
fn admits(form: &Form, bit: u8, value: u64) -> bool {
    form.mask >> bit & 1 == 0 || form.value >> bit & 1 == value
}

/// The bit whose larger branch is smallest; `None` when no bit makes both branches smaller.
fn best_bit(forms: &[Form], rows: &[u16]) -> Option<u8> {
    // How many rows fix each bit to 0 and to 1: those are missing from the other branch.
    let mut fixed = [[0; 2]; MAJOR_SHIFT as usize];
    for row in rows {
        let form = &forms[*row as usize];
        let mut bits = form.mask & ((1 << MAJOR_SHIFT) - 1);
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            fixed[bit][(form.value >> bit & 1) as usize] += 1;
            bits &= bits - 1;
        }
    }
    let missing = |bit: &u8| {
        let [zeros, ones] = fixed[*bit as usize];
        zeros.min(ones)
    };
    (0..MAJOR_SHIFT)
        .max_by_key(missing)
        .filter(|bit| missing(bit) > 0)
}
