//! Where a processor's hot state lies in memory, for back ends that emit code for the host.
//!
//! All numbers are bytes from the start of a [`Processor`], unless they say otherwise. What nearly every instruction
//! touches comes first, so that an x86-64 instruction reaches it by a displacement of one byte. General registers stand
//! by their numbers as the rotation shows them ([`GENERAL`], [`GENERAL_BASE`]), predicates likewise, and floating-point
//! registers unrotated.
//!
//! A back end may write [`IP`], [`SLOT`], [`BLOCK_START`], [`TARGET`], [`RETIRED`], [`COMPLETED`], [`PREDICATES`],
//! [`BRANCH`], [`FLOATING`] but f0 and f1, the values of [`GENERAL`] but r0, in [`APPLICATION`] CCV, UNAT, PFS, LC and
//! EC with values that a guest may write, and may set PSR.mfl and mfh in [`STATUS`]. Where the processor's function
//! would do no more, it may change [`FRAME_SIZE`], [`FRAME_LOCALS`] and [`FRAME_ROTATING`] as `alloc` does, those with
//! [`GENERAL_BASE`], [`STACK_POSITION`], PFS and EC as `br.call` and `br.ret` do, and the three rename bases, with the
//! registers and predicates that they rename, as a rotation does, and the table of advanced loads as those and checks
//! of them do.
//! What else it changes, it changes through the processor's functions, which know what depends on it. Once it has
//! changed [`GENERAL_BASE`] it calls [`Processor::find_frame`] before any other function.

use std::mem::offset_of;

use crate::alat::AdvancedLoads;
use crate::float::division::Divisions;
use crate::float::register_file::FloatingRegisters;
use crate::memory::tlb::TranslationCache;
use crate::memory::windows::WindowTable;
use crate::processor::Processor;
use crate::processor::execution::Gathered;
use crate::processor::register_stack::RegisterStack;
use crate::registers::frame::FrameMarker;
use crate::registers::general::GeneralRegisters;

