//! The state of the pipeline proper between two blocks, in a form in which equal states are equal words.
//!
//! Everything is counted from the cycle in which the last group issued, registers go by their names, and what can make
//! nothing wait any more is left out. Two pipelines whose words are equal take the same cycles for the same
//! instructions with the same answers, and are in equal states behind them.

use super::answers::Met;
use super::fetch::BUFFER_PAIRS;
use super::timing::Timing;
use crate::parameters::Cost;
use crate::queues::RECENT;
use crate::rules::RULES;
use crate::scoreboard::Producer;

/// Ends a list of words.
const END: i32 = i32::MIN;

/// Requests to the second level that can issue in a cycle: one from each port of the M unit.
const REQUESTS_A_CYCLE: u64 = 4;

/// An address takes so many words of so many bits.
const ADDRESS_WORDS: u32 = 3;
const ADDRESS_BITS: u32 = 22;

/// Writes a state's words.
struct Writer<'a> {
    words: &'a mut Vec<i32>,
    cycle: u64,
    /// Whether everything fitted.
    fits: bool,
}

impl Writer<'_> {
    fn word(&mut self, word: usize) {
        let word = i32::try_from(word).unwrap_or(END);
        self.fits &= word != END;
        self.words.push(word);
    }

    /// A cycle, as its distance from the last group.
    fn cycle(&mut self, cycle: u64) {
        let distance = cycle.wrapping_sub(self.cycle).cast_signed();
        let word = i32::try_from(distance).unwrap_or(END);
        self.fits &= word != END;
        self.words.push(word);
    }

    fn end(&mut self) {
        self.words.push(END);
    }

    /// An address.
    fn address(&mut self, address: u64) {
        for part in 0..ADDRESS_WORDS {
            self.word((address >> (part * ADDRESS_BITS) & ((1 << ADDRESS_BITS) - 1)) as usize);
        }
    }
}

/// Reads them.
struct Reader<'a> {
    words: std::slice::Iter<'a, i32>,
    cycle: u64,
}

impl Reader<'_> {
    /// The next word of a list, or its end.
    fn word(&mut self) -> Option<usize> {
        let word = *self.words.next().expect("a list has an end");
        (word != END).then_some(word as usize)
    }

    /// The next cycle.
    fn cycle(&mut self) -> Option<u64> {
        let word = *self.words.next().expect("a list has an end");
        (word != END).then(|| self.cycle.wrapping_add_signed(word.into()))
    }

    /// An address.
    fn address(&mut self) -> u64 {
        let parts = (0..ADDRESS_WORDS).map(|part| {
            let word = self.word().expect("an address has all its words");
            (word as u64) << (part * ADDRESS_BITS)
        });
        parts.sum()
    }
}

impl Timing {
    /// Whether its state has a canonical form: not so where the front end is about to start again.
    #[inline]
    pub fn has_canonical_state(&self) -> bool {
        !self.forming.is_flushed
    }

    /// How late the front end may be at most, without any wait coming of it: beyond that the exact number does not
    /// matter. Each of the pairs that the buffer holds may miss everything.
    fn lateness_max(&self) -> u64 {
        let parameters = &self.parameters;
        let memory = u64::from(parameters.memory) + u64::from(parameters.l3.latency);
        let miss = parameters.cost(Cost::InstructionL2)
            + parameters.cost(Cost::InstructionTlbTransfer)
            + parameters.cost(Cost::Walk)
            + 2 * memory;
        (BUFFER_PAIRS as u64 + 1) * (miss + 2)
    }

    /// How many of the last references one can still meet, those of the group that forms included.
    pub fn met(&self) -> Met {
        Met {
            stores: self.forming.stores + self.issued_stores_met(),
            loads: self.forming.second_level_loads as usize,
        }
    }

    fn issued_stores_met(&self) -> usize {
        let window = self.parameters.cost(Cost::StoreWindow);
        let meets = |age: &usize| self.stores.issued(*age) + window > self.cycle + 1;
        (0..RECENT).take_while(meets).count()
    }

