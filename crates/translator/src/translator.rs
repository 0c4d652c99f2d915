//! The back end: which blocks are hot, and what is done about it.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use sidestep_ia64::execution::{
    Backend, Context, DecodedBlock, Detail, Interpreter, Left, MicroOperation, Observer, Running, SHORT_FOR,
};
use sidestep_ia64::{Exit, Processor, Raised};

use crate::background::{Background, Finished, Translated};
use crate::chain::{self, BEHIND, Enter, LEFT_OVER, NEXT_BLOCK, RAISED, SharedFunctions};
use crate::code_memory::CodeMemory;
use crate::compiler::{Compiler, CompilerError, Emitted, SupportCode, Surroundings};
use crate::links::Links;
use crate::node::Node;
use crate::perf_map::PerfMap;
use crate::region::Region;
use crate::statistics::Statistics;
use crate::unit::{Owned, Piece, Support, Unit};
use crate::{exceptions, resumption};

/// When code is translated, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A block is translated when it is entered this many times.
    pub threshold: u32,
    /// Other blocks are translated with it if they were entered this many times.
    pub joining_threshold: u32,
    /// Bytes of emitted code kept at most, for each processor.
    pub code_bytes_max: usize,
    /// Instructions translated together at most.
    pub instructions_max: usize,
    /// The first instructions of a program, or of a thread of it, are interpreted only, as many as these: most of what
    /// starts executes once.
    pub interpreted: u64,
}

impl Settings {
    /// What pays for programs.
    pub const AUTOMATIC: Settings = Settings {
        threshold: 1000,
        joining_threshold: 250,
        code_bytes_max: 32 << 20,
        instructions_max: 100,
        interpreted: SHORT_FOR,
    };
    /// What pays for machines: a kernel executes much code a few thousand times while it starts, and translation takes
    /// as long as interpreting an instruction some five thousand times.
    pub const MACHINES: Settings = Settings {
        threshold: 20_000,
        joining_threshold: 5_000,
        ..Settings::AUTOMATIC
    };
    /// Everything at once: for tests.
    pub const ALWAYS: Settings = Settings {
        threshold: 1,
        joining_threshold: 0,
        instructions_max: 300,
        interpreted: 0,
        ..Settings::AUTOMATIC
    };
}

