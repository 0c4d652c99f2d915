//! Blocks whose instructions retire together: booked as a whole where what they cost is known, else computed and kept.
//!
//! First the surroundings are asked about all of the block's instructions, in order, which writes down the signature.
//! That may come before anything is timed, as no answer depends on cycles. The one thing that the front end does
//! depending on groups, starting again behind a branch that was mispredicted and not taken, follows from the branch's
//! port and the stops behind it.

use sidestep_ia64::execution::{Frame, Together};

use super::answers::{Answers, Reference};
use super::fetch::Bundle;
use super::memo::{Before, Facts, Point, kind, word};
use super::observe::DECIDING;
use super::{Pipeline, memo};
use crate::branches::{Foreseen, Prediction};
use crate::dispersal::Port;
use crate::flags::Flags;
use crate::instruction::StaticInstruction;
use crate::memory::Translation;
use crate::parameters::Cost;
use crate::scoreboard::Renaming;

/// A block's instructions.
type Block<'a> = Together<'a, StaticInstruction>;

/// What a signature does not speak of, and what splits a group by what else is in it, which moves where the front end
/// starts again behind a branch.
const RARE: Flags = Flags::SERIALIZES
    .union(Flags::FROM_BSP)
    .union(Flags::STATUS)
    .union(Flags::REGION)
    .union(Flags::FLUSH_STACK)
    .union(Flags::LOAD_STACK);
const MOVES: Flags = Flags::BRANCH
    .union(Flags::FRAME)
    .union(Flags::TO_BRANCH)
    .union(Flags::PRIVILEGE)
    .union(Flags::ADVANCED)
    .union(Flags::CHECKS);
const REFERS: Flags = Flags::LOAD.union(Flags::STORE).union(Flags::PREFETCH);

/// Whether an instruction is computed by itself wherever others of its block are booked together.
pub(super) fn stands_apart(known: &StaticInstruction) -> bool {
    let flags = known.flags;
    let leaves = flags.contains(Flags::PRIVILEGE) && !flags.contains(Flags::RETURN);
    flags.intersects(RARE) || leaves || known.behind.is_some()
}

/// Looks at a block for the first time.
fn facts(block: &Block<'_>) -> Facts {
    let mut points = Vec::new();
    let mut pair = None;
    for index in 0..block.length() {
        let flags = block.known(index).flags;
        let here = block.place(index).ip >> 5;
        let point = Point {
            index,
            is_fetched: pair.replace(here) != Some(here),
            refers: flags.intersects(REFERS) && !flags.contains(Flags::NOP),
            moves: flags.intersects(MOVES),
        };
        if point.is_fetched || point.refers || point.moves {
            points.push(point);
        }
    }
    Facts {
        points: points.into(),
    }
}

/// What usually comes of a reference.
fn usual_reference(flags: Flags, second_level: u64) -> Reference {
    Reference {
        translation: Translation::First,
        more: 0,
        is_first_level: flags.contains(Flags::LOAD) && !flags.contains(Flags::SECOND_LEVEL),
        stores: 0,
        duration: match flags.contains(Flags::STORE) {
            true => second_level,
            false => 0,
        },
    }
}

/// The instruction that issues the group of a branch: the branch itself or one behind it, which finds that nothing may
/// follow in the same cycle.
fn issues_group(block: &Block<'_>, branch: usize) -> usize {
    let mut index = branch;
    loop {
        let known = block.known(index);
        match known.port {
            _ if known.stop => return index,
            // What follows in the bundle has a port beside it.
            Port::BranchMultiple(0 | 1) if index + 1 < block.length() => index += 1,
            _ => return index + 1,
        }
    }
}

/// A reference as two numbers: cycles of the walker, and the rest.
fn pack(reference: &Reference) -> (u64, u64) {
    let (translation, wait) = match reference.translation {
        Translation::First => (0, 0),
        Translation::Second => (1, 0),
        Translation::Walk(wait) => (2, wait),
    };
    let rest = translation
        | u64::from(reference.is_first_level) << 2
        | u64::from(reference.stores) << 3
        | reference.more << 19
        | reference.duration << 41;
    (wait, rest)
}

