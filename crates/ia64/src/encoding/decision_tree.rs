//! Finds the row of the opcode table for a slot by testing one bit after another.
//!
//! Built from the rows' masks alone: below the major opcode, each inner node tests the bit that separates its rows
//! best, a leaf holds the few rows that are left. A row that leaves a tested bit open is in both branches.
//!
//! The tree below a major opcode is built when a slot has it for the first time: every program that is executed starts
//! with an empty table, and a short one needs few of them.

use std::cmp::Reverse;
use std::sync::OnceLock;

use super::form::Form;
use super::instruction::UnitClass;

/// The major opcode, which every row fixes, is the four highest bits of a slot.
const MAJOR_SHIFT: u8 = 37;
const MAJOR_OPCODES: usize = 16;
/// Rows of a leaf, where bits could still separate them: looking at so many costs no more than testing bits.
const LEAF_ROWS: usize = 8;

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

impl Candidate {
    /// Whether the row can have the value in a bit.
    fn admits(&self, bit: u8, value: u64) -> bool {
        self.mask >> bit & 1 == 0 || self.value >> bit & 1 == value
    }
}

/// The rows of one class and major opcode.
#[derive(Default)]
struct Major {
    rows: Vec<Candidate>,
    tree: OnceLock<DecisionTree>,
}

/// The rows of one class, by major opcode.
pub(super) struct Rows([Major; MAJOR_OPCODES]);

impl Rows {
    /// All rows of a class.
    pub(super) fn of(forms: &[Form], class: UnitClass) -> Rows {
        let mut majors: [Major; MAJOR_OPCODES] = std::array::from_fn(|_| Major::default());
        for (row, form) in forms.iter().enumerate().filter(|(_, form)| form.class == class) {
            assert_eq!(form.mask >> MAJOR_SHIFT, 0xf, "a row fixes the major opcode");
            majors[(form.value >> MAJOR_SHIFT) as usize].rows.push(Candidate {
                mask: form.mask,
                value: form.value,
                row: row as u16,
            });
        }
        Rows(majors)
    }

    /// The row that a slot matches: of several, one with most fixed bits.
    pub(super) fn find(&self, slot: u64) -> Option<u16> {
        let major = &self.0[(slot >> MAJOR_SHIFT) as usize % MAJOR_OPCODES];
        major
            .tree
            .get_or_init(|| DecisionTree::build(&major.rows))
            .find(slot)
    }
}

/// A decision tree over rows; its first node is the root.
struct DecisionTree {
    nodes: Vec<Node>,
    candidates: Vec<Candidate>,
}

impl DecisionTree {
    fn build(rows: &[Candidate]) -> DecisionTree {
        let mut tree = DecisionTree {
            nodes: Vec::new(),
            candidates: Vec::new(),
        };
        tree.add(rows.to_vec());
        tree
    }

    /// Adds the node for some rows and those below it. Returns its index.
    fn add(&mut self, mut rows: Vec<Candidate>) -> u16 {
        let index = self.nodes.len();
        let best = if rows.len() > LEAF_ROWS {
            best_bit(&rows)
        } else {
            None
        };
        let Some(bit) = best else {
            rows.sort_by_key(|row| Reverse(row.mask.count_ones()));
            let start = self.candidates.len() as u16;
            self.candidates.extend(rows);
            self.nodes.push(Node::Leaf {
                start,
                end: self.candidates.len() as u16,
            });
            return index as u16;
        };
        // The place of this node, which comes before those below it.
        self.nodes.push(Node::Leaf { start: 0, end: 0 });
        let branches = [0, 1].map(|value| {
            let remaining = rows.iter().copied().filter(|row| row.admits(bit, value));
            self.add(remaining.collect())
        });
        self.nodes[index] = Node::Test { bit, branches };
        index as u16
    }

    fn find(&self, slot: u64) -> Option<u16> {
        let mut index = 0;
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

/// The bit whose larger branch is smallest; `None` when no bit makes both branches smaller.
fn best_bit(rows: &[Candidate]) -> Option<u8> {
    // How many rows fix each bit to 0 and to 1: those are missing from the other branch.
    let mut fixed = [[0; 2]; MAJOR_SHIFT as usize];
    for row in rows {
        let mut bits = row.mask & ((1 << MAJOR_SHIFT) - 1);
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            fixed[bit][(row.value >> bit & 1) as usize] += 1;
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
