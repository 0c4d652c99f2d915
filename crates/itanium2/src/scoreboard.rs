//! When registers are ready, and what is booked when they are not.
//!
//! Registers are named as the hardware names them behind its rename stage: a stacked register is the same register
//! in the caller and in the callee, a rotating one the same before and after a rotation.

use sidestep_ia64::encoding::Resource;
use sidestep_ia64::execution::Frame;
use sidestep_ia64::registers::frame::{ROTATING_FLOATING, ROTATING_PREDICATES, STACKED_REGISTERS};

use crate::parameters::{Cost, Parameters};
use crate::pmu::stall::Stall;

/// A register as an instruction names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand(u16);

const STACKED: u16 = 1 << 14;
const ROTATING_FLOAT: u16 = 2 << 14;
const ROTATING_PREDICATE: u16 = 3 << 14;
const NUMBER: u16 = (1 << 14) - 1;

const FLOATS: u16 = 128;
const PREDICATES: u16 = 256;
const BRANCHES: u16 = 320;
const APPLICATIONS: u16 = 328;
const REGISTERS: usize = 456;

impl Operand {
    /// A register that is always ready (`r0`).
    pub const ALWAYS: Operand = Operand(0);

    /// The operand of a resource; `None` for those that are not on the scoreboard.
    pub fn of(resource: Resource) -> Option<Operand> {
        Some(Operand(match resource {
            Resource::General(register @ 0..32) => register.into(),
            Resource::General(register) => STACKED | u16::from(register - 32),
            Resource::Float(register @ 0..32) => FLOATS + u16::from(register),
            Resource::Float(register) => ROTATING_FLOAT | u16::from(register - 32),
            Resource::Predicate(0) => 0,
            Resource::Predicate(register @ 0..16) => PREDICATES + u16::from(register),
            Resource::Predicate(register) => ROTATING_PREDICATE | u16::from(register - 16),
            Resource::Branch(register) => BRANCHES + u16::from(register),
            Resource::Application(register) => APPLICATIONS + u16::from(register & 127),
            _ => return None,
        }))
    }
}

/// How a source is used: what bypasses apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    /// By the ALU, shifts, and everything else.
    Alu,
    /// As an address.
    Address,
    /// By a multimedia operation.
    Multimedia,
    /// By `getf` or a floating-point store.
    FloatStore,
    /// As the qualifying predicate of a branch, or its target register.
    Branch,
}

/// How many ways to use a source there are.
const USES: usize = 5;

/// What produced a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Producer {
    /// The ALU, and other one-cycle operations.
    Alu,
    /// A load.
    Load,
    /// A multimedia operation.
    Multimedia,
    /// Floating-point arithmetic.
    Float,
    /// `setf`.
    SetFloat,
    /// `getf`, moves from branch and predicate registers.
    Transfer,
    /// A compare or bit test.
    Compare,
    /// A floating-point compare.
    FloatCompare,
    /// A move to a branch register or an I-unit application register.
    ToBranch,
    /// A system register, `probe` and its like.
    System,
}

const PRODUCERS: usize = 10;

impl Producer {
    /// All of them, in order.
    pub const ALL: [Producer; PRODUCERS] = [
        Producer::Alu,
        Producer::Load,
        Producer::Multimedia,
        Producer::Float,
        Producer::SetFloat,
        Producer::Transfer,
        Producer::Compare,
        Producer::FloatCompare,
        Producer::ToBranch,
        Producer::System,
    ];
}

/// How much later, or earlier, than by the producer's latency a use can have its value.
#[derive(Clone, Copy, Debug)]
pub struct Bypass {
    /// What produced the value.
    pub producer: Producer,
    /// What uses it.
    pub used: Use,
    /// Cycles more.
    pub later: Option<Cost>,
    /// Cycles fewer.
    pub earlier: Option<Cost>,
}

impl Bypass {
    /// Cycles more, or fewer if negative.
    pub fn more(&self, parameters: &Parameters) -> i8 {
        let cycles = |cost: Option<Cost>| cost.map_or(0, |cost| parameters.cost(cost) as i8);
        cycles(self.later) - cycles(self.earlier)
    }
}

const fn later(producer: Producer, used: Use, cost: Cost) -> Bypass {
    Bypass {
        producer,
        used,
        later: Some(cost),
        earlier: None,
    }
}

