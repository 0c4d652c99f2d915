//! Blocks whose instructions retire together: booked as a whole where what they cost is known, else computed and kept.
//!
//! First the surroundings are asked about all of the block's instructions, in order, which writes down the signature.
//! That may come before anything is timed, as no answer depends on cycles. The one thing that the front end does
//! depending on groups, starting again behind a branch that was mispredicted and not taken, follows from the branch's
//! port and the stops behind it.

use sidestep_ia64::alat;
use sidestep_ia64::execution::{Frame, State, Together};

use super::Pipeline;
use super::answers::Met;
use super::fetch::{Bundle, PAIR_LOG2};
use super::memo::{Asks, Before, Point, Totals};
use super::observe::DECIDING;
use super::signature::{Answered, REFERS, Signature, is_usual, kind, pack, pack_foreseen, word};
use crate::branches::{Branch, Foreseen, Prediction, Predictor};
use crate::dispersal::Port;
use crate::flags::Flags;
use crate::instruction::StaticInstruction;
use crate::parameters::Cost;
use crate::pmu::event::Event;
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
/// What leaves something beside registers and memory.
const CHANGES: Flags = Flags::CALL
    .union(Flags::FRAME)
    .union(Flags::TO_BRANCH)
    .union(Flags::PRIVILEGE)
    .union(Flags::ADVANCED)
    .union(Flags::CHECKS);

/// Whether an instruction is computed by itself wherever others of its block are booked together.
pub(super) fn stands_apart(known: &StaticInstruction) -> bool {
    let flags = known.flags;
    let leaves = flags.contains(Flags::PRIVILEGE) && !flags.contains(Flags::RETURN);
    flags.intersects(RARE) || leaves || known.behind.is_some()
}

/// Looks at a block for the first time. Pairs of bundles behind the first on a line of the instruction cache are there
/// when it is: nobody need be asked.
fn points(block: &Block<'_>, line_log2: u32) -> Box<[Point]> {
    let mut points = Vec::new();
    let mut line = None;
    let mut is_behind_stop = false;
    for index in 0..block.length() {
        let known = block.known(index);
        let place = block.place(index);
        let here = place.ip >> line_log2.max(PAIR_LOG2);
        let mut ask = |asks: Asks| {
            points.push(Point {
                offset: place.ip.wrapping_sub(block.start()) as u16,
                index: index as u8,
                slot: place.slot,
                asks,
                detail: match asks {
                    Asks::Load | Asks::Store | Asks::Reference => known.size_log2,
                    Asks::Fetch | Asks::Branch | Asks::Change => known.branch_register,
                },
                is_predicated: known.is_predicated,
                is_behind_stop: std::mem::take(&mut is_behind_stop),
                flags: known.flags,
            });
        };
        if line.replace(here) != Some(here) {
            ask(Asks::Fetch);
        }
        let refers = known.flags & (REFERS | Flags::SECOND_LEVEL);
        if refers.intersects(REFERS) && !known.flags.contains(Flags::NOP) {
            ask(match refers {
                Flags::LOAD => Asks::Load,
                Flags::STORE => Asks::Store,
                _ => Asks::Reference,
            });
        }
        if known.flags.intersects(CHANGES) {
            ask(Asks::Change);
        } else if Predictor::is_asked(known.flags, known.is_predicated) {
            ask(Asks::Branch);
        }
        is_behind_stop |= known.stop;
    }
    points.into()
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

/// What a block's instructions left beside registers and memory, in order.
struct Changes<'a> {
    frames: &'a [(usize, Frame)],
    branches: &'a [(usize, usize, u64)],
    advanced: &'a [(usize, alat::Events)],
}