/// Why no translator can be had.
#[derive(Debug, thiserror::Error)]
pub enum TranslatorError {
    /// There is no compiler.
    #[error(transparent)]
    Compiler(#[from] CompilerError),
    /// The host grants no memory for code.
    #[error("no memory for translated code can be had")]
    Memory(#[source] std::io::Error),
}

/// Pieces known before those that are gone are looked for.
const PIECES_MAX: usize = 1 << 17;
/// How often units of one root are left for numbers that they are not made for, until one is made for any; and how
/// often it counts that FPSR is not as a unit takes it to be.
const UNUSUAL_MAX: u32 = 64;
const UNSETTLED: u32 = 16;

/// Translates the blocks of one processor.
pub struct Translator {
    settings: Settings,
    generator: Generator,
    memory: Arc<Mutex<CodeMemory>>,
    /// The addresses that its code may have.
    code: Range<usize>,
    /// The functions that units are used with, once there are any.
    support: Option<Arc<Support>>,
    /// The blocks by place.
    pieces: HashMap<u64, Weak<Piece>>,
    /// The roots of units.
    roots: Vec<Weak<Piece>>,
    /// How often the next unit's root has to be entered, by place, where there was a unit already: twice as often as
    /// for the one before. What is translated and forgotten again and again soon is not any more.
    thresholds: HashMap<u64, u32>,
    /// How often units were left for unusual numbers or controls, by their roots' places.
    unusual: HashMap<u64, u32>,
    /// Which units follow each other, once there are any.
    links: Option<Links>,
    /// Where the names of units go.
    perf_map: Option<Arc<PerfMap>>,
    /// How many instructions have retired when it has to do with the processor, once that is known.
    begins: Option<u64>,
    statistics: Statistics,
}

/// What emits code.
enum Generator {
    /// The processor's own thread, which waits for it.
    Here(Box<Compiler>),
    /// Another thread.
    Behind {
        background: Arc<Background>,
        finished: Arc<Finished>,
        /// What is ordered and not delivered, by number.
        ordered: BTreeMap<u64, Ordered>,
        /// The next order's number.
        number: u64,
    },
}

/// A unit that is to be: its root, and all blocks that it is made of.
struct Ordered {
    root: Weak<Piece>,
    members: Vec<Weak<Piece>>,
}

impl Translator {
    /// A translator that has translated nothing: on a thread of its own, or while the processor waits where no
    /// `background` is given.
    ///
    /// # Errors
    /// The host is none that code can be emitted for, or grants no memory for it.
    pub fn new(
        settings: Settings,
        background: Option<Arc<Background>>,
    ) -> Result<Translator, TranslatorError> {
        let memory = CodeMemory::new(settings.code_bytes_max);
        let memory = memory.map_err(|error| TranslatorError::Memory(error.into()))?;
        let generator = match background {
            None => Generator::Here(Box::new(Compiler::new()?)),
            Some(background) => Generator::Behind {
                background,
                finished: Arc::default(),
                ordered: BTreeMap::new(),
                number: 0,
            },
        };
        Ok(Translator {
            settings,
            generator,
            code: memory.addresses(),
            memory: Arc::new(Mutex::new(memory)),
            support: None,
            pieces: HashMap::new(),
            roots: Vec::new(),
            thresholds: HashMap::new(),
            unusual: HashMap::new(),
            links: None,
            perf_map: None,
            begins: None,
            statistics: Statistics::default(),
        })
    }

    /// The translator, telling a file of names what it translates.
    #[must_use]
    pub fn with_perf_map(self, perf_map: Option<Arc<PerfMap>>) -> Translator {
        Translator { perf_map, ..self }
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Runs a processor as [`Processor::run`] does.
    pub fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        let begun = processor.instructions_retired();
        let interpreted = self.settings.interpreted;
        let begins = *self.begins.get_or_insert(begun.saturating_add(interpreted));
        let first = begins.saturating_sub(begun).min(limit);
        if first == 0 || processor.mmu().is_some() {
            return processor.run_with(limit, self, &mut ());
        }
        match processor.run(first) {
            Exit::Limit if first < limit => {
                // No limit stays none.
                let left = match limit {
                    u64::MAX => limit,
                    _ => limit - (processor.instructions_retired() - begun),
                };
                processor.run_with(left, self, &mut ())
            }
            exit => exit,
        }
    }

    /// Runs a processor as [`Processor::run_observed`] does.
    pub fn run_observed<O: Observer>(
        &mut self,
        processor: &mut Processor,
        limit: u64,
        observer: &mut O,
    ) -> Exit {
        processor.run_with(limit, self, observer)
    }

    /// In the child of a forked process, which its processor goes on in: what was translated is, and was the parent's
    /// work. What the parent's thread has not delivered yet is to be ordered anew.
    pub fn begin_in_child(&mut self) {
        self.statistics = Statistics::default();
        if let Generator::Behind {
            finished, ordered, ..
        } = &mut self.generator
        {
            *finished = Arc::default();
            let lost = mem::take(ordered).into_values();
            let roots = lost.filter_map(|lost| Piece::kept(&lost.root));
            roots.for_each(|root| root.forget_entries());
        }
    }

    fn memory(&self) -> MutexGuard<'_, CodeMemory> {
        self.memory
            .lock()
            .expect("no thread panics while it puts code into memory")
    }

    /// Makes a block the root of a unit, or orders that, if it can be had.
    #[cold]
    fn promote(&mut self, root: &Arc<Piece>, base: u64, surroundings: Surroundings) {
        let known = |place: u64| self.pieces.get(&place).and_then(Piece::kept);
        let Settings {
            joining_threshold,
            instructions_max,
            ..
        } = self.settings;
        let mut found = vec![Arc::clone(root)];
        let find = |place: u64| {
            let piece = known(place).filter(|piece| piece.entered() >= joining_threshold)?;
            found.push(Arc::clone(&piece));
            Some((Arc::clone(&piece.node), piece.is_hot_without(root)))
        };
        let left = self.unusual.get(&root.node.place).copied().unwrap_or(0);
        let is_usual = left < UNUSUAL_MAX;
        let region = Region::new(Arc::clone(&root.node), base, (instructions_max, is_usual), find);
        let surroundings = Surroundings {
            is_settled: surroundings.is_settled && is_usual,
            ..surroundings
        };
        let is_member = |piece: &&Arc<Piece>| region.nodes.iter().any(|node| Arc::ptr_eq(node, &piece.node));
        let members = found.iter().filter(is_member).map(Arc::downgrade).collect();
        self.order(root, members, region, surroundings);
    }

    /// Makes a block a unit that gathers what so many of its first instructions do, or orders that.
    #[cold]
    fn promote_gathering(&mut self, root: &Arc<Piece>, processor: &Processor, gathered: usize) {
        let base = processor.instruction_pointer().0;
        let region = Region::gathering(Arc::clone(&root.node), base, gathered);
        self.order(
            root,
            vec![Arc::downgrade(root)],
            region,
            Surroundings::of(processor),
        );
    }

    /// Makes a region a unit, or orders that.
    fn order(
        &mut self,
        root: &Arc<Piece>,
        members: Vec<Weak<Piece>>,
        region: Region,
        surroundings: Surroundings,
    ) {
        let unit = Ordered {
            root: Arc::downgrade(root),
            members,
        };
        match &mut self.generator {
            Generator::Here(compiler) => {
                let began = Instant::now();
                let code = compiler.compile(&region, surroundings);
                self.install(&unit, region, code, began.elapsed());
            }
            Generator::Behind {
                background,
                finished,
                ordered,
                number,
            } => {
                *number += 1;
                match background.order((*number, root), (region, surroundings), finished) {
                    Ok(()) => {
                        ordered.insert(*number, unit);
                    }
                    // Later, perhaps.
                    Err(_) => root.forget_entries(),
                }
            }
        }
    }

    /// Installs what the other thread has finished.
    #[cold]
    fn collect(&mut self) {
        let Generator::Behind {
            finished, ordered, ..
        } = &mut self.generator
        else {
            return;
        };
        // What a thread before this one was asked for is no order any more.
        let units = finished.take().into_iter();
        let units = units.filter_map(|translated| Some((ordered.remove(&translated.number)?, translated)));
        for (
            unit,
            Translated {
                region, code, time, ..
            },
        ) in units.collect::<Vec<_>>()
        {
            self.install(&unit, region, code, time);
        }
    }

    /// Makes code a unit, unless one of its blocks is gone or there is no room for it.
    fn install(&mut self, unit: &Ordered, region: Region, code: Option<Emitted>, time: Duration) {
        let (Some(root), Some(code)) = (Piece::kept(&unit.root), code) else {
            return;
        };
        let members: Option<Vec<Arc<Piece>>> = unit.members.iter().map(Piece::kept).collect();
        let Some(members) = members else {
            return root.forget_entries();
        };
        let Some((support, place)) = self.place(&code) else {
            return;
        };
        for member in &members {
            member.belong_to(&root);
        }
        if let Some(map) = &self.perf_map {
            map.note(place, code.unit.len(), region.base);
        }
        self.statistics.note_unit(&region, code.unit.len(), time);
        let unit_of = Unit {
            region,
            named: code.named,
            settled: code.settled,
            memory: Arc::clone(&self.memory),
            support,
        };
        root.install(unit_of, place);
        if self.thresholds.len() >= PIECES_MAX {
            self.thresholds.clear();
        }
        let threshold = self.threshold(root.node.place).saturating_mul(2);
        self.thresholds.insert(root.node.place, threshold);
        root.set_threshold(threshold);
        self.roots.push(unit.root.clone());
    }

    /// How often the block at a place has to be entered to become the root of a unit.
    fn threshold(&self, place: u64) -> u32 {
        let known = self.thresholds.get(&place).copied();
        known.unwrap_or(self.settings.threshold)
    }

    /// Finds room for code; where there is none, everything is forgotten and begins anew.
    fn place(&mut self, code: &Emitted) -> Option<(Arc<Support>, *const u8)> {
        if let Some(place) = self.put(code) {
            return Some(place);
        }
        let roots = mem::take(&mut self.roots);
        roots
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|root| root.retire());
        self.statistics.flushes += 1;
        self.memory().clear();
        self.support = None;
        self.put(code)
    }