const fn earlier(producer: Producer, used: Use, cost: Cost) -> Bypass {
    Bypass {
        producer,
        used,
        later: None,
        earlier: Some(cost),
    }
}

/// The bypasses that are not of the producer's latency; each cost names its source.
pub const BYPASSES: &[Bypass] = &[
    later(Producer::Load, Use::Address, Cost::LoadToAddress),
    later(Producer::Load, Use::Multimedia, Cost::LoadToMultimedia),
    later(Producer::Alu, Use::Multimedia, Cost::AluToMultimedia),
    later(Producer::Multimedia, Use::Alu, Cost::MultimediaToAlu),
    later(Producer::Multimedia, Use::Address, Cost::MultimediaToAlu),
    later(Producer::SetFloat, Use::FloatStore, Cost::SetFloatToStore),
    earlier(Producer::Compare, Use::Branch, Cost::ComparePredicate),
    earlier(Producer::ToBranch, Use::Branch, Cost::ToBranch),
    Bypass {
        producer: Producer::FloatCompare,
        used: Use::Branch,
        later: Some(Cost::FloatCompareToBranch),
        earlier: Some(Cost::FloatCompare),
    },
];

#[derive(Clone, Copy)]
struct Entry {
    ready: u64,
    producer: Producer,
}

/// How registers are renamed at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renaming {
    /// The physical number of r32.
    bottom: u32,
    rotating: u32,
    general: u32,
    float: u32,
    predicate: u32,
}

impl Renaming {
    /// How the processor renames registers in a frame.
    pub fn of(frame: &Frame) -> Renaming {
        let marker = frame.marker;
        Renaming {
            bottom: (frame.depth % u64::from(STACKED_REGISTERS)) as u32,
            rotating: marker.rotating,
            general: marker.rename_general,
            float: marker.rename_floating,
            predicate: marker.rename_predicate,
        }
    }

    /// Whether its bases lie inside what rotates. A program may return to a frame whose do not, where several names
    /// mean one register.
    pub fn is_regular(&self) -> bool {
        self.rotating <= STACKED_REGISTERS
            && (self.general == 0 || self.general < self.rotating)
            && self.float < ROTATING_FLOATING
            && self.predicate < ROTATING_PREDICATES
    }

    /// A number for how it goes on to another, both of them regular: registers with the same names in the one have the
    /// same names in the other wherever the number is the same.
    pub fn change_to(&self, next: &Renaming) -> u64 {
        let distance = |from: u32, to: u32, size: u32| match to >= from {
            true => u64::from(to - from),
            false => u64::from(to + size - from),
        };
        let fields = [
            (distance(self.bottom, next.bottom, STACKED_REGISTERS), 7),
            (self.rotating.into(), 7),
            (next.rotating.into(), 7),
            (distance(self.float, next.float, ROTATING_FLOATING), 7),
            (distance(self.predicate, next.predicate, ROTATING_PREDICATES), 6),
            // Where the rotating region moves as a whole its bases count, else how far they are apart.
            match self.bottom == next.bottom && self.rotating == next.rotating {
                true => (distance(self.general, next.general, self.rotating), 7),
                false => (self.general.into(), 7),
            },
            match self.bottom == next.bottom && self.rotating == next.rotating {
                true => (0, 7),
                false => (next.general.into(), 7),
            },
        ];
        fields.iter().fold(0, |word, (field, bits)| word << bits | field)
    }

    /// The index on the board of a register by its name: by the index that it has where nothing is renamed.
    fn index(&self, name: usize) -> usize {
        let wrap = |number: u32, size: u32| if number >= size { number - size } else { number };
        let within = |first: usize| (name - first) as u32;
        match name {
            32..128 => {
                let number = within(32);
                let rotated = match number < self.rotating {
                    true => wrap(number + self.general, self.rotating),
                    false => number,
                };
                32 + wrap(self.bottom + rotated, STACKED_REGISTERS) as usize
            }
            FIRST_ROTATING_FLOAT..256 => {
                let number = within(FIRST_ROTATING_FLOAT);
                FIRST_ROTATING_FLOAT + wrap(number + self.float, ROTATING_FLOATING) as usize
            }
            FIRST_ROTATING_PREDICATE..320 => {
                let number = within(FIRST_ROTATING_PREDICATE);
                FIRST_ROTATING_PREDICATE + wrap(number + self.predicate, ROTATING_PREDICATES) as usize
            }
            name => name,
        }
    }

