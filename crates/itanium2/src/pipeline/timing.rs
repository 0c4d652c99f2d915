//! When instructions issue: what the pipeline does with what its surroundings have answered.
//!
//! [`Timing`] knows registers, ports, queues and cycles. It sees no address and no value: what caches, translation
//! buffers and predictors said of an instruction comes to it as [`Answers`], so that the same instructions with the
//! same answers cost the same whenever it is in the same state.

use super::answers::Answers;
use super::fetch::{Bundle, FrontEnd};
use super::group::Forming;
use crate::branches::{Foreseen, Prediction};
use crate::dispersal::Assigned;
use crate::flags::Flags;
use crate::instruction::StaticInstruction;
use crate::memory::Translation;
use crate::parameters::{Cost, Parameters};
use crate::pmu::stall::Stall;
use crate::profile::Issued;
use crate::queues::{RecentStores, RequestQueue, SystemAccess, SystemQueue};
use crate::rules::RULES;
use crate::scoreboard::{Producer, Scoreboard};
use sidestep_ia64::execution::Frame;

/// A cycle before every other: rules and registers start as if used long ago.
pub(super) const START: u64 = 1000;

/// A group that has issued, for those who want to know of every one.
pub(super) struct Closed {
    pub cycle: u64,
    pub first_ip: u64,
    /// The bubbles before it, with the bundle that each is booked to.
    pub bubbles: Vec<(Stall, u64, u64)>,
    pub instructions: Vec<Issued>,
}

/// The pipeline proper.
pub(super) struct Timing {
    pub parameters: Parameters,
    /// The cycle in which the last group issued.
    pub cycle: u64,
    pub groups: u64,
    pub booked: [u64; Stall::COUNT],
    /// Until when the group that forms has to wait, by cause; valid where `waits` has the cause's bit.
    pub until: [u64; Stall::COUNT],
    /// The bundle that a wait is booked to.
    pub owner: [u64; Stall::COUNT],
    pub waits: u32,
    pub forming: Forming,
    pub scoreboard: Scoreboard,
    pub front_end: FrontEnd,
    /// Whether the front end has started again since somebody looked.
    pub has_restarted: bool,
    pub system_queue: SystemQueue,
    pub stores: RecentStores,
    pub requests: RequestQueue,
    /// Loads that found their bank of the second level taken, since somebody looked.
    pub bank_conflicts: u64,
    /// When an instruction that starts a rule issued last.
    pub last: [u64; RULES.len()],
    pub last_region_move: u64,
    /// When each branch register was last moved to.
    pub moved: [u64; 8],
    /// Whether somebody wants to know of every group.
    pub is_recorded: bool,
    /// The groups that have issued since somebody looked, if they are wanted.
    pub closed: Vec<Closed>,
}

impl Timing {
    pub fn new(parameters: Parameters) -> Timing {
        let queue_entries = parameters.cost(Cost::SystemQueueEntries) as usize;
        let interval = parameters.cost(Cost::TimerInterval);
        Timing {
            cycle: START,
            groups: 0,
            booked: [0; Stall::COUNT],
            until: [0; Stall::COUNT],
            owner: [0; Stall::COUNT],
            waits: 0,
            forming: Forming::default(),
            scoreboard: Scoreboard::new(&parameters),
            front_end: FrontEnd::new(START),
            has_restarted: false,
            system_queue: SystemQueue::new(queue_entries, interval),
            stores: RecentStores::default(),
            requests: RequestQueue::new(parameters.cost(Cost::RequestQueueEntries) as usize),
            bank_conflicts: 0,
            last: [0; RULES.len()],
            last_region_move: 0,
            moved: [0; 8],
            is_recorded: false,
            closed: Vec::new(),
            parameters,
        }
    }

    /// Makes the group that forms wait.
    #[inline]
    pub fn wait(&mut self, stall: Stall, until: u64) {
        if until > self.cycle + 1 {
            self.note_wait(stall, until, self.forming.ip);
        }
    }

    pub fn note_wait(&mut self, stall: Stall, until: u64, owner: u64) {
        let index = stall as usize;
        let bit = 1 << index;
        if self.waits & bit == 0 || self.until[index] < until {
            self.waits |= bit;
            self.until[index] = until;
            self.owner[index] = owner;
        }
    }