impl<'a> Changes<'a> {
    fn of(block: &Block<'a>) -> Changes<'a> {
        Changes {
            frames: block.frames(),
            branches: block.branches(),
            advanced: block.advanced(),
        }
    }

    /// Brings what was seen up to date with what the instructions up to one have left.
    #[inline]
    fn apply(&mut self, index: usize, seen: &mut State) {
        while let [(at, frame), rest @ ..] = self.frames
            && *at <= index
        {
            (seen.frame, self.frames) = (*frame, rest);
        }
        while let [(at, register, value), rest @ ..] = self.branches
            && *at <= index
        {
            (seen.branch[*register], self.branches) = (*value, rest);
        }
        while let [(at, events), rest @ ..] = self.advanced
            && *at <= index
        {
            (seen.advanced_loads, self.advanced) = (*events, rest);
        }
    }
}

impl Pipeline {
    /// Whether blocks may be booked as a whole at the moment.
    #[inline]
    pub(super) fn may_book(&mut self) -> bool {
        if !self.is_bookable && !self.becomes_bookable() {
            return false;
        }
        if self.memo.state.is_none() && !self.timing.has_canonical_state() {
            self.memo.statistics.flushed += 1;
            return false;
        }
        !self.memo.rests()
    }

    /// Looks whether blocks may be booked from now on, until something happens.
    fn becomes_bookable(&mut self) -> bool {
        if !self.memo.is_on {
            return false;
        }
        let is_watched = !self.is_attached
            || self.is_configured_anew
            || self.is_monitor_changed
            || self.timeline.is_some()
            || self.sampler.is_some()
            || self.performance_monitor.is_counting()
            || self.seen.status & DECIDING != self.monitored_status
            || self.seen.privilege_level() != self.privilege_level;
        self.memo.statistics.watched += u64::from(is_watched);
        self.is_bookable = !is_watched;
        self.is_bookable
    }

    /// Books a block.
    pub(super) fn retire_together(&mut self, block: &Block<'_>) {
        if block.retired() == 0 {
            return;
        }
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
        let before = (self.timing.scoreboard.renaming(), self.position.ip());
        self.ask(block);
        let Some(transition) = self.memo.find(block.identity(), state) else {
            self.compute(block, state, before);
            return;
        };
        self.timing.cycle += u64::from(transition.cycles);
        self.timing.groups += u64::from(transition.groups);
        let retired = u64::from(transition.retired);
        self.values[Event::InstructionsRetired as usize] += retired;
        let (exit, met) = (transition.exit, transition.met);
        if transition.has_restarted {
            self.position.redirect();
        }
        self.memo.state = Some(exit);
        self.memo.met = met;
        self.memo.is_settled = false;
        self.memo.statistics.whole += 1;
        self.memo.statistics.instructions += retired;
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
        self.timing.scoreboard.forget_ready(self.timing.cycle);
        let is_regular = self.timing.scoreboard.renaming().is_regular();
        if !is_regular || !self.timing.write_state(&mut self.memo.words) {
            return None;
        }
        let number = self.memo.number();
        (self.memo.state, self.memo.is_settled) = (Some(number), true);
        self.memo.met = self.timing.met().into();
        Some(number)
    }

