//! What units that follow each other in one run share: words that the processor keeps for its back end, which emitted
//! code reads and writes.

use std::ptr;
use std::sync::atomic::AtomicBool;

use sidestep_ia64::execution::{Gathered, MicroOperation, Progress};
use sidestep_ia64::{Processor, layout};

/// The type of the code by which units are entered: the processor, which keeps what they share, and where the first
/// one's code begins. Answers one of the numbers below.
pub type Enter = unsafe extern "C" fn(*mut Processor, *const u8) -> i64;

/// The functions that units share.
#[derive(Clone, Copy)]
pub struct SharedFunctions {
    /// The one that does what a request says and changes no register of the host.
    pub preserving: *const u8,
    /// The one that looks at the advanced loads that a store may have hit, and changes no register, either.
    pub store_hit: *const u8,
    /// The one that changes the frame as a call does.
    pub call: *const u8,
    /// The one that changes it as a return does.
    pub return_: *const u8,
}

/// What emitted code answers: that the next block follows at the instruction pointer.
pub const NEXT_BLOCK: i64 = 0;
/// That an instruction has raised a fault.
pub const RAISED: i64 = 1;
/// That the interpreter goes on within a block, with what [`remainder`] answers.
pub const LEFT_OVER: i64 = 2;
/// Of code that gathers: that the block is complete, and no branch was taken. Where one was, it answers
/// [`NEXT_BLOCK`].
pub const BEHIND: i64 = 3;

/// One of the words that units share.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// How many instructions may have retired when the run ends.
    End,
    /// How many may have retired, with a sign, before units of programs look at [`Word::End`] and [`Word::Attention`]:
    /// [`CHECKPOINT_MARGIN`] fewer than where they have to.
    Checkpoint,
    /// The address of the flag at which every unit stops, those of programs within [`CHECKPOINT_PERIOD`] instructions.
    Attention,
    /// The address of the other flag, at which units stop in system mode.
    Interrupts,
    /// The address of the table of [`Links`](crate::links::Links).
    Links,
    /// How often one unit went on with another.
    Followed,
    /// The address of what is left of a block to the interpreter, a [`Remainder`].
    Remainder,
    /// The address of the function that does what a [`Request`] says and changes no register of the host.
    Preserving,
    /// The address of the function that looks at what a store may have hit, a request as well.
    StoreHit,
    /// The address of the function that changes the frame as a call does; it may leave work for the processor.
    Call,
    /// The address of the one that changes it as a return does.
    Return,
    /// The address of the request; behind it what was answered.
    Request,
    /// What a request is about that is not known when code is emitted.
    Argument,
    /// The address of what code that gathers fills, a [`Gathered`].
    Gathered,
    /// Not zero once the host's floating-point unit has raised an exception in the run
    /// ([`exceptions`](crate::exceptions)).
    Exception,
}

const _: () = assert!((Word::Exception as usize) < layout::OF_BACK_END_WORDS);

impl Word {
    /// Where it lies, in bytes from the start of the processor: 64 bits.
    pub fn offset(self) -> usize {
        layout::OF_BACK_END + self as usize * 8
    }

    fn of(self, processor: &mut Processor) -> &mut u64 {
        &mut processor.of_back_end()[self as usize]
    }
}

/// How many instructions of a program retire between two looks at who wants the processor, which nobody does at a
/// certain instruction.
pub const CHECKPOINT_PERIOD: u64 = 1 << 14;
/// How many instructions at most retire between two places where a checkpoint is looked for.
pub const CHECKPOINT_MARGIN: u64 = 1 << 11;

/// Begins a run that ends when so many instructions more have retired or a flag is set.
pub fn begin(
    processor: &mut Processor,
    remaining: u64,
    flags: [*const AtomicBool; 2],
    links: usize,
    shared: SharedFunctions,
) {
    let begun = processor.instructions_retired();
    let checkpoint = (begun + remaining.min(CHECKPOINT_PERIOD)).wrapping_sub(CHECKPOINT_MARGIN);
    for (word, value) in [
        (Word::End, begun + remaining),
        (Word::Checkpoint, checkpoint),
        (Word::Attention, flags[0] as u64),
        (Word::Interrupts, flags[1] as u64),
        (Word::Links, links as u64),
        (Word::Followed, 0),
    ] {
        *word.of(processor) = value;
    }
    begin_any(processor, shared);
}

/// Begins a unit that gathers.
pub fn begin_gathering(processor: &mut Processor, gathered: *mut Gathered, shared: SharedFunctions) {
    *Word::Gathered.of(processor) = gathered.expose_provenance() as u64;
    begin_any(processor, shared);
}

