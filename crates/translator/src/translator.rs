//! The back end: which blocks are hot, and what is done about it.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use sidestep_ia64::execution::{Backend, Context, DecodedBlock, Detail, Interpreter, Observer, Running};
use sidestep_ia64::{Processor, Raised};

use crate::background::{Background, Finished, Translated};
use crate::code_memory::CodeMemory;
use crate::compiler::{Code, Compiler, CompilerError};
use crate::emitter::{LEFT_OVER, NEXT_BLOCK, OPERATION_BITS, RAISED};
use crate::links::Links;
use crate::region::{Node, Region};
use crate::statistics::Statistics;
use crate::unit::{Owned, Piece, Unit};

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
}

impl Settings {
    /// What pays for programs.
    pub const AUTOMATIC: Settings = Settings {
        threshold: 2000,
        joining_threshold: 500,
        code_bytes_max: 32 << 20,
        instructions_max: 100,
    };
    /// What pays for machines: a kernel executes much code a few thousand times while it starts, and translation takes
    /// as long as interpreting an instruction ten thousand times.
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

/// Translates the blocks of one processor.
pub struct Translator {
    settings: Settings,
    generator: Generator,
    memory: Arc<Mutex<CodeMemory>>,
    /// The blocks by place.
    pieces: HashMap<u64, Weak<Piece>>,
    /// The roots of units.
    roots: Vec<Weak<Piece>>,
    links: Links,
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
            memory: Arc::new(Mutex::new(memory)),
            pieces: HashMap::new(),
            roots: Vec::new(),
            links: Links::new(),
            statistics: Statistics::default(),
        })
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn memory(&self) -> MutexGuard<'_, CodeMemory> {
        self.memory
            .lock()
            .expect("no thread panics while it puts code into memory")
    }

    /// Makes a block the root of a unit, or orders that, if it can be had.
    #[cold]
    fn promote(&mut self, root: &Arc<Piece>, is_system: bool) {
        let known = |place: u64| self.pieces.get(&place).and_then(Piece::kept);
        let Settings {
            joining_threshold,
            instructions_max,
            ..
        } = self.settings;
        let mut found = vec![Arc::clone(root)];
        let region = Region::new(Arc::clone(&root.node), instructions_max, |place| {
            let piece = known(place).filter(|piece| piece.entered() >= joining_threshold)?;
            found.push(Arc::clone(&piece));
            Some(Arc::clone(&piece.node))
        });
        let is_member = |piece: &&Arc<Piece>| region.nodes.iter().any(|node| Arc::ptr_eq(node, &piece.node));
        let unit = Ordered {
            root: Arc::downgrade(root),
            members: found.iter().filter(is_member).map(Arc::downgrade).collect(),
        };
        match &mut self.generator {
            Generator::Here(compiler) => {
                let began = Instant::now();
                let code = compiler.compile(&region, is_system);
                self.install(&unit, region, code.as_deref(), began.elapsed());
            }
            Generator::Behind {
                background,
                finished,
                ordered,
                number,
            } => {
                *number += 1;
                match background.order(*number, (region, is_system), finished) {
                    Ok(is_new) => {
                        if is_new {
                            // What was ordered of a parent's thread comes no more.
                            let lost = mem::take(ordered).into_values();
                            let roots = lost.filter_map(|lost| Piece::kept(&lost.root));
                            roots.for_each(|root| root.forget_entries());
                        }
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
            self.install(&unit, region, code.as_deref(), time);
        }
    }

    /// Makes code a unit, unless one of its blocks is gone or there is no room for it.
    fn install(&mut self, unit: &Ordered, region: Region, code: Option<&[u8]>, time: Duration) {
        let (Some(root), Some(code)) = (Piece::kept(&unit.root), code) else {
            return;
        };
        let members: Option<Vec<Arc<Piece>>> = unit.members.iter().map(Piece::kept).collect();
        let Some(members) = members else {
            return root.forget_entries();
        };
        let Some(place) = self.place(code) else { return };
        for member in &members {
            member.belong_to(&root);
        }
        self.statistics.note_unit(&region, code.len(), time);
        let memory = Arc::clone(&self.memory);
        root.install(Unit { region, memory }, place);
        self.roots.push(unit.root.clone());
    }

    /// Finds room for code; where there is none, everything is forgotten and begins anew.
    fn place(&mut self, code: &[u8]) -> Option<*const u8> {
        if let Some(place) = self.memory().put(code) {
            return Some(place);
        }
        let roots = mem::take(&mut self.roots);
        roots
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|root| root.retire());
        self.statistics.flushes += 1;
        let mut memory = self.memory();
        memory.clear();
        memory.put(code)
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
        };
        let piece = Arc::new(Piece::new(node));
        if context.detail == Detail::Effects {
            if self.pieces.len() >= PIECES_MAX {
                self.pieces.retain(|_, piece| piece.strong_count() > 0);
            }
            self.pieces.insert(context.place, Arc::downgrade(&piece));
        }
        Owned(piece)
    }

    #[inline(always)]
    fn enter<O: Observer>(&mut self, code: &Owned, mut running: Running<'_, '_, O>) -> Result<(), Raised> {
        let piece = &code.0;
        if O::DETAIL == Detail::Effects {
            if piece.code().is_null() && piece.count() == self.settings.threshold {
                let is_system = running.processor().mmu().is_some();
                self.promote(piece, is_system);
            }
            if !piece.code().is_null() {
                return self.enter_unit(piece, running);
            }
            if let Generator::Behind { finished, .. } = &self.generator
                && finished.is_some()
            {
                self.collect();
            }
        }
        Interpreter.enter(&piece.node.operations, running)
    }
}