    /// Asks the surroundings about a block's instructions, and writes down the signature.
    #[inline]
    fn ask(&mut self, block: &Block<'_>) {
        let mut signature = std::mem::take(&mut self.memo.signature);
        signature.clear();
        let retired = block.retired();
        signature.push(retired as u64 | u64::from(block.taken().is_some()) << 16);
        let executed = block.executed();
        let last = retired.div_ceil(64) - 1;
        if last > 0 {
            signature.extend(&executed[..last]);
        }
        signature.push(executed[last] & (u64::MAX >> (64 * (last + 1) - retired)));
        let mut met = Met::from(self.memo.met);
        let mut changes = Changes::of(block);
        // Where the front end has started again behind a branch that was mispredicted and not taken.
        let mut restart = usize::MAX;
        let line_log2 = self.memory.instruction_line_log2();
        let points = self
            .memo
            .take_points(block.identity(), || points(block, line_log2));
        for point in &points {
            let index = usize::from(point.index);
            if index >= retired {
                break;
            }
            if restart <= index {
                let at = std::mem::replace(&mut restart, usize::MAX);
                self.fetch_again(block, at, &mut signature);
                if at == index && point.asks == Asks::Fetch {
                    continue;
                }
            }
            let is_executed = executed[index / 64] >> (index % 64) & 1 != 0;
            if point.is_behind_stop {
                met.loads = 0;
            }
            match point.asks {
                Asks::Fetch => {
                    let ip = block.start().wrapping_add(point.offset.into());
                    let (bundle, more) = self.go_to(block.memory(), ip);
                    match bundle {
                        Bundle::Same => signature.push(word(index, kind::BUNDLE, 0)),
                        Bundle::Fetched => signature.push(word(index, kind::BUNDLE, 1)),
                        Bundle::New if more > 0 => signature.push(word(index, kind::FETCH, more)),
                        Bundle::New => {}
                    }
                }
                // Each is compiled for what it is.
                Asks::Load if is_executed => {
                    self.ask_reference(block, (point, Flags::LOAD), &mut met, &mut signature);
                }
                Asks::Store if is_executed => {
                    self.ask_reference(block, (point, Flags::STORE), &mut met, &mut signature);
                }
                Asks::Reference if is_executed => {
                    self.ask_reference(block, (point, point.flags), &mut met, &mut signature);
                }
                Asks::Load | Asks::Store | Asks::Reference => {}
                Asks::Branch => {
                    if self.ask_branch(block, point, &mut signature) && restart == usize::MAX {
                        restart = issues_group(block, index) + 1;
                    }
                }
                Asks::Change => {
                    changes.apply(index, &mut self.seen);
                    if is_executed {
                        self.change_before(block, point);
                    }
                    if point.flags.contains(Flags::BRANCH)
                        && self.ask_branch(block, point, &mut signature)
                        && restart == usize::MAX
                    {
                        restart = issues_group(block, index) + 1;
                    }
                    if is_executed {
                        self.change_behind(block, point, &mut signature);
                    }
                }
            }
        }
        self.memo.put_points(block.identity(), points);
        changes.apply(usize::MAX, &mut self.seen);
        if restart < retired {
            self.fetch_again(block, restart, &mut signature);
        }
        self.memo.signature = signature;
        if let Some(target) = block.taken() {
            self.position.stay(block.place(retired - 1).ip);
            self.position.redirect();
            let is_many = block.known(retired - 1).flags.contains(Flags::MANY);
            self.memory.follow(target, is_many);
        } else {
            self.position.reach(block.place(retired - 1).ip);
        }
    }

    /// Fetches the bundle of an instruction in front of which the front end has started again.
    fn fetch_again(&mut self, block: &Block<'_>, index: usize, signature: &mut Signature) {
        self.position.redirect();
        let (_, more) = self.go_to(block.memory(), block.place(index).ip);
        signature.push(word(index, kind::BUNDLE, 2));
        if more > 0 {
            signature.push(word(index, kind::FETCH, more));
        }
    }

    /// Asks about a reference, which later ones can meet.
    #[inline(always)]
    fn ask_reference(
        &mut self,
        block: &Block<'_>,
        (point, flags): (&Point, Flags),
        met: &mut Met,
        signature: &mut Signature,
    ) {
        let index = usize::from(point.index);
        let reference = self.refer(
            block.memory(),
            (flags, point.detail),
            block.reference(index),
            *met,
        );
        if flags.contains(Flags::STORE) {
            met.stores += 1;
        }
        if flags.contains(Flags::LOAD) && reference.duration > 0 {
            met.loads += 1;
        }
        if !is_usual(&reference, flags, self.second_level) {
            let (wait, rest) = pack(&reference);
            signature.push(word(index, kind::REFERENCE, wait));
            signature.push(rest);
        }
    }

    /// Asks how a branch is predicted. Answers whether on the wrong path.
    #[inline]
    fn ask_branch(&mut self, block: &Block<'_>, point: &Point, signature: &mut Signature) -> bool {
        let index = usize::from(point.index);
        let foreseen = self.predictor.branch(&Branch {
            ip: block.start().wrapping_add(point.offset.into()),
            slot: point.slot,
            flags: point.flags,
            is_predicated: point.is_predicated,
            register: point.detail,
            taken: block.taken().filter(|_| index + 1 == block.retired()),
        });
        if foreseen == Foreseen::As(Prediction::Correct) {
            return false;
        }
        signature.push(word(index, kind::BRANCH, pack_foreseen(foreseen)));
        foreseen == Foreseen::As(Prediction::WrongPath)
    }