fn unpack(wait: u64, rest: u64) -> Reference {
    Reference {
        translation: match rest & 3 {
            0 => Translation::First,
            1 => Translation::Second,
            _ => Translation::Walk(wait),
        },
        is_first_level: rest >> 2 & 1 != 0,
        stores: (rest >> 3) as u16,
        more: rest >> 19 & ((1 << 22) - 1),
        duration: rest >> 41,
    }
}

fn pack_foreseen(foreseen: Foreseen) -> u64 {
    match foreseen {
        Foreseen::As(Prediction::Correct) => 0,
        Foreseen::As(Prediction::WrongPath) => 1,
        Foreseen::As(Prediction::WrongTarget) => 2,
        Foreseen::UnlessMoved => 3,
    }
}

fn unpack_foreseen(word: u64) -> Foreseen {
    match word {
        0 => Foreseen::As(Prediction::Correct),
        1 => Foreseen::As(Prediction::WrongPath),
        2 => Foreseen::As(Prediction::WrongTarget),
        _ => Foreseen::UnlessMoved,
    }
}

/// Reads a signature's answers.
struct Answered<'a> {
    words: std::slice::Iter<'a, u64>,
    executed: &'a [u64],
    /// How many instructions there are, and whether a branch was taken behind the last.
    retired: usize,
    taken: bool,
}

impl Answered<'_> {
    fn new(signature: &[u64]) -> Answered<'_> {
        let retired = (signature[0] & 0xffff) as usize;
        let executed = retired.div_ceil(64);
        Answered {
            executed: &signature[1..=executed],
            words: signature[1 + executed..].iter(),
            retired,
            taken: signature[0] >> 16 & 1 != 0,
        }
    }

    /// The value of an instruction's next word, if it is of a kind.
    fn next(&mut self, index: usize, kind: u64) -> Option<u64> {
        let first = *self.words.as_slice().first()?;
        let is_it = first & 0xffff == word(index, kind, 0);
        is_it.then(|| {
            self.words.next();
            first >> 16
        })
    }

    /// The word that follows another.
    fn rest(&mut self) -> u64 {
        self.words.next().copied().unwrap_or_default()
    }

    /// What the front end says of an instruction's bundle, behind the one of the instruction before.
    fn bundle(&mut self, index: usize, before: u64, ip: u64) -> (Bundle, u64) {
        let bundle = match self.next(index, kind::BUNDLE) {
            Some(0) => Bundle::Same,
            Some(1) => Bundle::Fetched,
            Some(_) => Bundle::New,
            None if index > 0 && before == ip => Bundle::Same,
            None if index > 0 && before >> 5 == ip >> 5 => Bundle::Fetched,
            None => Bundle::New,
        };
        (bundle, self.next(index, kind::FETCH).unwrap_or(0))
    }

    /// Everything else that was answered for an instruction.
    fn answers(&mut self, index: usize, known: &StaticInstruction, second_level: u64) -> Answers {
        let flags = known.flags;
        let mut answers = Answers {
            executed: self.executed[index / 64] >> (index % 64) & 1 != 0,
            taken: self.taken && index + 1 == self.retired,
            ..Answers::default()
        };
        if answers.executed && flags.intersects(REFERS) && !flags.contains(Flags::NOP) {
            let reference = match self.next(index, kind::REFERENCE) {
                Some(wait) => unpack(wait, self.rest()),
                None => usual_reference(flags, second_level),
            };
            answers.reference = Some(reference);
        }
        if let Some(foreseen) = self.next(index, kind::BRANCH) {
            answers.foreseen = unpack_foreseen(foreseen);
        }
        if let Some(spilling) = self.next(index, kind::STACK) {
            (answers.spilling, answers.filling) = (spilling, self.rest());
        }
        // The board follows the frame itself.
        self.next(index, kind::RENAMING);
        answers
    }
}