/// What is the same for both.
fn begin_any(
    processor: &mut Processor,
    SharedFunctions {
        preserving,
        store_hit,
        call,
        return_,
    }: SharedFunctions,
) {
    for (word, value) in [
        (Word::Preserving, preserving as u64),
        (Word::StoreHit, store_hit as u64),
        (Word::Call, call as u64),
        (Word::Return, return_ as u64),
        (Word::Exception, 0),
    ] {
        *word.of(processor) = value;
    }
}

/// What the unit that runs fills.
///
/// # Safety
/// A unit that gathers runs, and nobody else uses what it fills as long as the answer lives.
pub unsafe fn gathered<'a>(processor: &mut Processor) -> &'a mut Gathered {
    let gathered = ptr::with_exposed_provenance_mut(*Word::Gathered.of(processor) as usize);
    // SAFETY: whoever has entered the unit has stored the address, and keeps what is there until the unit is left.
    unsafe { &mut *gathered }
}

/// How often one unit of the run went on with another.
pub fn followed(processor: &mut Processor) -> u64 {
    *Word::Followed.of(processor)
}

/// Has units of the run that begins find an exception.
pub fn note_raised(processor: &mut Processor) {
    *Word::Exception.of(processor) = 1;
}

/// Whether the host's floating-point unit has raised an exception in the run.
pub fn has_raised(processor: &mut Processor) -> bool {
    *Word::Exception.of(processor) != 0
}

/// A function of the processor's that emitted code calls where something is rare.
#[derive(Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Request {
    /// The address of the function, which takes the processor and a number.
    pub function: u64,
    /// That number.
    pub argument: u64,
    /// The guest's address of the block, or [`Request::NOTED`] where the processor knows it.
    pub block: u64,
}

impl Request {
    /// No address of a bundle.
    pub const NOTED: u64 = u64::MAX;
}

/// What the request that runs is about.
pub fn argument(processor: &mut Processor) -> u64 {
    *Word::Argument.of(processor)
}

/// What is left of a block to the interpreter at a place of emitted code, and what of the processor's state that code
/// has not stored there.
#[derive(Debug)]
pub struct Remainder {
    /// The address of the first operation.
    first: usize,
    /// How many there are.
    length: usize,
    /// What is not stored.
    pub progress: Progress,
    /// The place of the unit's root, if the block was left for a number that the unit is not made for.
    pub unusual: Option<u64>,
}

impl Remainder {
    /// Some operations, which are to live as long as the answer is used.
    pub fn new(operations: &[MicroOperation], progress: Progress, unusual: Option<u64>) -> Remainder {
        Remainder {
            first: operations.as_ptr().expose_provenance(),
            length: operations.len(),
            progress,
            unusual,
        }
    }

    /// The operations.
    ///
    /// # Safety
    /// They are alive.
    pub unsafe fn operations(&self) -> &[MicroOperation] {
        let first = ptr::with_exposed_provenance(self.first);
        // SAFETY: as the caller says; it was made of them.
        unsafe { std::slice::from_raw_parts(first, self.length) }
    }
}

/// What a unit's code names by addresses.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "they stay where they are when there are more")]
pub struct Named {
    remainders: Vec<Box<Remainder>>,
    requests: Vec<Box<Request>>,
}

impl Named {
    /// Adds what the unit leaves to the interpreter somewhere, and answers its address.
    pub fn remainder(&mut self, remainder: Remainder) -> usize {
        self.remainders.push(Box::new(remainder));
        address_of_last(&self.remainders)
    }

    /// Adds a request, unless it was the last one that was added, and answers its address.
    pub fn request(&mut self, request: Request) -> usize {
        if self.requests.last().is_none_or(|last| **last != request) {
            self.requests.push(Box::new(request));
        }
        address_of_last(&self.requests)
    }
}

fn address_of_last<T>(boxes: &[Box<T>]) -> usize {
    boxes
        .last()
        .map_or(0, |last| ptr::from_ref(&**last).expose_provenance())
}

/// What is left to the interpreter.
///
/// # Safety
/// Emitted code has just answered [`LEFT_OVER`], and its unit is alive as long as the answer.
pub unsafe fn remainder<'a>(processor: &mut Processor) -> &'a Remainder {
    let remainder = ptr::with_exposed_provenance(*Word::Remainder.of(processor) as usize);
    // SAFETY: emitted code has stored the address of what its unit keeps.
    unsafe { &*remainder }
}