impl Translator {
    /// Executes a unit from its root on, and the units that follow.
    fn enter_unit<O: Observer>(
        &mut self,
        root: &Arc<Piece>,
        mut running: Running<'_, '_, O>,
    ) -> Result<(), Raised> {
        let Translator {
            links, statistics, ..
        } = self;
        let flags = running.flags().map(ptr::from_ref);
        let remaining = running.remaining();
        let processor = running.processor();
        let scope = Scope::new(&root.node, processor);
        links.note(scope.place(processor).expect("the root's own"), root);
        let begun = processor.instructions_retired();
        let end = begun + remaining;
        let mut piece = root;
        statistics.entered += 1;
        loop {
            let processor = running.processor();
            let before = processor.instructions_retired();
            let left = execute(piece, processor, end - before, flags, statistics);
            let retired = processor.instructions_retired();
            statistics.translated += retired - before;
            left?;
            // A unit that does not fit what remains or the frame retires nothing.
            if retired == before || !running.may_go_on() {
                return Ok(());
            }
            let next = scope
                .place(running.processor())
                .and_then(|place| links.find(place));
            let Some(next) = next else { return Ok(()) };
            statistics.linked += 1;
            piece = next;
        }
    }
}

/// Executes a unit from its root on until it is left for another block.
#[inline(always)]
fn execute(
    root: &Piece,
    processor: &mut Processor,
    remaining: u64,
    [first, second]: [*const AtomicBool; 2],
    statistics: &mut Statistics,
) -> Result<(), Raised> {
    // SAFETY: the code was emitted for this type, and its unit is alive: it goes with its blocks, between two of them.
    // The processor is borrowed exclusively, the flags live as long as the run, and no more instructions may retire
    // than `remaining`.
    let code: Code = unsafe { mem::transmute(root.code()) };
    // SAFETY: as above.
    let answer = unsafe { code(processor, remaining, first, second) };
    match answer {
        NEXT_BLOCK => Ok(()),
        RAISED => {
            statistics.raised += 1;
            Err(Raised)
        }
        place => {
            statistics.left_over += 1;
            finish(root, processor, place - LEFT_OVER)
        }
    }
}

/// Leaves the rest of a block to the interpreter: the node and the operation that `place` combines.
#[cold]
fn finish(root: &Piece, processor: &mut Processor, place: i64) -> Result<(), Raised> {
    let (node, operation) = (place >> OPERATION_BITS, place & ((1 << OPERATION_BITS) - 1));
    let unit = root.unit();
    let nodes = unit.as_ref().map(|unit| &unit.region.nodes);
    let node = nodes.and_then(|nodes| nodes.get(node as usize));
    let operations = &node.expect("a node of the unit").operations;
    processor.finish_block(&operations[operation as usize..])
}

/// Where units may follow each other without the loop that looks for blocks.
struct Scope {
    /// Host address minus guest address on the page; `None` for a program, whose places are the guest's addresses.
    distance: Option<u64>,
    /// The host addresses of the page.
    page: (u64, u64),
}

impl Scope {
    /// What may follow a block that the processor is about to execute.
    fn new(node: &Node, processor: &Processor) -> Scope {
        let (address, _) = processor.instruction_pointer();
        let distance = (node.place & !15).wrapping_sub(address);
        Scope {
            distance: processor.mmu().is_some().then_some(distance),
            page: node.page,
        }
    }

    /// The place at which the processor is, if that is in the scope.
    #[inline(always)]
    fn place(&self, processor: &Processor) -> Option<u64> {
        let (address, slot) = processor.instruction_pointer();
        let slot = u64::from(slot);
        let Some(distance) = self.distance else {
            return Some(address | slot);
        };
        let host = address.wrapping_add(distance);
        (self.page.0..self.page.1).contains(&host).then_some(host | slot)
    }
}
