//! Registers chosen anew: values that share a register need not wait for each other.
//!
//! A *web* is a value from where it is written to where it is read last; what is added to a pointer in passing keeps
//! its web, as does what is written under a predicate. Webs of general and predicate registers that nobody expects in
//! their registers get others: first one each, of names that the code does not use, which shows what schedule the
//! values alone allow; then, for that schedule, real ones.

use sidestep_ia64::encoding::{Operand, Unit, decode};
use sidestep_itanium2::Parameters;

use crate::block::{Block, Item};
use crate::exact::Pressure;
use crate::sequencing::Parts;

/// Registers by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum File {
    /// General registers.
    General,
    /// Floating-point registers.
    Float,
    /// Predicate registers.
    Predicate,
}

/// A value in a register.
#[derive(Clone, Debug)]
struct Web {
    file: File,
    register: u8,
    /// The items that write or read it, in order.
    items: Vec<usize>,
    /// Those that write it.
    writers: Vec<usize>,
    /// Whether it was there before the block.
    is_given: bool,
    /// Whether it has to be in its register.
    is_fixed: bool,
}

/// A register in use: from a cycle and an item to a cycle and an item.
#[derive(Clone, Copy, Debug)]
struct Busy {
    file: File,
    register: u8,
    first: (u32, usize),
    last: (u32, usize),
}

impl Busy {
    /// Whether one ends before the other begins, by cycles, and in one cycle by the order of the items.
    fn is_apart(&self, other: &Busy) -> bool {
        self.last < other.first || other.last < self.first
    }
}

impl Web {
    /// From its first to its last item; from the start, if it was there before; to the end of a cycle in which it is
    /// written last, as nothing else is written to the register in that cycle.
    fn span(&self, cycles: &[u32]) -> Busy {
        let places = self.items.iter().map(|item| (cycles[*item], *item));
        let first = places.clone().min().unwrap_or_default();
        let last = places.max().unwrap_or_default();
        let is_written = self.writers.iter().any(|item| cycles[*item] == last.0);
        Busy {
            file: self.file,
            register: self.register,
            first: if self.is_given { (0, 0) } else { first },
            last: if is_written { (last.0, usize::MAX) } else { last },
        }
    }
}

/// The registers of an item: by what it reads and by what it writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Registers that it reads, and what they become.
    pub reads: Vec<(File, u8, u8)>,
    /// The same of those that it writes and does not read.
    pub writes: Vec<(File, u8, u8)>,
}

impl Names {
    /// Of those of a check, the names of the load that it is about: what the check reads the load writes. The address
    /// keeps its register.
    pub(crate) fn of_checked(&self) -> Names {
        let (reads, writes) = self.reads.iter().partition(|(file, ..)| *file == File::Predicate);
        Names { reads, writes }
    }
}

/// The webs of a block.
#[derive(Clone, Debug)]
pub struct Webs {
    webs: Vec<Web>,
    /// By item, the webs that it reads, and those that it writes.
    reads: Vec<Vec<usize>>,
    writes: Vec<Vec<usize>>,
}

/// A register for each web.
pub type Assignment = Vec<u8>;

impl File {
    /// The registers of a set, as bits.
    pub(crate) fn all(self, parts: &Parts) -> u128 {
        match self {
            File::General => parts.general & !1,
            File::Float => parts.float & !3,
            File::Predicate => u128::from(parts.predicate & !1),
        }
    }

    /// The registers whose values are not fixed.
    pub(crate) fn registers(self) -> std::ops::Range<u8> {
        match self {
            File::General => 1..128,
            File::Float => 2..128,
            File::Predicate => 1..64,
        }
    }
}

/// Whether two registers of an instruction are fields of it, so that others can stand there.
fn has_field(item: &Item, file: File, register: u8, is_written: bool) -> bool {
    fields(item, file, is_written)
        .any(|(shift, bits)| item.instruction.slot >> shift & ((1 << bits) - 1) == u64::from(register))
}