impl Pipeline {
    /// Whether blocks may be booked as a whole at the moment.
    #[inline]
    pub(super) fn may_book(&mut self) -> bool {
        if !self.memo.is_on {
            return false;
        }
        let is_watched = !self.is_attached
            || self.is_configured_anew
            || self.is_monitor_changed
            || self.timing.is_recorded
            || self.performance_monitor.is_counting()
            || self.seen.status & DECIDING != self.monitored_status
            || self.seen.privilege_level() != self.privilege_level;
        if is_watched {
            self.memo.statistics.watched += 1;
            return false;
        }
        if !self.timing.has_canonical_state() {
            self.memo.statistics.flushed += 1;
            return false;
        }
        !self.memo.rests()
    }

    /// Books a block.
    pub(super) fn retire_together(&mut self, block: &Block<'_>) {
        if block.retired() == 0 {
            return;
        }
        let identity = block.identity();
        let number = match self.memo.block(identity) {
            Some(number) => number,
            None => {
                self.settle();
                self.memo.bound();
                self.memo.find_block(identity, || facts(block))
            }
        };
        let changes_level = (block.status() ^ self.seen.status) & DECIDING != 0;
        let is_regular = |(_, frame): &(usize, Frame)| Renaming::of(frame).is_regular();
        if changes_level || !block.frames().iter().all(is_regular) {
            self.memo.statistics.unsuitable += 1;
            block.tell_each(self);
            return;
        }
        let state = match self.memo.state {
            Some(state) => state,
            None => match self.number_state() {
                Some(state) => state,
                None => {
                    block.tell_each(self);
                    return;
                }
            },
        };
        let renaming = self.timing.scoreboard.renaming();
        self.ask(block, number, state);
        match self.memo.find(number, state) {
            Some(transition) => {
                self.timing.cycle += transition.cycles;
                self.timing.groups += transition.groups;
                transition.book(&mut self.timing.booked, &mut self.values);
                let (exit, has_restarted) = (transition.exit, transition.has_restarted);
                if has_restarted {
                    self.position.redirect();
                }
                self.memo.state = Some(exit);
                self.memo.is_settled = false;
                self.memo.statistics.whole += 1;
                self.memo.statistics.instructions += block.retired() as u64;
            }
            None => self.compute(block, (number, state), renaming),
        }
    }

    /// Gives the pipeline itself the state that it is in by number.
    #[inline]
    pub(super) fn settle(&mut self) {
        if !self.memo.is_settled {
            self.put_state_back();
        }
        self.memo.state = None;
    }

    #[cold]
    fn put_state_back(&mut self) {
        self.memo.is_settled = true;
        if let Some(state) = self.memo.state {
            let words = self.memo.state_words(state);
            self.timing.read_state(&words, self.position.ip());
        }
    }

    /// The number of the state that the pipeline itself is in, between two groups; `None` if it has none.
    fn number_state(&mut self) -> Option<u32> {
        self.memo.words.clear();
        let is_regular = self.timing.scoreboard.renaming().is_regular();
        if !is_regular || !self.timing.write_state(&mut self.memo.words) {
            return None;
        }
        let number = self.memo.number(self.timing.stores_met());
        (self.memo.state, self.memo.is_settled) = (Some(number), true);
        Some(number)
    }