    /// When the group that forms would issue if it ended now.
    #[inline]
    pub fn expected(&self) -> u64 {
        let mut at = self.cycle + 1;
        let mut waits = self.waits;
        while waits != 0 {
            at = at.max(self.until[waits.trailing_zeros() as usize]);
            waits &= waits - 1;
        }
        at
    }

    /// Bubbles by cause, and the cycle, as they would be had the group that forms waited out and not issued.
    pub fn booked_ahead(&self) -> ([u64; Stall::COUNT], u64) {
        let mut booked = self.booked;
        let mut at = self.cycle + 1;
        for stall in Stall::ALL {
            let index = *stall as usize;
            if self.waits >> index & 1 != 0 && self.until[index] > at {
                booked[index] += self.until[index] - at;
                at = self.until[index];
            }
        }
        (booked, at - 1)
    }

    /// Starts the front end again, with an empty buffer whose first bundles can be dispersed behind `cycle`, `bubbles`
    /// later than if it had not.
    pub fn restart(&mut self, cycle: u64, bubbles: u64) {
        self.has_restarted = true;
        self.front_end.restart(cycle, bubbles);
    }

    /// Flushes the pipeline behind what has retired.
    pub fn interrupt(&mut self) {
        if self.forming.count == 0 {
            let flush = self.parameters.cost(Cost::ExceptionFlush);
            let refill = self.parameters.cost(Cost::FrontEndRefill);
            let start = self.expected();
            self.note_wait(Stall::FlushException, start + flush, self.forming.ip);
            self.note_wait(Stall::FrontEnd, start + flush + refill, self.forming.ip);
            self.restart(start + flush + refill - 1, flush + refill);
        } else {
            self.forming.flush();
            self.close();
        }
    }

    /// The walker has waited for an entry that did not hold what a reference or a fetch wants: what follows, its fault,
    /// comes so much later.
    pub fn walk_in_vain(&mut self, wait: u64, is_fetch: bool) {
        let stall = match is_fetch {
            true => Stall::FrontEnd,
            false => Stall::Walker,
        };
        let bubbles = self.parameters.cost(Cost::Walk) + wait;
        if self.forming.count > 0 {
            self.forming.behind(stall, bubbles);
        } else {
            let until = self.expected() + bubbles;
            self.note_wait(stall, until, self.forming.ip);
        }
    }

    /// Lets cycles pass in which every register becomes ready, booked to the front end.
    pub fn rest(&mut self, cycles: u64) {
        self.close();
        let until = self.cycle + cycles;
        self.booked[Stall::FrontEnd as usize] += cycles;
        self.cycle = until;
        self.waits = 0;
        self.restart(until, cycles);
    }

    /// Takes the instruction's bundle into the window, and waits until it was fetched, `more` cycles late.
    #[inline(always)]
    pub fn take_bundle(&mut self, ip: u64, bundle: Bundle, more: u64) {
        if bundle == Bundle::Same {
            if self.forming.count == 0 {
                // What a stop has left of the bundle begins the window.
                self.forming.window.begin_bundle();
            }
            return;
        }
        if bundle == Bundle::New {
            let expected = self.expected();
            self.front_end.fetch(more, expected);
        }
        let available = self.front_end.available;
        let is_late = self.forming.count > 0 && available > self.expected();
        if is_late || !self.forming.window.begin_bundle() {
            self.close();
            self.forming.window.begin_bundle();
        }
        self.forming.ip = ip;
        if self.forming.count == 0 {
            self.forming.first_ip = ip;
        }
        self.wait(Stall::FrontEnd, available);
    }

    /// Issues the group that forms in the middle of a bundle, whose rest begins the next window.
    fn split(&mut self) {
        self.close();
        self.forming.window.begin_bundle();
    }

    /// Gives the instruction a port, in this group or the next.
    #[inline(always)]
    pub fn disperse(&mut self, known: &StaticInstruction) -> Assigned {
        let flags = known.flags;
        let special = Flags::SPLIT_BEFORE | Flags::FLUSH_BUFFERS | Flags::B_UNIT;
        if flags.intersects(special) && self.forming.count > 0 {
            let splits = flags.contains(Flags::SPLIT_BEFORE)
                || flags.contains(Flags::FLUSH_BUFFERS) && self.forming.flags.contains(Flags::M_UNIT)
                || flags.contains(Flags::B_UNIT) && self.forming.flags.contains(Flags::FROM_BSP);
            if splits {
                self.split();
            }
        }
        let port = match self.forming.window.take(known.port) {
            Some(port) => port,
            None => {
                self.split();
                let port = self.forming.window.take(known.port);
                port.expect("an empty window has every port")
            }
        };
        self.forming.count += 1;
        self.forming.flags |= flags;
        port
    }