/// The fields of an instruction that name registers of a file which it writes without reading, or which it reads: the
/// lowest bit and the number of bits.
fn fields(item: &Item, file: File, is_written: bool) -> impl Iterator<Item = (u8, u8)> {
    let form = item.instruction.form();
    let qualifier = (form.predicated && file == File::Predicate && !is_written).then_some((0, 6));
    let operands = form
        .operands
        .iter()
        .filter_map(move |operand| match (file, is_written, operand) {
            (File::General, true, Operand::R1) => Some((6, 7)),
            (File::General, false, Operand::R2) => Some((13, 7)),
            (File::General, false, Operand::R3) => Some((20, 7)),
            (File::General, false, operand) if is_indirect(operand) => Some((20, 7)),
            (File::Predicate, true, Operand::P1) => Some((6, 6)),
            (File::Predicate, true, Operand::P2) => Some((27, 6)),
            _ => None,
        });
    operands.chain(qualifier)
}

/// Whether an operand is at an address, or has a number, that is in the register of bits 20 to 26.
fn is_indirect(operand: &Operand) -> bool {
    use Operand as O;
    matches!(
        operand,
        O::Memory | O::Cpuid | O::Dbr | O::Dtr | O::Itr | O::Ibr | O::Msr | O::Pkr | O::Pmc | O::Pmd | O::Rr
    )
}

impl Webs {
    /// The webs of a block.
    pub fn new(block: &Block) -> Webs {
        let mut webs = Webs {
            webs: Vec::new(),
            reads: vec![Vec::new(); block.items.len()],
            writes: vec![Vec::new(); block.items.len()],
        };
        for file in [File::General, File::Predicate] {
            for register in file.registers() {
                webs.follow(block, file, register);
            }
        }
        webs
    }

    /// The webs of one register.
    fn follow(&mut self, block: &Block, file: File, register: u8) {
        let fresh = |is_given| Web {
            file,
            register,
            items: Vec::new(),
            writers: Vec::new(),
            is_given,
            is_fixed: is_given,
        };
        let bit = 1u128 << register;
        let mut web = fresh(true);
        for (index, item) in block.items.iter().enumerate() {
            let effects = &item.effects;
            let is_read = file.all(&effects.reads) & bit != 0;
            let is_written = file.all(&effects.all_writes()) & bit != 0;
            if item.is_exit() && file.all(&block.dead[index]) & bit == 0 {
                web.is_fixed = true;
            }
            if !is_read && !is_written {
                continue;
            }
            // What keeps a part of the value, or the value if a predicate is off, goes on with its web.
            let is_kept = is_written
                && (is_read && !has_field(item, file, register, true)
                    || effects.qualifier != 0 && !effects.writes_when_off
                    || file == File::Predicate && file.all(&effects.writes) & bit == 0);
            if is_read || is_kept {
                web.items.push(index);
                web.is_fixed |= is_read && !has_field(item, file, register, false);
                self.reads[index].push(self.webs.len());
            }
            if is_kept {
                web.is_fixed |= file == File::Predicate && !has_field(item, file, register, true);
                web.writers.push(index);
                self.writes[index].push(self.webs.len());
            } else if is_written {
                self.webs.push(std::mem::replace(&mut web, fresh(false)));
                web.items.push(index);
                web.writers.push(index);
                web.is_fixed = !has_field(item, file, register, true);
                self.writes[index].push(self.webs.len());
            }
        }
        // Behind the block everything is read that no exit says to be dead.
        web.is_fixed |= block.items.last().is_none_or(|last| !last.is_exit());
        self.webs.push(web);
    }

    /// Which webs can get other registers, of those with a register that is dead wherever the block may be left.
    fn is_free(&self, web: usize, pool: &[(File, u8)]) -> bool {
        let web = &self.webs[web];
        !web.is_fixed && pool.contains(&(web.file, web.register))
    }

    /// Registers that can hold any value for a while: dead at the end, or written before it.
    fn pool(&self, block: &Block) -> Vec<(File, u8)> {
        let last = block.items.len().checked_sub(1);
        let mut pool = Vec::new();
        for file in [File::General, File::Predicate] {
            for register in file.registers() {
                let bit = 1u128 << register;
                let is_dead = |item: usize| file.all(&block.dead[item]) & bit != 0;
                let ends = last.is_some_and(|last| block.items[last].is_exit() && is_dead(last))
                    || self
                        .webs
                        .iter()
                        .any(|web| web.file == file && web.register == register && !web.is_given);
                if ends {
                    pool.push((file, register));
                }
            }
        }
        pool
    }