    /// Puts code into memory, and what it is used with if that is not there yet.
    fn put(&mut self, code: &Emitted) -> Option<(Arc<Support>, *const u8)> {
        if self.support.is_none() {
            let SupportCode {
                enter,
                preserving,
                store_hit,
                call,
                return_,
            } = &*code.support;
            let mut memory = self.memory();
            let enter = memory.put(enter)?;
            let support = Support {
                // SAFETY: the code was emitted for this type, and is forgotten with its memory.
                enter: unsafe { mem::transmute::<*const u8, Enter>(enter) },
                shared: SharedFunctions {
                    preserving: memory.put(preserving)?,
                    store_hit: memory.put(store_hit)?,
                    call: memory.put(call)?,
                    return_: memory.put(return_)?,
                },
            };
            drop(memory);
            self.support = Some(Arc::new(support));
        }
        let unit = self.memory().put(&code.unit)?;
        Some((self.support.clone()?, unit))
    }
}

impl Backend for Translator {
    type Code = Owned;

    fn translate(&mut self, block: &DecodedBlock, context: &Context) -> Owned {
        let node = Node {
            place: context.place,
            page: context.page,
            operations: Interpreter.translate(block, context),
            block: block.clone(),
            rotating: AtomicU8::new(0),
        };
        let piece = Arc::new(Piece::new(node, self.threshold(context.place)));
        if context.detail == Detail::Effects {
            if self.pieces.len() >= PIECES_MAX {
                self.pieces.retain(|_, piece| piece.strong_count() > 0);
            }
            self.pieces.insert(context.place, Arc::downgrade(&piece));
        }
        Owned(piece)
    }