    /// Waits of an instruction for its operands and its rules.
    #[inline(always)]
    pub fn wait_for_operands(&mut self, known: &StaticInstruction, executed: bool) {
        let earliest = self.cycle + 1;
        if !self.scoreboard.is_quiet(earliest) {
            let (ready, stall) = self.scoreboard.ready(known.predicate, known.predicate_use);
            self.wait(stall, ready);
            if executed {
                for (operand, used) in known.sources() {
                    let (ready, stall) = self.scoreboard.ready(*operand, *used);
                    self.wait(stall, ready);
                }
            }
        }
        if executed && known.rules_to != 0 {
            let mut rules = known.rules_to;
            while rules != 0 {
                let index = rules.trailing_zeros() as usize;
                rules &= rules - 1;
                let rule = &RULES[index];
                self.wait(rule.stall, self.last[index] + u64::from(rule.cycles));
            }
        }
    }

    /// What an instruction does beside waiting for its operands; answers how its branch was predicted. `frame` is the
    /// one that it has left.
    #[inline(always)]
    pub fn execute(&mut self, known: &StaticInstruction, answers: &Answers, frame: &Frame) -> Prediction {
        let flags = known.flags;
        if !answers.executed || flags.contains(Flags::NOP) {
            return match flags.contains(Flags::BRANCH) {
                true => self.branch(known, answers),
                false => Prediction::Correct,
            };
        }
        let mut more = 0;
        if flags.intersects(Flags::LOAD | Flags::STORE | Flags::PREFETCH) {
            more = self.reference(known, answers);
        }
        for destination in known.destinations() {
            let is_loaded = destination.producer == Producer::Load;
            let total = u64::from(destination.latency) + if is_loaded { more } else { 0 };
            let place = self.scoreboard.place(destination.operand);
            self.forming.write(place, total, destination.producer);
        }
        self.forming.rules |= known.rules_from;
        let unusual = Flags::SYSTEM_QUEUE
            | Flags::BRANCH
            | Flags::FRAME
            | Flags::ALL_PREDICATES
            | Flags::READS_PREDICATES
            | Flags::TO_BRANCH
            | Flags::FLUSH_STACK
            | Flags::LOAD_STACK;
        let prediction = match flags.intersects(unusual) {
            true => self.execute_unusual(known, answers, frame),
            false => Prediction::Correct,
        };
        if let Some(behind) = known.behind {
            self.forming.behind_rule(behind, &self.parameters);
        }
        prediction
    }

    /// An instruction has retired: ends the group where it must.
    #[inline(always)]
    pub fn end(&mut self, known: &StaticInstruction, taken: bool) {
        if known.stop || taken || known.flags.contains(Flags::SPLIT_AFTER) {
            self.close();
        }
    }

    fn execute_unusual(&mut self, known: &StaticInstruction, answers: &Answers, frame: &Frame) -> Prediction {
        let flags = known.flags;
        if flags.contains(Flags::SYSTEM_QUEUE) {
            let is_timer = flags.contains(Flags::TIMER);
            self.wait(Stall::SystemQueue, self.system_queue.free_at(is_timer));
            let first = known.destinations().first();
            let access = SystemAccess {
                latency: first.map_or(0, |first| first.latency.into()),
                reads: flags.contains(Flags::READS_SYSTEM),
                is_timer,
            };
            let place = first.map_or(0, |first| self.scoreboard.place(first.operand));
            self.forming.system_access(place, access);
            self.forming.moves_region |= flags.contains(Flags::REGION);
        }
        if flags.contains(Flags::READS_PREDICATES) {
            self.wait(Stall::Predicate, self.scoreboard.predicates_ready());
        }
        self.forming.writes_predicates |= flags.contains(Flags::ALL_PREDICATES);
        if flags.contains(Flags::TO_BRANCH) {
            self.moved[usize::from(known.branch_register & 7)] = self.expected();
        }
        let calculation = self.parameters.cost(Cost::StackCalculation);
        if flags.contains(Flags::FLUSH_STACK) {
            self.wait(Stall::RseOverflow, self.cycle + 1 + calculation);
        }
        if flags.contains(Flags::LOAD_STACK) {
            self.wait(Stall::RseLoad, self.cycle + 1 + calculation);
        }
        let prediction = match flags.contains(Flags::BRANCH) {
            true => self.branch(known, answers),
            false => Prediction::Correct,
        };
        if flags.contains(Flags::FRAME) {
            self.scoreboard.rename(frame);
            let (stored, loaded) = match flags {
                _ if flags.contains(Flags::LOAD_STACK) => (Stall::RseLoad, Stall::RseLoad),
                _ => (Stall::RseOverflow, Stall::RseUnderflow),
            };
            if answers.spilling > 0 {
                self.forming.behind(stored, answers.spilling);
            }
            if answers.filling > 0 {
                self.forming.behind(loaded, answers.filling);
            }
        }
        prediction
    }