    /// Asks the surroundings about a block's instructions, and writes down the signature.
    fn ask(&mut self, block: &Block<'_>, number: u32, state: u32) {
        let mut signature = std::mem::take(&mut self.memo.signature);
        signature.clear();
        let retired = block.retired();
        let executed = &block.executed()[..retired.div_ceil(64)];
        signature.push(retired as u64 | u64::from(block.taken().is_some()) << 16);
        signature.extend(executed);
        let last = signature.len() - 1;
        signature[last] &= u64::MAX >> (64 * last - retired);
        let second_level = u64::from(self.timing.parameters.l2.latency);
        let mut stores = self.memo.stores_met(state);
        let mut frames = block.frames().iter().peekable();
        let mut branches = block.branches().iter().peekable();
        let mut advanced = block.advanced().iter().peekable();
        // Where the front end has started again behind a branch that was mispredicted and not taken.
        let mut restart = None;
        // The facts are not changed meanwhile.
        let facts = std::mem::take(&mut self.memo.facts);
        for point in &facts[number as usize].points {
            let index = point.index;
            if index >= retired {
                break;
            }
            let restarts = restart.take_if(|at| *at <= index);
            if let Some(at) = restarts {
                self.fetch_again(block, at, &mut signature);
            }
            if point.is_fetched && restarts != Some(index) {
                let (bundle, more) = self.go_to(block.memory(), block.place(index).ip);
                match bundle {
                    Bundle::Same => signature.push(word(index, kind::BUNDLE, 0)),
                    Bundle::Fetched => signature.push(word(index, kind::BUNDLE, 1)),
                    Bundle::New if more > 0 => signature.push(word(index, kind::FETCH, more)),
                    Bundle::New => {}
                }
            }
            let flags = block.known(index).flags;
            let is_executed = executed[index / 64] >> (index % 64) & 1 != 0;
            if point.refers && is_executed {
                let reference = self.refer(block.memory(), flags, block.reference(index), stores);
                stores += usize::from(flags.contains(Flags::STORE));
                if reference != usual_reference(flags, second_level) {
                    let (wait, rest) = pack(&reference);
                    signature.push(word(index, kind::REFERENCE, wait));
                    signature.push(rest);
                }
            }
            if !point.moves {
                continue;
            }
            while let Some((_, frame)) = frames.next_if(|(at, _)| *at <= index) {
                self.seen.frame = *frame;
            }
            while let Some((_, register, value)) = branches.next_if(|(at, ..)| *at <= index) {
                self.seen.branch[*register] = *value;
            }
            while let Some((_, events)) = advanced.next_if(|(at, _)| *at <= index) {
                self.seen.advanced_loads = *events;
            }
            let foreseen = self.move_on(block, index, is_executed, &mut signature);
            if foreseen == Foreseen::As(Prediction::WrongPath) {
                restart.get_or_insert(issues_group(block, index) + 1);
            }
        }
        if let Some(at) = restart.filter(|at| *at < retired) {
            self.fetch_again(block, at, &mut signature);
        }
        self.memo.facts = facts;
        self.memo.signature = signature;
        self.position.stay(block.place(retired - 1).ip);
        if block.taken().is_some() {
            self.position.redirect();
        }
    }

    /// Fetches the bundle of an instruction in front of which the front end has started again.
    fn fetch_again(&mut self, block: &Block<'_>, index: usize, signature: &mut memo::Signature) {
        self.position.redirect();
        let (_, more) = self.go_to(block.memory(), block.place(index).ip);
        signature.push(word(index, kind::BUNDLE, 2));
        if more > 0 {
            signature.push(word(index, kind::FETCH, more));
        }
    }

