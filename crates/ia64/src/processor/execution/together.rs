//! Executing blocks whose instructions an observer takes together: by the interpreter, or by a back end's code, which
//! fills a [`Gathered`] and says how it has [`Left`] the block.

use std::ptr;

use super::backend::{Did, Observed, Running};
use super::gathering::{BeforeWalk, Gathered, Gathering, Kind, Together};
use super::observer::{Observer, Place, Translation, Watch};
use super::operation::{Flow, MicroOperation};
use crate::encoding::Effects;
use crate::processor::{Processor, Raised, semantics};

/// How a back end's code that gathers has left its block. Counts and the instruction pointer are those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Behind its last instruction.
    Behind,
    /// By a branch that was taken to where [`TARGET`](crate::processor::layout::TARGET) says.
    ByBranch,
    /// By an instruction that raised a fault or trap.
    ByFault,
    /// In front of the instruction of this index: the interpreter goes on. Counts are those at the block's start.
    Before(usize),
}

impl<O: Observer> Running<'_, '_, O> {
    /// How many of the block's first instructions the observer takes together, if it does.
    pub fn gathered(&self) -> Option<usize> {
        Some(self.gathers?.length)
    }

    /// Begins a block that a back end's code gathers: answers what it fills.
    ///
    /// # Panics
    /// If the observer does not take the block's instructions [together](Running::gathered).
    #[inline]
    pub fn begin_gathering(&mut self) -> *mut Gathered {
        let gathering = self.gathers.expect("the observer takes them together");
        self.processor.block_start = self.processor.ip;
        let gathered = self.watch.gathered.get_or_insert_default();
        gathered.begin(gathering);
        ptr::from_mut(gathered)
    }

    /// Tells the observer of what a back end's code has gathered, which had been entered when `begun` instructions had
    /// retired, and goes on where that code has left the block.
    ///
    /// # Errors
    /// As [`Backend::enter`](super::Backend::enter).
    ///
    /// # Panics
    /// If nothing was [begun](Running::begin_gathering).
    #[inline]
    pub fn finish_gathering(
        self,
        operations: &[MicroOperation],
        left: Left,
        begun: u64,
    ) -> Result<(), Raised> {
        let Running {
            processor,
            known,
            watch,
            gathers,
            gathers_later,
            ..
        } = self;
        let gathering = gathers.expect("the observer takes them together");
        let mut gathered = watch.gathered.take().expect("gathering was begun");
        let block = Observed::block(operations, known, gathers_later);
        if let Left::Before(index) = left {
            return processor.go_on_gathering(&block, gathering, (gathered, index), watch);
        }
        gathered.retired = (processor.retired - begun) as usize;
        let has_completed = left != Left::ByFault || processor.has_completed(Err(Raised));
        if has_completed && let Some(last) = gathered.retired.checked_sub(1) {
            // The code gathers what an instruction has changed where others follow.
            processor.gather_changes_of(&mut gathered, last, &operations[last], known[last].effects);
        }
        gathered.taken = (left == Left::ByBranch).then_some(processor.target);
        let together = processor.together(&block, gathering, &gathered, processor);
        watch.observer.retired_together(&together);
        watch.gathered = Some(gathered);
        match left {
            Left::ByFault => Err(Raised),
            _ => Ok(()),
        }
    }
}

impl Processor {
    /// As [`Processor::observe_rest`], telling of the instructions together that are gathered, from the first one on.
    pub(super) fn execute_gathered<O: Observer>(
        &mut self,
        block: &Observed<'_, O::Static>,
        gathering: &Gathering,
        watch: &mut Watch<'_, O>,
    ) -> Result<(), Raised> {
        let mut gathered = watch.gathered.take().unwrap_or_default();
        gathered.begin(gathering);
        self.gather_from(block, gathering, (gathered, 0), watch)
    }

    /// Goes on with a block, whose first instructions have been executed and are gathered.
    #[cold]
    fn go_on_gathering<O: Observer>(
        &mut self,
        block: &Observed<'_, O::Static>,
        gathering: &Gathering,
        (gathered, index): (Box<Gathered>, usize),
        watch: &mut Watch<'_, O>,
    ) -> Result<(), Raised> {
        let first = gathering
            .acting
            .partition_point(|acting| usize::from(acting.index) < index);
        self.gather_from(block, gathering, (gathered, first), watch)
    }

