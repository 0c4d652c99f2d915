//! The values that the registers of a loop hold, each from where it is written to where it is read last, which may be
//! in the next iteration.

use crate::assembly::registers::{Mentioned, mentioned};
use crate::block::Block;
use crate::rename::File;

/// The files of registers that are followed.
pub(super) const FILES: [File; 3] = [File::General, File::Float, File::Predicate];

/// An instruction that reads or writes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub item: usize,
    pub writes: bool,
    pub reads: bool,
    /// Whether it is one of the next iteration.
    pub is_next: bool,
}

/// A value of each iteration.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub file: File,
    /// The register that holds it in the source.
    pub register: u8,
    /// Who writes and reads it, in order; those of the next iteration last.
    pub accesses: Vec<Access>,
    /// Whether it is the last value of its register in an iteration: what is there behind the loop.
    pub is_last: bool,
    /// Where it is.
    pub home: Home,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In its register, and nothing else ever is.
    Own,
    /// In a register of which no other instruction knows.
    Fixed(u8),
    /// In a rotating register, another one in each iteration.
    Rotating,
}

impl Value {
    /// Whether the next iteration reads it.
    pub fn is_carried(&self) -> bool {
        self.accesses.iter().any(|access| access.is_next)
    }

    /// The accesses that write it.
    pub fn writers(&self) -> impl Iterator<Item = &Access> {
        self.accesses.iter().filter(|access| access.writes)
    }

    /// Whether nobody but its writer reads it, in the next iteration: a sum. One register holds it without waiting.
    fn is_sum(&self) -> bool {
        let writer = self.accesses[0].item;
        self.is_carried() && self.accesses.iter().all(|access| access.item == writer)
    }
}

/// The values of a loop, and the registers that it writes of which one holds all it is given: by file, as bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub values: Vec<Value>,
    /// Written registers of which none of the values can be in another one.
    pub bound: Vec<(File, u8)>,
    /// Registers that are read and never written.
    pub invariant: Vec<(File, u8)>,
}

impl Values {
    /// The values of one register.
    pub fn of(&self, file: File, register: u8) -> impl Iterator<Item = &Value> {
        let is_it = move |value: &&Value| (value.file, value.register) == (file, register);
        self.values.iter().filter(is_it)
    }

    /// Whether the next iteration reads in a rotating register what an instruction writes.
    pub fn is_carried_from(&self, item: usize) -> bool {
        self.values.iter().any(|value| {
            value.home == Home::Rotating
                && value.is_carried()
                && value.writers().any(|writer| writer.item == item)
        })
    }

    /// The values of a loop's instructions without its branch; those of files that do not rotate get the registers of
    /// `private` as long as there are such.
    pub fn new(block: &Block, texts: &[&str], rotates: impl Fn(File) -> bool, private: &[u8]) -> Values {
        let named: Vec<Mentioned> = texts.iter().map(|text| mentioned(text)).collect();
        let mut values = Values::default();
        let mut private = private.iter().copied();
        for file in FILES {
            for register in file.registers() {
                values.follow(block, &named, (file, register));
            }
        }
        let own: Vec<(File, u8)> = values
            .values
            .iter()
            .filter(|value| value.is_last && (value.is_sum() || !rotates(value.file)))
            .map(|value| (value.file, value.register))
            .collect();
        let mut kept: Vec<(File, u8)> = Vec::new();
        for index in 0..values.values.len() {
            let value = &values.values[index];
            let key = (value.file, value.register);
            let count = values
                .values
                .iter()
                .filter(|other| (other.file, other.register) == key);
            let is_alone = count.count() == 1;
            let home = match (
                rotates(value.file) && !(is_alone && value.is_sum()),
                value.is_last,
            ) {
                (true, _) => Home::Rotating,
                (false, true) if is_alone && own.contains(&key) => Home::Own,
                (false, true) => Home::Fixed(value.register),
                (false, false) => match private.next() {
                    Some(register) => Home::Fixed(register),
                    None => {
                        kept.push(key);
                        Home::Own
                    }
                },
            };
            values.values[index].home = home;
        }
        // Without enough registers the values of one stay in it.
        values
            .values
            .retain(|value| !kept.contains(&(value.file, value.register)) && value.home != Home::Own);
        values.bound.extend(kept);
        values.bound.extend(own.into_iter().filter(|key| {
            let mut others = values.values.iter();
            !others.any(|value| (value.file, value.register) == *key)
        }));
        values.bound.sort_unstable();
        values.bound.dedup();
        values
    }

    /// Follows what one register holds.
    fn follow(&mut self, block: &Block, named: &[Mentioned], (file, register): (File, u8)) {
        let bit = 1u128 << register;
        let key = (file, register);
        let mut given = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        let mut can_be_elsewhere = true;
        let mut is_seen = false;
        for (item, named) in named.iter().enumerate() {
            let effects = &block.items[item].effects;
            let reads = file.all(&effects.reads) & bit != 0;
            let writes = file.all(&effects.all_writes()) & bit != 0;
            if !reads && !writes {
                continue;
            }
            is_seen = true;
            can_be_elsewhere &= (!reads || named.reads.contains(&key))
                // What is written where it is read, as the base of a load, is in one register.
                && (!writes || named.writes.contains(&key));
            // An approximation whose predicate is off writes its predicate alone.
            let is_in_any_case = effects.qualifier == 0 || effects.writes_when_off && file == File::Predicate;
            let is_whole = writes && file.all(&effects.writes) & bit != 0 && is_in_any_case;
            let access = |writes, is_next| Access {
                item,
                writes,
                reads,
                is_next,
            };
            if reads || writes && !is_whole {
                let is_written_too = writes && !is_whole;
                match values.last_mut() {
                    Some(value) => value.accesses.push(access(is_written_too, false)),
                    None => given.push(access(is_written_too, true)),
                }
            }
            if is_whole {
                values.push(Value {
                    file,
                    register,
                    accesses: vec![Access {
                        item,
                        writes: true,
                        reads: false,
                        is_next: false,
                    }],
                    is_last: false,
                    home: Home::Own,
                });
            }
        }
        if !is_seen {
            return;
        }
        // What is written only in part before it is written as a whole goes on from the iteration before.
        can_be_elsewhere &= given.iter().all(|access| !access.writes);
        let is_written = !values.is_empty() || given.iter().any(|access| access.writes);
        if !is_written {
            self.invariant.push(key);
        } else if !can_be_elsewhere || values.is_empty() {
            self.bound.push(key);
        } else if let Some(last) = values.last_mut() {
            last.accesses.extend(given);
            last.is_last = true;
            self.values.append(&mut values);
        }
    }
}