    /// Asks about an instruction that branches, changes frame or branch registers, or has to do with advanced loads.
    fn move_on(
        &mut self,
        block: &Block<'_>,
        index: usize,
        is_executed: bool,
        signature: &mut memo::Signature,
    ) -> Foreseen {
        let known = block.known(index);
        let flags = known.flags;
        let taken = block.taken().filter(|_| index + 1 == block.retired());
        if is_executed && flags.intersects(Flags::ADVANCED | Flags::CHECKS) {
            self.check(&block.dynamic(index), flags);
        }
        if is_executed && flags.contains(Flags::TO_BRANCH) {
            self.move_to_branch(known);
        }
        if is_executed && flags.contains(Flags::CALL) {
            self.branch_registers = self.seen.branch;
        }
        let mut foreseen = Foreseen::As(Prediction::Correct);
        if flags.contains(Flags::BRANCH) {
            foreseen = self.foresee(known, block.place(index), taken);
            if foreseen != Foreseen::As(Prediction::Correct) {
                signature.push(word(index, kind::BRANCH, pack_foreseen(foreseen)));
            }
        }
        if is_executed && flags.contains(Flags::FRAME) {
            let frame = self.seen.frame;
            let before = self.timing.scoreboard.renaming();
            let renaming = Renaming::of(&frame);
            self.timing.scoreboard.set_renaming(renaming);
            let (spilling, filling) = self.stack_traffic(block.memory(), &frame);
            if spilling + filling > 0 {
                signature.push(word(index, kind::STACK, spilling));
                signature.push(filling);
            }
            if renaming != before {
                signature.push(word(index, kind::RENAMING, before.change_to(&renaming)));
            }
        }
        if is_executed && flags.contains(Flags::PRIVILEGE) {
            self.memory.context_changed();
        }
        foreseen
    }

    /// Computes what the signature's instructions cost, and keeps it.
    #[cold]
    fn compute(&mut self, block: &Block<'_>, (number, state): (u32, u32), renaming: Renaming) {
        self.memo.statistics.new += 1;
        let position = self.position.ip();
        self.timing.scoreboard.set_renaming(renaming);
        if !self.memo.is_settled {
            let words = self.memo.state_words(state);
            self.timing.read_state(&words, position);
        }
        self.memo.is_settled = true;
        let before = self.counted();
        let signature = std::mem::take(&mut self.memo.signature);
        let has_restarted = self.time(block, &signature);
        self.memo.signature = signature;
        if has_restarted {
            self.position.redirect();
        }
        self.memo.state = None;
        if self.timing.has_canonical_state()
            && let Some(exit) = self.number_state()
        {
            let after = self.counted();
            self.memo
                .keep((number, state, exit), &before, &after, has_restarted);
        }
    }

    fn counted(&self) -> Before {
        Before {
            cycle: self.timing.cycle,
            groups: self.timing.groups,
            booked: self.timing.booked,
            values: self.values,
        }
    }

    /// Runs the pipeline proper over a signature's instructions. Answers whether the front end starts again behind the
    /// last.
    fn time(&mut self, block: &Block<'_>, signature: &[u64]) -> bool {
        let second_level = u64::from(self.timing.parameters.l2.latency);
        let mut answered = Answered::new(signature);
        let mut frames = block.frames().iter().peekable();
        let mut frame = Frame::default();
        let mut before = 0;
        let mut has_restarted = false;
        for index in 0..answered.retired {
            let known = block.known(index);
            let place = block.place(index);
            let (bundle, more) = answered.bundle(index, before, place.ip);
            before = place.ip;
            self.timing.take_bundle(place.ip, bundle, more);
            self.timing.disperse(known);
            let answers = answered.answers(index, known, second_level);
            self.count(answers.executed, known.flags);
            self.timing.wait_for_operands(known, answers.executed);
            if let Some((_, left)) = frames.next_if(|(at, _)| *at == index) {
                frame = *left;
            }
            let prediction = self.timing.execute(known, &answers, &frame);
            if known.flags.contains(Flags::BRANCH) {
                let taken = block.taken().filter(|_| answers.taken);
                self.count_branch(known, place, taken, prediction);
            }
            self.timing.end(known, answers.taken);
            has_restarted = std::mem::take(&mut self.timing.has_restarted);
        }
        has_restarted
    }

    /// Whether the parameters are such that states have a canonical form.
    pub(super) fn has_canonical_states(&self) -> bool {
        let window = self.timing.parameters.cost(Cost::StoreWindow);
        self.timing.scoreboard.has_usual_bypasses() && window < 1 << 16
    }
}
