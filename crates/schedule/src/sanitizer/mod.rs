//! Watches a run, and finds what it does that the architecture leaves undefined although an emulator, which executes
//! one instruction after the other, gives it a meaning: dependencies inside instruction groups, instructions that stand
//! in the wrong place of their group, system state that is read before it was serialised, registers without a value.
//!
//! - `known`: what a block is decoded to. Nearly all groups of correct code cannot violate anything whatever their
//!   values are; a block of such groups is executed [unwatched](Observer::follows).
//! - `dependency`: two instructions of one group, with what the run says of them: predicates, names of registers, bits
//!   of UNAT, rows of register files.
//! - `serialization`: writes that wait for `srlz.d` or `srlz.i`. `stacked`: registers of the stack without a value.
//! - `rule` and `findings`: what is found, once for each place.
//!
//! The table of dependencies is [`sequencing`](crate::sequencing), as for the scheduler and the static
//! [checker](crate::groups).

mod dependency;
mod findings;
mod known;
mod rule;
mod serialization;
mod stacked;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sidestep_ia64::encoding::{BranchKind, DecodedSlot, Instruction};
use sidestep_ia64::execution::{Dynamic, Event, Observer, Permission, Place, Registers};

use crate::sequencing::{Names, Parts, Position};
use dependency::Run;
use known::{Decoder, Facts, Marks, Tail, leaves, may_depend};
use serialization::Unserialized;
use stacked::Stacked;

pub use findings::{Finding, Findings, Located};
pub use known::Known;
pub use rule::Rule;

/// Looks for violations in what one processor executes.
pub struct Sanitizer {
    decoder: Decoder,
    /// The group that runs, without what does nothing.
    group: Vec<Member>,
    /// Its instructions, what does nothing included.
    length: usize,
    /// How many of its members were executed before the current block was entered.
    carried: usize,
    /// Counts groups.
    number: u64,
    /// Where it goes on, if nothing interferes.
    next: Place,
    /// Whether every instruction of the block is looked at, and not those of watched groups alone.
    looks: bool,
    /// The group that goes on behind the block before, while nothing in it may depend on what is in that block.
    carrying: Option<Arc<Marks>>,
    names: Names,
    unserialized: Unserialized,
    stacked: Stacked,
    findings: Findings,
    halts: bool,
}

/// An instruction of a group that has run.
#[derive(Clone, Debug)]
struct Member {
    place: Place,
    facts: Arc<Facts>,
    run: Run,
}

impl Member {
    fn located(&self) -> Located {
        Located {
            place: self.place,
            instruction: self.facts.instruction,
        }
    }
}

impl Sanitizer {
    /// One that has found nothing. With `halts` it ends the run where it has found something at a place that is new to
    /// it, behind the block; whoever wants to go on then says so by [`Sanitizer::go_on`].
    pub fn new(halts: bool) -> Sanitizer {
        Sanitizer {
            decoder: Decoder::default(),
            group: Vec::new(),
            length: 0,
            carried: 0,
            number: 0,
            next: Place::default(),
            looks: false,
            carrying: None,
            names: Names::default(),
            unserialized: Unserialized::default(),
            stacked: Stacked::default(),
            findings: Findings::default(),
            halts,
        }
    }

    /// What was found so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// What was found so far is no reason to halt.
    pub fn go_on(&mut self) {
        self.findings.seen();
    }

    /// The group is over.
    fn end_group(&mut self) {
        self.group.clear();
        (self.length, self.carried) = (0, 0);
        self.number += 1;
        self.unserialized.begin_group();
    }

    /// Looks at the instruction against those before it in its group.
    fn check_group(&mut self, known: &Known, member: &Member) {
        let suspects = known.suspects[usize::from(member.run.executed)];
        for (index, earlier) in self.group.iter().enumerate() {
            let distance = self.group.len() - 1 - index;
            let is_carried = index < self.carried;
            if is_carried
                && [false, true].map(|executed| may_depend(&earlier.facts, &member.facts, executed))
                    != [false; 2]
            {
                self.carrying = None;
            }
            let is_suspect = is_carried || suspects >> distance.min(63) & 1 != 0;
            if !is_suspect || !earlier.run.executed && !earlier.facts.writes_off {
                continue;
            }
            let found = dependency::find(&earlier.facts, &earlier.run, &member.facts, &member.run);
            if let Some((kind, on)) = found {
                let first = Some(earlier.located());
                self.findings.add(first, member.located(), Rule::Group(kind), on);
            }
        }
    }

