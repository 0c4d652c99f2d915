//! How much issues in one cycle: the smallest sets of instructions that do not fit, by what they ask of dispersal.

use crate::bundle::Packer;

/// Instructions that issue in one cycle at most.
pub const WIDTH: usize = 6;

/// What a cycle can hold.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// For each signature, how many items of it fit into one cycle.
    pub limits: Vec<usize>,
    /// Numbers of items by signature of which one too many is in each: no part of them fits less.
    pub excesses: Vec<Vec<usize>>,
}

impl Capacity {
    /// The capacity for items whose numbers by signature are at most `present`.
    pub fn new(packer: &Packer<'_>, present: &[usize]) -> Capacity {
        let mut capacity = Capacity {
            limits: vec![0; present.len()],
            excesses: Vec::new(),
        };
        for total in 1..=WIDTH + 1 {
            let mut counts = vec![0; present.len()];
            capacity.extend(packer, present, &mut counts, 0, total);
        }
        for (kind, limit) in capacity.limits.iter_mut().enumerate() {
            let alone = capacity
                .excesses
                .iter()
                .find(|counts| counts.iter().sum::<usize>() == counts[kind]);
            *limit = alone.map_or(present[kind], |counts| counts[kind] - 1);
        }
        capacity
    }

    /// Tries every multiset of `left` more items from signature `kind` on.
    fn extend(
        &mut self,
        packer: &Packer<'_>,
        present: &[usize],
        counts: &mut Vec<usize>,
        kind: usize,
        left: usize,
    ) {
        if left == 0 {
            let covers = |excess: &Vec<usize>| {
                excess
                    .iter()
                    .zip(counts.iter())
                    .all(|(least, count)| least <= count)
            };
            let is_known = self.excesses.iter().any(covers);
            if !is_known && !packer.fits(counts) {
                self.excesses.push(counts.clone());
            }
            return;
        }
        if kind == present.len() {
            return;
        }
        for count in 0..=left.min(present[kind]) {
            counts[kind] = count;
            let covers = |excess: &Vec<usize>| {
                excess
                    .iter()
                    .zip(counts.iter())
                    .all(|(least, count)| least <= count)
            };
            if self.excesses.iter().any(covers) {
                break;
            }
            self.extend(packer, present, counts, kind + 1, left - count);
        }
        counts[kind] = 0;
    }
}