    /// The values that can get other registers, by kind of register, and how many of these there are less `spared`.
    pub fn pressures(&self, block: &Block, spared: usize) -> Vec<Pressure> {
        let pool = self.pool(block);
        let of = |file: File| Pressure {
            values: (0..self.webs.len())
                .filter(|web| self.webs[*web].file == file && self.is_free(*web, &pool))
                .map(|web| self.webs[web].items.clone())
                .collect(),
            registers: pool
                .iter()
                .filter(|(other, _)| *other == file)
                .count()
                .saturating_sub(spared),
        };
        vec![of(File::General), of(File::Predicate)]
    }

    /// The block with a name of its own for each value that can have one, as far as there are such.
    pub fn alone(&self, block: &Block, parameters: &Parameters) -> Block {
        let pool = self.pool(block);
        let mut used = Parts::NONE;
        for item in &block.items {
            used = used.or(item.effects.reads).or(item.effects.all_writes());
        }
        // Moves of all predicates name none of them.
        let named = self
            .webs
            .iter()
            .filter(|web| web.file == File::Predicate && !web.is_fixed);
        let named = named.fold(0u64, |set, web| set | 1 << web.register);
        let mut general = (32..128).filter(|register| used.general >> register & 1 == 0);
        let mut predicate = (16..64).filter(|register| named >> register & 1 == 0);
        let mut assignment: Assignment = Vec::new();
        for (index, web) in self.webs.iter().enumerate() {
            let next = match (self.is_free(index, &pool), web.file) {
                (false, _) => None,
                (true, File::General) => general.next(),
                (true, File::Predicate) => predicate.next(),
                (true, File::Float) => None,
            };
            assignment.push(next.unwrap_or(web.register));
        }
        let order: Vec<usize> = (0..block.items.len()).collect();
        let mut alone = self.renamed(block, &assignment, &order, parameters);
        // Nobody reads these anywhere else.
        let mut new = Parts::NONE;
        for (web, register) in self.webs.iter().zip(&assignment) {
            match web.file {
                _ if web.register == *register => {}
                File::General => new.general |= 1 << register,
                File::Predicate => new.predicate |= 1 << register,
                File::Float => new.float |= 1 << register,
            }
        }
        for dead in &mut alone.dead {
            *dead = dead.or(new);
        }
        alone
    }

    /// Registers for the webs if the items issue in these cycles; `None` if there are not enough of them. In the cycle
    /// in which a register is read last it is written by instructions of a later place alone.
    pub fn allocate(&self, block: &Block, cycles: &[u32]) -> Option<Assignment> {
        let pool = self.pool(block);
        let mut busy: Vec<Busy> = Vec::new();
        // What is read where a branch goes is there until it has been passed.
        let passed = (0..block.items.len().saturating_sub(1)).filter(|item| block.items[*item].is_exit());
        for item in passed {
            let read = pool
                .iter()
                .filter(|(file, register)| file.all(&block.dead[item]) >> register & 1 == 0);
            busy.extend(read.map(|(file, register)| Busy {
                file: *file,
                register: *register,
                first: (0, 0),
                last: (cycles[item], item),
            }));
        }
        for (index, web) in self.webs.iter().enumerate() {
            if self.is_free(index, &pool) || web.items.is_empty() {
                continue;
            }
            // The last web of a register holds it to the end, if it is not dead there.
            let is_last = !self.webs[index + 1..]
                .iter()
                .any(|other| other.file == web.file && other.register == web.register);
            let mut span = web.span(cycles);
            if is_last {
                span.last = (u32::MAX, usize::MAX);
            }
            busy.push(span);
        }
        let mut assignment: Assignment = self.webs.iter().map(|web| web.register).collect();
        let mut free: Vec<usize> = (0..self.webs.len())
            .filter(|index| self.is_free(*index, &pool) && !self.webs[*index].items.is_empty())
            .collect();
        free.sort_by_key(|index| (self.webs[*index].span(cycles).first, *index));
        for index in free {
            let web = &self.webs[index];
            let wanted = web.span(cycles);
            let fits = |register: u8| {
                let same = busy
                    .iter()
                    .filter(|busy| (busy.file, busy.register) == (web.file, register));
                same.into_iter().all(|busy| busy.is_apart(&wanted))
            };
            // Of several the one that was free for the shortest time: others stay for values that last long.
            let since = |register: u8| {
                let same = busy
                    .iter()
                    .filter(|busy| (busy.file, busy.register) == (web.file, register));
                same.map(|busy| busy.last)
                    .filter(|last| *last <= wanted.first)
                    .max()
            };
            let candidates = pool
                .iter()
                .filter(|(file, register)| *file == web.file && fits(*register))
                .map(|(_, register)| *register);
            let own = Some(web.register).filter(|register| fits(*register));
            let register = own.or(candidates.max_by_key(|register| since(*register)))?;
            assignment[index] = register;
            busy.push(Busy { register, ..wanted });
        }
        Some(assignment)
    }