    /// Looks at where the instruction stands.
    fn check_position(&mut self, known: &Known, member: &Member) {
        let is_behind =
            self.length > 0 && member.facts.on.position == Some(Position::First) && known.misplaced.is_none();
        let misplaced = match is_behind {
            true => Some(Position::First),
            false => known.misplaced,
        };
        if let Some(position) = misplaced {
            self.carrying = None;
            let first = match position {
                Position::First => self.group.last().map(Member::located),
                Position::Last => None,
            };
            self.findings
                .add(first, member.located(), Rule::Position(position), Parts::NONE);
        }
    }
}

impl Observer for Sanitizer {
    type Static = Known;
    const INSPECTS: bool = true;

    fn begins_block(&mut self) {
        self.decoder.begin();
        // A part of a block, decoded for this once, when the block has been entered: what its groups suspect is of
        // the part.
        self.looks = true;
    }

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> Known {
        self.decoder.decode(instruction, slot)
    }

    fn retired(&mut self, _: &Known, _: &Dynamic<'_>) {}

    fn inspect(&mut self, known: &Known, dynamic: &Dynamic<'_>, registers: Registers<'_>) {
        let facts = &known.facts;
        let before = self.names;
        if facts.renames {
            self.names = Names::new(registers.frame(), registers.depth());
        }
        if !self.looks && !known.marks.is_watched.load(Ordering::Relaxed) {
            if facts.renames {
                self.stacked.rename(registers);
            }
            return;
        }
        if !facts.is_nothing {
            let names = match facts.is_alloc() {
                true => self.names,
                false => before,
            };
            let member = Member {
                place: dynamic.place,
                facts: Arc::clone(facts),
                run: Run::of(facts, dynamic, names, registers),
            };
            self.check_group(known, &member);
            self.check_position(known, &member);
            if dynamic.executed {
                self.stacked.pass(&member, registers, &mut self.findings);
                self.unserialized.pass(&member, self.number, &mut self.findings);
            }
            self.group.push(member);
        }
        self.length += 1;
        if known.stop || dynamic.taken.is_some() {
            if self.carried > 0
                && let Some(carrying) = self.carrying.take()
            {
                // Nothing of the group is behind, whatever the values are.
                let is_whole = known.stop || leaves(&facts.instruction);
                carrying.is_harmless.store(is_whole, Ordering::Relaxed);
            }
            self.end_group();
        } else {
            self.next = following(dynamic.place, facts.instruction.is_long());
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Interrupted(_) => {
                self.end_group();
                self.unserialized.clear();
                self.stacked.clear();
            }
            Event::Resumed(_)
            | Event::Status(_)
            | Event::Region { .. }
            | Event::Branch { .. }
            | Event::Frame(_)
            | Event::AdvancedLoads(_)
            | Event::Walk { .. }
            | Event::PerformanceMonitor(_) => {}
        }
    }

    fn permits(&mut self, _: Place, _: Range<u64>) -> Permission {
        match self.halts && self.findings.has_new() {
            true => Permission::Halt,
            false => Permission::Block,
        }
    }

    fn follows(&mut self, place: Place, last: Option<&Known>, registers: Registers<'_>) -> bool {
        if self.length > 0 && place != self.next {
            self.end_group();
        }
        self.carried = self.group.len();
        let Some(Known { block, marks, .. }) = last else {
            self.end_group();
            self.stacked.clear();
            return false;
        };
        let reads_undefined = self.stacked.enter(block, registers);
        let goes_on = block.tail.goes_on(registers) && !marks.is_harmless.load(Ordering::Relaxed);
        self.looks = reads_undefined || self.length > 0 || self.unserialized.concerns_ordinary() || goes_on;
        if self.length == 0 {
            // What a loop branch renames is not to be judged by its numbers.
            let is_plain = matches!(block.tail, Tail::Open | Tail::Counted(BranchKind::CountedLoop));
            self.carrying = (goes_on && is_plain).then(|| Arc::clone(marks));
        }
        let follows = self.looks || block.is_wanted;
        if follows {
            self.names = Names::new(registers.frame(), registers.depth());
        } else {
            self.number += 1;
        }
        follows
    }
}

/// Where the instruction behind one stands.
fn following(Place { ip, slot }: Place, is_long: bool) -> Place {
    match slot == 2 || is_long {
        true => Place {
            ip: ip.wrapping_add(16),
            slot: 0,
        },
        false => Place { ip, slot: slot + 1 },
    }
}