    /// Writes the state's words behind each other; `false` where they do not suffice.
    pub fn write_state(&self, words: &mut Vec<i32>) -> bool {
        let cycle = self.cycle;
        let mut out = Writer {
            words,
            cycle,
            fits: true,
        };
        let mut waits = self.waits;
        while waits != 0 {
            let index = waits.trailing_zeros() as usize;
            waits &= waits - 1;
            if self.until[index] > cycle + 1 {
                out.word(index);
                out.cycle(self.until[index]);
                if self.is_recorded {
                    out.address(self.owner[index]);
                }
            }
        }
        out.end();
        for (name, ready, producer) in self.scoreboard.outstanding(cycle) {
            out.word(name << 4 | producer as usize);
            out.cycle(ready);
        }
        out.end();
        // Pairs that were dispersed long enough ago to hold up nothing are all the same.
        let available = self
            .front_end
            .available
            .max(cycle.saturating_sub(self.lateness_max()));
        out.cycle(available);
        for age in 0..BUFFER_PAIRS {
            let dispersed = self.front_end.dispersed[(self.front_end.next + age) % BUFFER_PAIRS];
            out.word(dispersed.saturating_sub(available + 1 + age as u64) as usize);
        }
        for age in 0..self.issued_stores_met() {
            out.cycle(self.stores.issued(age));
        }
        out.end();
        for (index, free) in self.requests.entries().enumerate() {
            if free > cycle + 1 + index as u64 / REQUESTS_A_CYCLE {
                out.word(index);
                out.cycle(free);
            }
        }
        out.end();
        for (done, reads) in self.system_queue.outstanding(cycle) {
            out.word(reads.into());
            out.cycle(done);
        }
        out.end();
        out.cycle(self.system_queue.timer_free().max(cycle));
        for (index, rule) in RULES.iter().enumerate() {
            if self.last[index] + u64::from(rule.cycles) > cycle + 1 {
                out.word(index);
                out.cycle(self.last[index]);
            }
        }
        out.end();
        let conflict = self.parameters.cost(Cost::RegionConflictDistance);
        if self.last_region_move + conflict > cycle {
            out.cycle(self.last_region_move);
        }
        out.end();
        let delay = self.parameters.cost(Cost::ToBranchPrediction);
        for (register, moved) in self.moved.iter().enumerate() {
            if moved + delay > cycle + 1 {
                out.word(register);
                out.cycle(*moved);
            }
        }
        out.end();
        if self.forming.count > 0 {
            if self.is_recorded {
                out.address(self.forming.first_ip);
            }
            let scoreboard = &self.scoreboard;
            self.forming
                .numbers(|number| out.word(number as usize), |place| scoreboard.name(place));
        }
        out.fits
    }

    /// Puts a state back whose words these are, in the present cycle and with the present names; the last instruction
    /// was in the bundle `owner`. Which bundle each wait is booked to is part of a state where somebody wants to know.
    pub fn read_state(&mut self, words: &[i32], owner: u64) {
        let cycle = self.cycle;
        let mut words = Reader {
            words: words.iter(),
            cycle,
        };
        self.waits = 0;
        while let Some(index) = words.word() {
            self.waits |= 1 << index;
            self.until[index] = words.cycle().expect("a wait has a cycle");
            self.owner[index] = match self.is_recorded {
                true => words.address(),
                false => owner,
            };
        }
        let outstanding = std::iter::from_fn(|| {
            let word = words.word()?;
            let ready = words.cycle().expect("a register has a cycle");
            Some((word >> 4, ready, Producer::ALL[word & 15]))
        });
        self.scoreboard.put_back(outstanding);
        let available = words.cycle().expect("the front end has a cycle");
        self.front_end.available = available;
        self.front_end.next = 0;
        for age in 0..BUFFER_PAIRS {
            let more = words.word().expect("a pair has a number") as u64;
            self.front_end.dispersed[age] = match more {
                0 => 0,
                more => available + 1 + age as u64 + more,
            };
        }
        let mut issued = [0; RECENT];
        let mut count = 0;
        while let Some(cycle) = words.cycle() {
            issued[count] = cycle;
            count += 1;
        }
        self.stores.put_back(issued[..count].iter().copied());
        let mut free = Vec::new();
        while let Some(index) = words.word() {
            free.resize(index, 0);
            free.push(words.cycle().expect("an entry has a cycle"));
        }
        self.requests.put_back(free.into_iter());
        let mut outstanding = Vec::new();
        while let Some(reads) = words.word() {
            outstanding.push((words.cycle().expect("an access has a cycle"), reads != 0));
        }
        let timer_free = words.cycle().expect("slow registers have a cycle");
        self.system_queue.put_back(outstanding.into_iter(), timer_free);
        self.last = [0; RULES.len()];
        while let Some(index) = words.word() {
            self.last[index] = words.cycle().expect("a rule has a cycle");
        }
        self.last_region_move = words.cycle().unwrap_or(0);
        if self.last_region_move != 0 {
            words.word();
        }
        self.moved = [0; 8];
        while let Some(register) = words.word() {
            self.moved[register] = words.cycle().expect("a move has a cycle");
        }
        if words.words.len() > 0 {
            let first = match self.is_recorded {
                true => words.address(),
                false => owner,
            };
            let next = || words.word().expect("a group has so many numbers") as u64;
            let scoreboard = &self.scoreboard;
            self.forming
                .put_back(owner, next, |name| scoreboard.place_of(name));
            self.forming.first_ip = first;
        } else {
            self.forming.clear(owner);
        }
    }
}