    /// Whether an item makes a value, and no other value lasts longer if it issues in a later cycle.
    pub fn shortens(&self, item: usize, later: u32, cycles: &[u32]) -> bool {
        let lasts = |web: &usize| {
            let web = &self.webs[*web];
            web.is_fixed
                || web
                    .items
                    .iter()
                    .any(|other| *other != item && cycles[*other] >= later)
        };
        !self.writes[item].is_empty() && self.reads[item].iter().all(lasts)
    }

    /// The block with other registers and in another order.
    pub fn renamed(
        &self,
        block: &Block,
        assignment: &Assignment,
        order: &[usize],
        parameters: &Parameters,
    ) -> Block {
        let mut renamed = Block::default();
        for item in order {
            renamed.items.push(rename(
                &block.items[*item],
                &self.names(*item, assignment),
                parameters,
            ));
            renamed.objects.push(block.objects[*item]);
            renamed.areas.push(block.areas[*item]);
            renamed.resident.push(block.resident[*item]);
            renamed.dead.push(block.dead[*item]);
            renamed.targets.push(block.targets[*item]);
        }
        renamed.is_addressing_kept = block.is_addressing_kept;
        renamed
    }

    /// What the registers of an item become.
    pub fn names(&self, item: usize, assignment: &Assignment) -> Names {
        let pairs = |webs: &[usize]| {
            let pairs = webs.iter().map(|web| {
                let of = &self.webs[*web];
                (of.file, of.register, assignment[*web])
            });
            pairs.filter(|(_, from, to)| from != to).collect()
        };
        Names {
            reads: pairs(&self.reads[item]),
            writes: pairs(&self.writes[item]),
        }
    }
}

/// An item with other registers.
fn rename(item: &Item, names: &Names, parameters: &Parameters) -> Item {
    if *names == Names::default() {
        return item.clone();
    }
    if let Some(load) = item.recovers {
        let load = Item::new(load, parameters).expect("a load can be placed");
        let renamed = rename(&load, &names.of_checked(), parameters);
        return Item::check(&renamed.instruction, parameters);
    }
    let mut slot = item.instruction.slot;
    for (is_written, pairs) in [(false, &names.reads), (true, &names.writes)] {
        for (file, from, to) in pairs {
            for (shift, bits) in fields(item, *file, is_written) {
                let mask = (1u64 << bits) - 1;
                if item.instruction.slot >> shift & mask == u64::from(*from) {
                    slot = slot & !(mask << shift) | u64::from(*to) << shift;
                }
            }
        }
    }
    let unit = match item.instruction.unit {
        Unit::L => Unit::X,
        unit => unit,
    };
    let long = match item.instruction.is_long() {
        true => item.instruction.long_slot(),
        false => 0,
    };
    let instruction = decode(unit, slot, long).expect("other registers of the same instruction");
    Item::new(instruction, parameters).expect("other registers can be placed where these could")
}