    /// The name of a register by its index on the board.
    fn name(&self, index: usize) -> usize {
        let back = |number: u32, base: u32, size: u32| match number >= base {
            true => number - base,
            false => number + size - base,
        };
        let within = |first: usize| (index - first) as u32;
        match index {
            32..128 => {
                let rotated = back(within(32), self.bottom, STACKED_REGISTERS);
                let number = match rotated < self.rotating {
                    true => back(rotated, self.general, self.rotating),
                    false => rotated,
                };
                32 + number as usize
            }
            FIRST_ROTATING_FLOAT..256 => {
                let number = back(within(FIRST_ROTATING_FLOAT), self.float, ROTATING_FLOATING);
                FIRST_ROTATING_FLOAT + number as usize
            }
            FIRST_ROTATING_PREDICATE..320 => {
                let number = within(FIRST_ROTATING_PREDICATE);
                FIRST_ROTATING_PREDICATE + back(number, self.predicate, ROTATING_PREDICATES) as usize
            }
            index => index,
        }
    }
}

const FIRST_ROTATING_FLOAT: usize = FLOATS as usize + 32;
const FIRST_ROTATING_PREDICATE: usize = PREDICATES as usize + 16;

/// The most cycles by which a bypass may be later than its producer's latency for [`Scoreboard::is_quiet`] to hold.
const BYPASS_MAX: u64 = 2;

/// Words that have a bit for each register.
const WORDS: usize = REGISTERS.div_ceil(64);

/// The registers that are not ready yet.
pub struct Scoreboard {
    entries: Box<[Entry; REGISTERS]>,
    /// Which registers may not be ready, a bit each by their index: all that are not, and such as became ready since
    /// somebody [looked](Scoreboard::forget_ready).
    awaited: [u64; WORDS],
    /// The cycle from which on every register is ready for every use.
    quiet: u64,
    renaming: Renaming,
    /// Cycles more, or fewer, for a use of a producer's value.
    bypass: [[i8; USES]; PRODUCERS],
    /// The most cycles more for any use of a producer's value.
    latest: [u64; PRODUCERS],
}

impl Scoreboard {
    /// All registers ready.
    pub fn new(parameters: &Parameters) -> Scoreboard {
        let mut bypass = [[0; USES]; PRODUCERS];
        for row in BYPASSES {
            bypass[row.producer as usize][row.used as usize] = row.more(parameters);
        }
        let latest = bypass.map(|uses| uses.iter().fold(0, |most, more| most.max(*more)) as u64);
        Scoreboard {
            entries: Box::new(
                [Entry {
                    ready: 0,
                    producer: Producer::Alu,
                }; REGISTERS],
            ),
            awaited: [0; WORDS],
            quiet: 0,
            renaming: Renaming::default(),
            bypass,
            latest,
        }
    }

    /// Notes how the processor renames registers in a frame.
    pub fn rename(&mut self, frame: &Frame) {
        self.renaming = Renaming::of(frame);
    }

    /// How registers are renamed.
    pub fn renaming(&self) -> Renaming {
        self.renaming
    }

    /// Renames registers.
    pub fn set_renaming(&mut self, renaming: Renaming) {
        self.renaming = renaming;
    }

    /// Whether no bypass is later than the board expects.
    pub fn has_usual_bypasses(&self) -> bool {
        let bypasses = self.bypass.as_flattened();
        bypasses.iter().all(|more| i64::from(*more) <= BYPASS_MAX as i64)
    }