    /// A load, store or prefetch; answers how many cycles more than on a hit its data take.
    #[inline]
    fn reference(&mut self, known: &StaticInstruction, answers: &Answers) -> u64 {
        let flags = known.flags;
        let Some(reference) = &answers.reference else {
            self.forming.refer_to_unknown(flags);
            return 0;
        };
        match reference.translation {
            Translation::First => {}
            Translation::Second => {
                let bubbles = self.parameters.cost(Cost::TlbTransfer);
                self.forming.behind(Stall::Tlb, bubbles);
            }
            Translation::Walk(wait) => {
                let bubbles = self.parameters.cost(Cost::Walk) + wait;
                self.forming.behind(Stall::Walker, bubbles);
            }
        }
        self.forming.has_reference = true;
        if flags.contains(Flags::LOAD) && !flags.contains(Flags::SECOND_LEVEL) {
            if reference.stores != 0 {
                self.wait_for_stores(reference.stores);
            }
            self.forming.first_level_returns += u32::from(reference.is_first_level);
        }
        self.forming.stores += usize::from(flags.contains(Flags::STORE));
        let mut more = reference.more;
        if reference.duration > 0 {
            let before = self.forming.requests();
            self.wait(Stall::BackPressure, self.requests.free_at(before));
            self.forming.request(reference.duration);
            if flags.contains(Flags::LOAD) {
                more += self.wait_for_bank(reference.neighbours);
            }
        }
        more
    }

    /// A load that the second level answers comes later for each load of its group that is before it at the same bank.
    /// Of the last such loads, the last in bit 0, `neighbours` has those at the same bank. Answers how much later.
    #[inline]
    fn wait_for_bank(&mut self, neighbours: u8) -> u64 {
        let met = neighbours & ((1 << self.forming.second_level_loads) - 1);
        self.forming.second_level_loads += 1;
        if met == 0 {
            return 0;
        }
        self.bank_conflicts += 1;
        u64::from(met.count_ones()) * self.parameters.cost(Cost::BankConflict)
    }

    /// A load from the first level close behind a store to the same data recirculates until the store has left the
    /// window; loads that pass by the first level do not meet its store buffer. Of the last stores, the last in bit 0,
    /// `stores` has those to the same data.
    fn wait_for_stores(&mut self, stores: u16) {
        let window = self.parameters.cost(Cost::StoreWindow);
        let forming = self.forming.stores;
        if let Some(cycle) = self.stores.last_of(stores >> forming) {
            self.wait(Stall::StoreRecirculation, cycle + window);
        }
        if stores & ((1 << forming) - 1) != 0 {
            self.forming.behind(Stall::StoreRecirculation, window);
        }
    }

    /// What a branch that has retired costs.
    fn branch(&mut self, known: &StaticInstruction, answers: &Answers) -> Prediction {
        let prediction = match answers.foreseen {
            Foreseen::As(prediction) => prediction,
            Foreseen::UnlessMoved => {
                let delay = self.parameters.cost(Cost::ToBranchPrediction);
                let moved = self.moved[usize::from(known.branch_register & 7)];
                match moved + delay > self.expected() {
                    true => Prediction::WrongTarget,
                    false => Prediction::Correct,
                }
            }
        };
        if prediction != Prediction::Correct {
            let bubbles = self.parameters.cost(Cost::Mispredict);
            self.forming.behind(Stall::FlushBranch, bubbles);
            self.forming.is_flushed = true;
        } else if answers.taken && known.flags.contains(Flags::INDIRECT) {
            self.front_end.resteer(self.parameters.cost(Cost::ReturnResteer));
        }
        prediction
    }
}