    /// Asks about an instruction that has to do with advanced loads or branch registers, before it is predicted.
    fn change_before(&mut self, block: &Block<'_>, point: &Point) {
        let flags = point.flags;
        if flags.intersects(Flags::ADVANCED | Flags::CHECKS) {
            self.check(&block.dynamic(usize::from(point.index)), flags);
        }
        if flags.contains(Flags::TO_BRANCH) {
            self.move_to_branch(point.detail);
        }
        if flags.contains(Flags::CALL) {
            self.branch_registers = self.seen.branch;
        }
    }

    /// Asks about an instruction that may change the frame or the privilege level, once it is predicted.
    fn change_behind(&mut self, block: &Block<'_>, point: &Point, signature: &mut Signature) {
        let flags = point.flags;
        let index = usize::from(point.index);
        if flags.contains(Flags::FRAME) {
            let frame = self.seen.frame;
            let before = self.timing.scoreboard.renaming();
            let renaming = Renaming::of(&frame);
            let (spilling, filling) = self.stack_traffic(block.memory(), &frame);
            if spilling + filling > 0 {
                signature.push(word(index, kind::STACK, spilling));
                signature.push(filling);
            }
            if renaming != before {
                self.timing.scoreboard.set_renaming(renaming);
                signature.push(word(index, kind::RENAMING, before.change_to(&renaming)));
            }
        }
        if flags.contains(Flags::PRIVILEGE) {
            self.enter_context(flags);
        }
    }

    /// Computes what the signature's instructions cost from a state on, which had these names and was reached in this
    /// bundle, and keeps it.
    #[cold]
    fn compute(&mut self, block: &Block<'_>, state: u32, (renaming, position): (Renaming, u64)) {
        self.memo.statistics.new += 1;
        self.timing.scoreboard.set_renaming(renaming);
        if !self.memo.is_settled {
            let words = self.memo.state_words(state);
            self.timing.read_state(&words, position);
        }
        self.memo.is_settled = true;
        if self.memo.is_full() {
            self.settle_up();
        }
        self.count_front_end();
        let before = self.counted();
        let signature = std::mem::take(&mut self.memo.signature);
        let has_restarted = self.time(block, &signature);
        self.memo.signature = signature;
        if has_restarted {
            self.position.redirect();
        }
        self.count_front_end();
        let closed = std::mem::take(&mut self.timing.closed);
        self.memo.state = None;
        if self.timing.has_canonical_state()
            && !self.forgets()
            && let Some(exit) = self.number_state()
        {
            let after = self.counted();
            let mut totals = Totals {
                booked: &mut self.timing.booked,
                values: &mut self.values,
                profile: self.profile.as_deref_mut(),
            };
            let transition = (block.identity(), state, exit);
            let closed = self.timing.is_recorded.then_some(&closed[..]);
            let counted = (&before, &after);
            self.memo
                .keep(transition, counted, (closed, has_restarted), &mut totals);
        }
        closed.into_iter().for_each(|group| self.record(group));
    }

    /// Adds up what was booked.
    pub(super) fn settle_up(&mut self) {
        self.memo.settle_up(&mut Totals {
            booked: &mut self.timing.booked,
            values: &mut self.values,
            profile: self.profile.as_deref_mut(),
        });
    }

    /// Forgets all states if there are too many; the pipeline itself has its own. Whether it did.
    fn forgets(&mut self) -> bool {
        if !self.memo.has_too_many_states() {
            return false;
        }
        self.forget();
        true
    }

    /// Forgets all states; the pipeline itself has its own.
    pub(super) fn forget(&mut self) {
        self.settle_up();
        self.memo.forget();
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
            let answers = answered.answers(index, known, self.second_level);
            self.count_fetch(bundle);
            self.count(answers.executed, known.flags);
            if answers.reference.is_some() {
                self.count_reference(known.flags);
            }
            self.timing.wait_for_operands(known, answers.executed);
            if let Some((_, left)) = frames.next_if(|(at, _)| *at == index) {
                frame = *left;
            }
            let prediction = self.timing.execute(known, &answers, &frame);
            self.count_bank_conflicts();
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