    fn operations(code: &Owned) -> &[MicroOperation] {
        &code.0.node.operations
    }

    #[inline(always)]
    fn enter<O: Observer>(&mut self, code: &Owned, mut running: Running<'_, '_, O>) -> Result<(), Raised> {
        let piece = &code.0;
        if O::DETAIL == Detail::Effects {
            if piece.code().is_null() && piece.rotates {
                piece.node.note_rotating(running.processor());
            }
            if piece.code().is_null() && piece.count() {
                let processor = running.processor();
                let base = processor.instruction_pointer().0;
                self.promote(piece, base, Surroundings::of(processor));
            }
            if !piece.code().is_null() {
                return self.enter_unit(piece, running);
            }
            self.collect_finished();
        } else if let Some(gathered) = running.gathered()
            && running.processor().mmu().is_none()
        {
            if piece.code().is_null() {
                self.count_gathering(piece, running.processor(), gathered);
            }
            if !piece.code().is_null() && piece.is_for(running.processor().instruction_pointer().0) {
                return self.enter_gathering(piece, running);
            }
        }
        Interpreter.enter(&piece.node.operations, running)
    }
}

impl Translator {
    /// Counts an entry of a block that is to be gathered and has no code, and looks for code that is finished.
    fn count_gathering(&mut self, piece: &Arc<Piece>, processor: &mut Processor, gathered: usize) {
        if piece.rotates {
            piece.node.note_rotating(processor);
        }
        if piece.count() {
            self.promote_gathering(piece, processor, gathered);
        }
        self.collect_finished();
    }

    /// Collects what the thread behind has finished, if there may be something.
    #[inline(always)]
    fn collect_finished(&mut self) {
        if let Generator::Behind { finished, .. } = &self.generator
            && finished.is_some()
        {
            self.collect();
        }
    }