    /// Executes what acts of a block from the one with the number `first` on.
    #[inline(always)]
    fn gather_from<O: Observer>(
        &mut self,
        block: &Observed<'_, O::Static>,
        gathering: &Gathering,
        (mut gathered, first): (Box<Gathered>, usize),
        watch: &mut Watch<'_, O>,
    ) -> Result<(), Raised> {
        let Observed {
            operations, known, ..
        } = *block;
        // A fault before the last block may have left one.
        self.before_walk = None;
        self.keeps_before_walk = true;
        let mut flow = Ok(Flow::Next);
        let mut last = None;
        for acting in &gathering.acting[first..] {
            let index = usize::from(acting.index);
            let operation = &operations[index];
            let mut executed = true;
            if acting.predicate != 0 {
                executed = self.predicate(acting.predicate);
                gathered.executed[index / 64] |= u64::from(executed) << (index % 64);
            }
            if acting.kind.contains(Kind::REFERS) && executed {
                gathered.references[index] = self.general.value(acting.base);
            }
            // Some operations act under a false predicate, too.
            if executed || operation.predicate == 0 {
                flow = semantics::execute(self, operation);
            }
            if flow == Ok(Flow::Next) && !acting.kind.intersects(Kind::MAY_WALK | Kind::CHANGES) {
                continue;
            }
            if acting.kind.contains(Kind::MAY_WALK) && self.before_walk.is_some() {
                last = Some((index, executed));
                break;
            }
            if flow != Ok(Flow::Next) {
                if self.has_completed(flow) {
                    gathered.retired = index + 1;
                    self.gather_changes_of(&mut gathered, index, operation, known[index].effects);
                } else {
                    gathered.retired = index;
                }
                last = Some((index, executed));
                break;
            }
            if acting.kind.contains(Kind::CHANGES) {
                self.gather_changes_of(&mut gathered, index, operation, known[index].effects);
            }
        }
        self.keeps_before_walk = false;
        let before_walk = self.before_walk.take();
        match (&before_walk, last) {
            (Some(_), Some((index, _))) => gathered.retired = index,
            (_, None) => gathered.retired = gathering.length,
            (None, Some(_)) => {}
        }
        gathered.taken = (flow == Ok(Flow::Branch) && before_walk.is_none()).then_some(self.target);
        let before_walk = before_walk.as_deref().map(|data| BeforeWalk {
            processor: self,
            data,
        });
        let memory: &dyn Translation = match &before_walk {
            None => self,
            Some(before) => before,
        };
        let together = self.together(block, gathering, &gathered, memory);
        watch.observer.retired_together(&together);
        let has_walked = before_walk.is_some();
        let Some((index, executed)) = last else {
            watch.gathered = Some(gathered);
            return self.observe_rest(&block.from(gathering.length), watch);
        };
        let operation = &operations[index];
        if has_walked {
            let did = Did {
                place: Place {
                    ip: self.bundle_address(operation),
                    slot: operation.slot(),
                },
                executed,
                reference: (executed && known[index].base.is_some()).then(|| gathered.references[index]),
                flow,
            };
            watch.gathered = Some(gathered);
            return match self.tell(operation, &known[index], did, watch)? {
                true => self.observe_rest(&block.from(index + 1), watch),
                false => Ok(()),
            };
        }
        watch.gathered = Some(gathered);
        match flow {
            Ok(_) => {
                self.arrive(operation);
                Ok(())
            }
            Err(Raised) => {
                self.stop_at(operation);
                Err(Raised)
            }
        }
    }

    /// What an observer is told of the instructions that were gathered.
    #[inline(always)]
    fn together<'a, S>(
        &self,
        block: &Observed<'a, S>,
        gathering: &Gathering,
        gathered: &'a Gathered,
        memory: &'a dyn Translation,
    ) -> Together<'a, S> {
        Together {
            identity: gathering.identity,
            start: self.block_start,
            operations: &block.operations[..gathering.length],
            known: &block.known[..gathering.length],
            gathered,
            status: self.status,
            memory,
        }
    }

    /// Gathers what an instruction of these effects that has retired has changed, for a back end's code. Whether it was
    /// executed is gathered.
    pub fn gather_changes(&self, gathered: &mut Gathered, operation: &MicroOperation, effects: Effects) {
        // Every instruction of a block that is gathered retires by itself.
        self.gather_changes_of(gathered, usize::from(operation.retired) - 1, operation, effects);
    }

    /// As [`Processor::gather_changes`], for the instruction of an index among those that are gathered.
    #[inline]
    fn gather_changes_of(
        &self,
        gathered: &mut Gathered,
        index: usize,
        operation: &MicroOperation,
        effects: Effects,
    ) {
        if effects.contains(Effects::CHANGES_FRAME) {
            gathered.frames.push((index, self.observed_frame()));
        }
        if !gathered.is_executed(index) {
            return;
        }
        if effects.contains(Effects::WRITES_BRANCH) {
            let register = usize::from(operation.r1 & 7);
            gathered.branches.push((index, register, self.branch[register]));
        }
        if effects.contains(Effects::ADVANCED) {
            gathered.advanced.push((index, self.advanced_load_events()));
        }
    }
}