    /// No longer looks for registers that no use behind `cycle` could wait for.
    pub fn forget_ready(&mut self, cycle: u64) {
        let (entries, latest) = (&self.entries, &self.latest);
        for (first, word) in (0..).step_by(64).zip(&mut self.awaited) {
            for bit in bits(*word) {
                if !is_outstanding(&entries[first + bit], latest, cycle) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// The registers that a use behind `cycle` could wait for, each by its name, with when it is ready and its
    /// producer; in the order of the board.
    pub fn outstanding(&self, cycle: u64) -> impl Iterator<Item = (usize, u64, Producer)> + '_ {
        let words = (0..).step_by(64).zip(self.awaited);
        let awaited = words.flat_map(|(first, word)| bits(word).map(move |bit| first + bit));
        let entries = awaited.map(|index| (index, &self.entries[index]));
        entries
            .filter(move |(_, entry)| is_outstanding(entry, &self.latest, cycle))
            .map(|(index, entry)| (self.renaming.name(index), entry.ready, entry.producer))
    }

    /// The name of the register at a place.
    pub fn name(&self, place: u16) -> usize {
        self.renaming.name(usize::from(place))
    }

    /// The place of the register with a name.
    pub fn place_of(&self, name: usize) -> u16 {
        self.renaming.index(name) as u16
    }

    /// Forgets what is outstanding, and puts back registers by their names.
    pub fn put_back(&mut self, outstanding: impl Iterator<Item = (usize, u64, Producer)>) {
        for (first, word) in (0..).step_by(64).zip(std::mem::take(&mut self.awaited)) {
            for bit in bits(word) {
                self.entries[first + bit].ready = 0;
            }
        }
        self.quiet = 0;
        for (name, ready, producer) in outstanding {
            self.set(self.place_of(name), ready, producer);
        }
    }

    #[inline]
    fn index(&self, operand: Operand) -> usize {
        let number = u32::from(operand.0 & NUMBER);
        let wrap = |number: u32, size: u32| if number >= size { number - size } else { number };
        let index = match operand.0 & !NUMBER {
            0 => number,
            STACKED => {
                let rotated = if number < self.renaming.rotating {
                    wrap(number + self.renaming.general, self.renaming.rotating)
                } else {
                    number
                };
                32 + wrap(self.renaming.bottom + rotated, STACKED_REGISTERS)
            }
            ROTATING_FLOAT => u32::from(FLOATS) + 32 + wrap(number + self.renaming.float, ROTATING_FLOATING),
            _ => u32::from(PREDICATES) + 16 + wrap(number + self.renaming.predicate, ROTATING_PREDICATES),
        };
        index as usize % REGISTERS
    }

    /// Whether nothing is outstanding at `cycle`.
    #[inline]
    pub fn is_quiet(&self, cycle: u64) -> bool {
        self.quiet <= cycle
    }

    /// When a register is ready for a use, and how waiting for it is booked.
    #[inline]
    pub fn ready(&self, operand: Operand, used: Use) -> (u64, Stall) {
        let index = self.index(operand);
        let entry = self.entries[index];
        let more = self.bypass[entry.producer as usize][used as usize];
        (
            entry.ready.saturating_add_signed(more.into()),
            stall(index, entry.producer),
        )
    }

    /// When all predicates are ready.
    pub fn predicates_ready(&self) -> u64 {
        let range = usize::from(PREDICATES)..usize::from(BRANCHES);
        self.entries[range]
            .iter()
            .map(|entry| entry.ready)
            .max()
            .unwrap_or(0)
    }

    /// The place of a register on the board, for [`Scoreboard::set`] once its instruction has issued.
    #[inline]
    pub fn place(&self, operand: Operand) -> u16 {
        self.index(operand) as u16
    }

    /// Notes when the register at a place will be ready.
    #[inline]
    pub fn set(&mut self, place: u16, ready: u64, producer: Producer) {
        self.quiet = self.quiet.max(ready + BYPASS_MAX);
        if place != 0 {
            self.entries[usize::from(place)] = Entry { ready, producer };
            self.awaited[usize::from(place) / 64] |= 1 << (place % 64);
        }
    }

    /// Notes when all predicates will be ready.
    pub fn set_predicates(&mut self, ready: u64) {
        for place in PREDICATES..BRANCHES {
            self.set(place, ready, Producer::Compare);
        }
    }
}

/// Whether a use behind `cycle` could wait for a register.
fn is_outstanding(entry: &Entry, latest: &[u64; PRODUCERS], cycle: u64) -> bool {
    entry.ready + latest[entry.producer as usize] > cycle + 1
}

/// The bits of a word that are set, from the least on.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    let rest = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
    rest.take_while(|rest| *rest != 0)
        .map(|rest| rest.trailing_zeros() as usize)
}

fn stall(index: usize, producer: Producer) -> Stall {
    match index as u16 {
        0..FLOATS => match producer {
            Producer::Load | Producer::System | Producer::Transfer => Stall::General,
            _ => Stall::GeneralGeneral,
        },
        FLOATS..PREDICATES => Stall::FloatRegister,
        PREDICATES..BRANCHES => Stall::Predicate,
        _ => Stall::SystemRegister,
    }
}