    /// Executes a unit that gathers.
    #[inline(always)]
    fn enter_gathering<O: Observer>(
        &mut self,
        root: &Arc<Piece>,
        mut running: Running<'_, '_, O>,
    ) -> Result<(), Raised> {
        // SAFETY: who comes here has seen that the root has its code.
        let &Support { enter, shared } = unsafe { root.support() };
        let gathered = running.begin_gathering();
        let processor = running.processor();
        let begun = processor.instructions_retired();
        chain::begin_gathering(processor, gathered, shared);
        resumption::note_code(&self.code);
        // SAFETY: the unit is alive: it goes with its block, between two of them. The processor is borrowed
        // exclusively, and what is gathered is the observer's as long as it runs.
        let answer = unsafe { exceptions::enter(enter, processor, root.code()) };
        processor.find_frame();
        self.statistics.entered += 1;
        self.statistics.translated += processor.instructions_retired() - begun;
        let left = match answer {
            NEXT_BLOCK => Left::ByBranch,
            BEHIND => Left::Behind,
            RAISED => {
                self.statistics.raised += 1;
                Left::ByFault
            }
            _ => {
                // SAFETY: the code has answered that there is a rest; blocks are forgotten between two of them.
                let rest = unsafe { chain::remainder(processor).operations() };
                let index = root.node.operations.len() - rest.len();
                // Behind the last that is gathered it is left anyway.
                self.statistics.left_over += u64::from(running.gathered() != Some(index));
                Left::Before(index)
            }
        };
        running.finish_gathering(&root.node.operations, left, begun)
    }

    /// Executes a unit from its root on, and the units that follow.
    fn enter_unit<O: Observer>(
        &mut self,
        root: &Arc<Piece>,
        mut running: Running<'_, '_, O>,
    ) -> Result<(), Raised> {
        let [attention, signalled] = running.flags();
        let flags = [ptr::from_ref(attention), ptr::from_ref(signalled)];
        let remaining = running.remaining();
        let processor = running.processor();
        let begun = processor.instructions_retired();
        let (address, slot) = processor.instruction_pointer();
        let (is_program, place) = match processor.mmu() {
            None => (true, address | u64::from(slot)),
            Some(_) => (false, root.node.place),
        };
        let links = self.links.get_or_insert_with(Links::new);
        if !links.knows(place, root) {
            if is_program && !root.is_for(address) {
                return Interpreter.enter(&root.node.operations, running);
            }
            links.note(place, root);
        }
        // SAFETY: who comes here has seen that the root has its code.
        let &Support { enter, shared } = unsafe { root.support() };
        let links = links.address();
        chain::begin(processor, remaining, flags, links, shared);
        resumption::note_code(&self.code);
        // SAFETY: the units are alive: they go with their blocks, between two of them. The processor is borrowed
        // exclusively, the flags and the table of links live as long as the run, and no more instructions may retire
        // than `remaining`.
        let answer = unsafe { exceptions::enter(enter, processor, root.code()) };
        processor.find_frame();
        // SAFETY: the code has answered that there is a rest; blocks are forgotten between two of them.
        let remainder = (answer == LEFT_OVER).then(|| unsafe { chain::remainder(processor) });
        if let Some(remainder) = remainder {
            processor.note_progress(&remainder.progress);
        }
        let retired = processor.instructions_retired() - begun;
        self.statistics.entered += 1;
        self.statistics.linked += chain::followed(processor);
        self.statistics.translated += retired;
        if let Some(remainder) = remainder {
            self.statistics.left_over += 1;
            let unusual = remainder.unusual;
            // SAFETY: as above.
            let finished = processor.finish_block(unsafe { remainder.operations() });
            if let Some(place) = unusual {
                self.note_unusual(place, 1);
            }
            return finished;
        }
        match answer {
            // A unit that does not fit what remains retires nothing, nor one that takes FPSR, or how many registers
            // rotate, to be another.
            NEXT_BLOCK if retired == 0 => {
                if !root.fits(processor) {
                    self.note_unusual(root.node.place, UNSETTLED);
                    root.retire();
                }
                Interpreter.enter(&root.node.operations, running)
            }
            NEXT_BLOCK => Ok(()),
            _ => {
                self.statistics.raised += 1;
                Err(Raised)
            }
        }
    }

    /// Counts that a unit was left for something unusual. After many times it goes, for one that is made for that.
    #[cold]
    fn note_unusual(&mut self, place: u64, times: u32) {
        if self.unusual.len() >= PIECES_MAX {
            self.unusual.clear();
        }
        let left = self.unusual.entry(place).or_insert(0);
        let before = *left;
        *left = before.saturating_add(times);
        if before < UNUSUAL_MAX
            && *left >= UNUSUAL_MAX
            && let Some(root) = self.pieces.get(&place).and_then(Piece::kept)
        {
            root.retire();
        }
    }
}