/// The table's rows: a name, where it lies, and what is there.
macro_rules! offsets {
    ($($(#[$meta:meta])* $name:ident = $offset:expr;)*) => {
        $($(#[$meta])* pub const $name: usize = $offset;)*

        #[cfg(test)]
        const TABLE: &[(&str, usize)] = &[$((stringify!($name), $name)),*];
    };
}

offsets! {
    /// The address of the bundle where execution goes on: 64 bits.
    IP = offset_of!(Processor, ip);
    /// Instructions retired: 64 bits.
    RETIRED = offset_of!(Processor, retired);
    /// The predicate registers, p0 the lowest bit, which is one: 64 bits.
    PREDICATES = offset_of!(Processor, predicates);
    /// The processor status register: 64 bits.
    STATUS = offset_of!(Processor, status);
    /// The address of the first bundle of the block that runs: 64 bits.
    BLOCK_START = offset_of!(Processor, block_start);
    /// Where the branch that was just taken goes: 64 bits.
    TARGET = offset_of!(Processor, target);
    /// What is to be done before the next block, zero for nothing: 32 bits.
    PENDING = offset_of!(Processor, pending);
    /// The slot within the bundle where execution goes on: 8 bits.
    SLOT = offset_of!(Processor, slot);
    /// The address of the table of translations ([`TRANSLATION_READ`] and what follows): 64 bits.
    TRANSLATIONS = offset_of!(Processor, translations);
    /// The size of the current frame, in registers: 32 bits.
    FRAME_SIZE = offset_of!(Processor, frame) + offset_of!(FrameMarker, size);
    /// The size of its locals, in registers: 32 bits.
    FRAME_LOCALS = offset_of!(Processor, frame) + offset_of!(FrameMarker, locals);
    /// The size of its rotating part, in registers: 32 bits.
    FRAME_ROTATING = offset_of!(Processor, frame) + offset_of!(FrameMarker, rotating);
    /// The rename base of the general registers: 32 bits.
    FRAME_RENAME_GENERAL = offset_of!(Processor, frame) + offset_of!(FrameMarker, rename_general);
    /// The rename base of the predicates: 32 bits.
    FRAME_RENAME_PREDICATE = offset_of!(Processor, frame) + offset_of!(FrameMarker, rename_predicate);
    /// The rename base of the floating-point registers: 32 bits.
    FRAME_RENAME_FLOATING = offset_of!(Processor, frame) + offset_of!(FrameMarker, rename_floating);
    /// b0 to b7: 64 bits each.
    BRANCH = offset_of!(Processor, branch);
    /// r0 to r31: 64 bits each. r32 to r127 follow, so many places further as [`GENERAL_BASE`] says.
    GENERAL = offset_of!(Processor, general) + GeneralRegisters::VALUES;
    /// How many places further: 64 bits, from 0 to [`GENERAL_BASE_MAX`].
    GENERAL_BASE = offset_of!(Processor, general) + GeneralRegisters::BASE;
    /// The NaT bits of r0 to r127, r0 the lowest bit: 128 bits.
    GENERAL_NATS = offset_of!(Processor, general) + GeneralRegisters::NATS;
    /// Not zero if one of [`GENERAL_NATS`] is set: 64 bits.
    GENERAL_HAS_NAT = offset_of!(Processor, general) + GeneralRegisters::HAS_NAT;
    /// f0 to f127 before rotation: 128 bits each, spill images or doubles ([`FLOATING_DOUBLE`]).
    FLOATING = offset_of!(Processor, floating);
    /// ar0 to ar127, but for RSC, BSP, BSPSTORE and RNAT: 64 bits each.
    APPLICATION = offset_of!(Processor, application);
    /// How many registers the backing store has below the current frame, counted from address zero: 64 bits.
    STACK_POSITION = offset_of!(Processor, register_stack) + RegisterStack::POSITION;
    /// The least such position that memory does not hold yet, or that of the frame: 64 bits.
    STACK_STORED = offset_of!(Processor, register_stack) + RegisterStack::STORED;
    /// The least position at hand, which memory may hold as well: 64 bits. From it to the end of the current frame are
    /// no more registers than the file has.
    STACK_LOADED = offset_of!(Processor, register_stack) + RegisterStack::LOADED;
    /// How many stacked registers the file has: 64 bits.
    STACK_CAPACITY = offset_of!(Processor, register_stack) + RegisterStack::CAPACITY;
    /// Not zero where a caller's register has its NaT bit set or the frame is still being loaded: 32 bits.
    STACK_UNUSUAL = offset_of!(Processor, register_stack) + RegisterStack::UNUSUAL;
    /// By the logarithm of an access's size, from 1 to 16 bytes: bits that no aligned address has set which lies where
    /// [`WINDOW_DIFFERENCES`] lead: 64 bits each. What the guest may not do there raises a fault of the host's.
    WINDOW_OUTSIDE = offset_of!(Processor, windows) + WindowTable::OUTSIDE;
    /// By region, the bits in which guest and host addresses differ: 64 bits each.
    WINDOW_DIFFERENCES = offset_of!(Processor, windows) + WindowTable::DIFFERENCES;
    /// Which places of memory advanced loads that are remembered have read, a bit each: the number of a place is
    /// its address, in units of [`PLACE_LOG2`] and of [`PLACE_FOLD`] with exclusive or, modulo 64. Zero if none is
    /// remembered: 64 bits.
    ADVANCED_LOADS = offset_of!(Processor, advanced_loads) + AdvancedLoads::PLACES;
    /// Which rows of the table of advanced loads have an entry, a bit each: 64 bits.
    ADVANCED_VALID = offset_of!(Processor, advanced_loads) + AdvancedLoads::VALID;
    /// By the tag of a register ([`ADVANCED_TAG_MASK`]): the number of the row that has an entry of such a register, or
    /// [`ADVANCED_NO_ROW`]: 8 bits each.
    ADVANCED_ROW_OF_TAG = offset_of!(Processor, advanced_loads) + AdvancedLoads::ROW_OF_TAG;
    /// The rows: [`ADVANCED_ROWS_COUNT`] of [`ADVANCED_ROW_SIZE`] bytes, see [`ADVANCED_ROW_NUMBER`].
    ADVANCED_ROWS = offset_of!(Processor, advanced_loads) + AdvancedLoads::ROWS;
    /// How many entries there have been, of which the first is the oldest: 64 bits.
    ADVANCED_COUNT = offset_of!(Processor, advanced_loads) + AdvancedLoads::COUNT;
    /// Checks of advanced loads that found no entry, or one that must not be kept: 64 bits.
    ADVANCED_FAILED = offset_of!(Processor, advanced_loads) + AdvancedLoads::FAILED_CHECKS;
    /// Not zero where others may write memory, so that a load after an advanced one is done in any case: 64 bits.
    SHARED = offset_of!(Processor, is_shared);
    /// What the registers' numbers on the register stack are counted from, a position as [`STACK_POSITION`]: 64 bits.
    STACK_ORIGIN = offset_of!(Processor, register_stack) + RegisterStack::ORIGIN;
    /// The states of the [`DIVISION_SITES`] sites of divisions: 64 bits each.
    DIVISION_STATES = offset_of!(Processor, divisions) + Divisions::STATES;
    /// Their operands, dividend and divisor as doubles or integers: 128 bits for each of a site's two divisions.
    DIVISION_OPERANDS = offset_of!(Processor, divisions) + Divisions::OPERANDS;
    /// The address of the last bundle of the block that was left last, in system mode: 64 bits.
    COMPLETED = offset_of!(Processor, completed);
    /// The [`OF_BACK_END_WORDS`] words of the back end that runs ([`Processor::of_back_end`]), which it may write: 64
    /// bits each.
    OF_BACK_END = offset_of!(Processor, of_back_end);
}

// One load of 64 bits tells whether floating-point registers or predicates are renamed, one store changes both sizes.
const _: () = assert!(FRAME_RENAME_PREDICATE == FRAME_RENAME_FLOATING + 4 && FRAME_LOCALS == FRAME_SIZE + 4);

/// The second word of one of [`FLOATING`] whose first has the bits of a double, of which a denormal is none here: the
/// register is what `ldfd` makes of them.
pub const FLOATING_DOUBLE: u64 = FloatingRegisters::DOUBLE;
/// The same where the register is what a step of a division delivers: the first has the step's number, with
/// [`STEP_MARK`] and at their places the sequence's number and the division's.
pub const FLOATING_STEP: u64 = FloatingRegisters::STEP;
/// Where a step's word has the number of its [sequence](crate::float::division::SEQUENCES).
pub const STEP_SEQUENCE_SHIFT: u32 = Divisions::SEQUENCE_SHIFT;
/// A bit of a step's word: its operands are integers without a sign.
pub const STEP_UNSIGNED: u64 = Divisions::UNSIGNED;
/// Where it has the number of its division: twice the site's, and one more for the second of the two.
pub const STEP_DIVISION_SHIFT: u32 = Divisions::DIVISION_SHIFT;
/// A bit of each step's word.
pub const STEP_MARK: u64 = Divisions::MARK;
/// How many divisions of a back end's code have operands at a time: one that has a number has the site of that number
/// modulo this.
pub const DIVISION_SITES: usize = Divisions::SITES;
/// In a site's state: all registers stand for steps of the latest division there, if of any.
pub const DIVISION_IS_ENDED: u64 = Divisions::IS_ENDED;
/// In a site's state: which of its two divisions is the latest.
pub const DIVISION_LATEST: u64 = Divisions::LATEST;
/// Where a site's state has the number of the division that it belongs to; zero for none.
pub const DIVISION_OWNER_SHIFT: u32 = Divisions::OWNER_SHIFT;
/// The largest [`GENERAL_BASE`] that a call may leave behind.
pub const GENERAL_BASE_MAX: usize = GeneralRegisters::BASE_MAX;
/// How many words a processor keeps for the back end that runs.
pub const OF_BACK_END_WORDS: usize = 15;
/// How many rows the table of advanced loads has.
pub const ADVANCED_ROWS_COUNT: usize = AdvancedLoads::ENTRIES;
/// The size of a row, in bytes.
pub const ADVANCED_ROW_SIZE: usize = AdvancedLoads::ROW_SIZE;
/// Within a row: the register's number, of a general one its own below 32, or else that of its place on the register
/// stack, the current frame's first register counting as 32 beside [`STACK_POSITION`] less [`STACK_ORIGIN`]; of a
/// floating-point one that without rotation, with [`ADVANCED_FLOATING`]: 64 bits.
pub const ADVANCED_ROW_NUMBER: usize = AdvancedLoads::ROW_NUMBER;
/// Within a row: how many entries there had been before: 64 bits.
pub const ADVANCED_ROW_AGE: usize = AdvancedLoads::ROW_AGE;
/// Within a row: the address that was read: 64 bits.
pub const ADVANCED_ROW_ADDRESS: usize = AdvancedLoads::ROW_ADDRESS;
/// Within a row: how many bytes were: 64 bits.
pub const ADVANCED_ROW_BYTES: usize = AdvancedLoads::ROW_BYTES;
/// No row has an entry of the tag.
pub const ADVANCED_NO_ROW: u8 = AdvancedLoads::NO_ROW;
/// The bits of a general register's number that are its tag.
pub const ADVANCED_TAG_MASK: u64 = crate::alat::GENERAL_TAG_MASK;
/// The bit that a floating-point register's number has beside those of its tag, the register's own number.
pub const ADVANCED_FLOATING: u64 = crate::alat::Target::FLOATING;
/// The first tag of floating-point registers.
pub const ADVANCED_FLOATING_TAGS: usize = crate::alat::FLOATING_TAGS;
/// The size of a place of [`ADVANCED_LOADS`], as a power of two.
pub const PLACE_LOG2: u32 = crate::alat::PLACE_LOG2;
/// The other unit of an address that its place's number is made of, as a power of two.
pub const PLACE_FOLD: u32 = crate::alat::PLACE_FOLD;
/// How many entries the table of translations has: the granule of an address, modulo this, chooses one.
pub const TRANSLATIONS_COUNT: usize = TranslationCache::ENTRIES;
/// The size of an entry, in bytes.
pub const TRANSLATION_SIZE: usize = TranslationCache::ENTRY_SIZE;
/// The size of the granule that an entry translates, as a power of two.
pub const TRANSLATION_GRANULE_LOG2: u32 = crate::memory::GRANULE_LOG2;
/// Within an entry: the granule's address if it may be read, compared with the address of the access with its bits
/// between alignment and granule masked out: 64 bits.
pub const TRANSLATION_READ: usize = TranslationCache::READ;
/// Within an entry: the same for writing.
pub const TRANSLATION_WRITE: usize = TranslationCache::WRITE;
/// Within an entry: host address minus guest address, 64 bits.
pub const TRANSLATION_DELTA: usize = TranslationCache::DELTA;

/// Within a [`Gathered`]: whether the qualifying predicates of the block's instructions were true, one a bit, those
/// that are p0 from the start: 64 bits for each 64 instructions.
pub const GATHERED_EXECUTED: usize = offset_of!(Gathered, executed);
/// Within a [`Gathered`]: the base registers of references as they were before, by instruction; nothing in particular
/// for the others and for what is not executed: 64 bits each.
pub const GATHERED_REFERENCES: usize = offset_of!(Gathered, references);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_what_it_was() {
        // Code that back ends have stored depends on these numbers. So does its speed: what it stores and loads all the
        // time must not lie a multiple of 4 kB apart, since hosts guess by the low twelve bits of an address whether a
        // load has to wait for a store. A field too many in between has cost a sixth.
        let expected = [
            ("IP", 0),
            ("RETIRED", 8),
            ("PREDICATES", 16),
            ("STATUS", 24),
            ("BLOCK_START", 32),
            ("TARGET", 40),
            ("PENDING", 48),
            ("SLOT", 52),
            ("TRANSLATIONS", 56),
            ("FRAME_SIZE", 64),
            ("FRAME_LOCALS", 68),
            ("FRAME_ROTATING", 72),
            ("FRAME_RENAME_GENERAL", 76),
            ("FRAME_RENAME_PREDICATE", 84),
            ("FRAME_RENAME_FLOATING", 80),
            ("BRANCH", 88),
            ("GENERAL", 160),
            ("GENERAL_BASE", 8096),
            ("GENERAL_NATS", 8080),
            ("GENERAL_HAS_NAT", 8624),
            ("FLOATING", 8640),
            ("APPLICATION", 10688),
            ("STACK_POSITION", 14880),
            ("STACK_STORED", 14888),
            ("STACK_LOADED", 14896),
            ("STACK_CAPACITY", 14912),
            ("STACK_UNUSUAL", 14920),
            ("WINDOW_OUTSIDE", 11832),
            ("WINDOW_DIFFERENCES", 11872),
            ("ADVANCED_LOADS", 11944),
            ("ADVANCED_VALID", 11952),
            ("ADVANCED_ROW_OF_TAG", 12992),
            ("ADVANCED_ROWS", 11960),
            ("ADVANCED_COUNT", 12984),
            ("ADVANCED_FAILED", 13248),
            ("SHARED", 11936),
            ("STACK_ORIGIN", 14904),
            ("DIVISION_STATES", 14984),
            ("DIVISION_OPERANDS", 15240),
            ("COMPLETED", 152),
            ("OF_BACK_END", 11712),
        ];
        assert_eq!(TABLE, expected);
        let entry = (
            TRANSLATION_READ,
            TRANSLATION_WRITE,
            TRANSLATION_DELTA,
            TRANSLATION_SIZE,
        );
        assert_eq!(entry, (0, 8, 16, 32));
    }
}
