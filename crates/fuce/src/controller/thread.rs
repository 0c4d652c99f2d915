//! The names the chip gives to threads, their modes, and what can go wrong with them.

use std::fmt;

/// Entries on a page of the activation control memory (CEFOS section 3.1).
pub const ENTRIES_PER_PAGE: u16 = 8;

/// A thread: an entry of the activation control memory, as page times eight plus entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(u16);

impl ThreadId {
    /// The thread at an entry of a page.
    pub const fn new(page: u16, entry: u16) -> ThreadId {
        ThreadId(page * ENTRIES_PER_PAGE + entry % ENTRIES_PER_PAGE)
    }

    /// The thread a register names, if there are that many pages.
    pub fn from_register(value: u32, pages: u16) -> Option<ThreadId> {
        (value < u32::from(pages) * u32::from(ENTRIES_PER_PAGE)).then_some(ThreadId(value as u16))
    }

    /// The page.
    pub const fn page(self) -> u16 {
        self.0 / ENTRIES_PER_PAGE
    }

    /// The entry on the page.
    pub const fn entry(self) -> u16 {
        self.0 % ENTRIES_PER_PAGE
    }

    /// The number a register holds for this thread.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.page(), self.entry())
    }
}

/// The mode a thread runs in; it belongs to the thread, not to the processor (CEFOS section 2.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mode {
    /// User space.
    User = 1,
    /// The way from user space into the kernel.
    Interface = 2,
    /// The kernel.
    Kernel = 3,
}

impl Mode {
    /// The mode two bits of an entry stand for; zero means that the entry is empty.
    pub const fn from_bits(bits: u8) -> Option<Mode> {
        match bits {
            1 => Some(Mode::User),
            2 => Some(Mode::Interface),
            3 => Some(Mode::Kernel),
            _ => None,
        }
    }

    /// The word the assembler reads.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::User => "user",
            Mode::Interface => "interface",
            Mode::Kernel => "kernel",
        }
    }

    /// Whether a thread of this mode may continue to, or lock, one of mode `target` (CEFOS figure 2): all ways are
    /// open but the one from user space straight into the kernel.
    pub const fn may_continue_to(self, target: Mode) -> bool {
        !matches!((self, target), (Mode::User, Mode::Kernel))
    }

    /// Whether threads of this mode run with the supervisor's rights.
    pub const fn is_supervisor(self) -> bool {
        !matches!(self, Mode::User)
    }
}

/// What a thread did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum FaultCause {
    /// The word is not an instruction.
    IllegalInstruction = 1,
    /// An address is not a multiple of the access's size.
    Misaligned = 2,
    /// The mode may not access the address, or nothing is there.
    MemoryProtection = 3,
    /// A division by zero.
    DivideByZero = 4,
    /// The operation belongs to kernel threads.
    Privileged = 5,
    /// An instruction address outside the program's text.
    CodeBounds = 6,
    /// The target is an empty entry, a free page, or no thread number at all.
    MissingEntry = 7,
    /// The mode may not do this to the target.
    ModeProtection = 8,
    /// A continuation to a thread whose counter is zero: it would be lost.
    NotArmed = 9,
    /// The target still waits for continuations, or is ready: the operation would lose some.
    NotSpent = 10,
    /// An unlock of an entry that is not locked.
    NotLocked = 11,
    /// A slot beyond the target's frame.
    FrameBounds = 12,
    /// A counter outside 1 to 255.
    CounterRange = 13,
}

impl FaultCause {
    /// All causes, by number.
    pub const ALL: [FaultCause; 13] = [
        FaultCause::IllegalInstruction,
        FaultCause::Misaligned,
        FaultCause::MemoryProtection,
        FaultCause::DivideByZero,
        FaultCause::Privileged,
        FaultCause::CodeBounds,
        FaultCause::MissingEntry,
        FaultCause::ModeProtection,
        FaultCause::NotArmed,
        FaultCause::NotSpent,
        FaultCause::NotLocked,
        FaultCause::FrameBounds,
        FaultCause::CounterRange,
    ];

    /// The cause in words.
    pub const fn description(self) -> &'static str {
        match self {
            FaultCause::IllegalInstruction => "illegal instruction",
            FaultCause::Misaligned => "misaligned address",
            FaultCause::MemoryProtection => "access outside the memory the mode may use",
            FaultCause::DivideByZero => "division by zero",
            FaultCause::Privileged => "operation reserved to kernel threads",
            FaultCause::CodeBounds => "instruction address outside the text",
            FaultCause::MissingEntry => "no such thread",
            FaultCause::ModeProtection => "thread mode forbids it",
            FaultCause::NotArmed => "target's counter is already zero",
            FaultCause::NotSpent => "thread still awaits continuations or is ready",
            FaultCause::NotLocked => "entry is not locked",
            FaultCause::FrameBounds => "slot beyond the target's frame",
            FaultCause::CounterRange => "counter outside 1 to 255",
        }
    }
}

/// A fault: what, by whom, where, and about what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What went wrong.
    pub cause: FaultCause,
    /// The thread that did it; `None` for a device's signal.
    pub thread: Option<ThreadId>,
    /// The byte address of the instruction.
    pub address: u32,
    /// The offending value: an address, a thread number, a count, the instruction's word.
    pub value: u32,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread {
            Some(thread) => write!(formatter, "thread {thread} at {:#x}: ", self.address)?,
            None => write!(formatter, "device signal: ")?,
        }
        write!(
            formatter,
            "{} (value {:#x})",
            self.cause.description(),
            self.value
        )
    }
}
