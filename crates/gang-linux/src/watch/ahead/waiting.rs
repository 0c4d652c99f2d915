//! Whether an interrupted thread waits for another one.
//!
//! A thread that waits goes around a short loop with a `pause`, the processor's hint of such a loop, or a `sched_yield`
//! in it, until another thread has written what it looks at. By the time that this is looked at here, the other one may
//! have: the memory says then that the thread goes on to work, though it does not yet. So both ways of each branch are
//! gone, whatever it hangs on, and what counts is that a short way leads back to where the thread is. A thread that
//! works may come to wait in each round of a loop, too, for a lock; that loop has the one that waits in it.
//!
//! So whether it waits hangs on the code and on where its functions return to. What was found is kept with that.

use std::collections::{HashSet, VecDeque};

use iced_x86::Mnemonic;

use super::state::{Next, State};
use super::{Code, Memory, Registers, STACK_POINTER};

/// The most instructions of a loop that waits.
const LOOP_MAX: usize = 128;
/// The most instructions that are looked at for it, on all ways together.
const LOOKED_AT_MAX: usize = 1024;
/// The most that is kept of one instruction.
const FINDINGS_MAX: usize = 16;
/// The number of the system call `sched_yield`.
const SCHED_YIELD: u64 = 24;

/// What was found out once of who executes an instruction.
#[derive(Debug)]
pub(super) struct Finding {
    /// Where the functions on the way returned to: how far above the stack pointer that is kept, and what it was.
    returns: Vec<(u64, u64)>,
    waits: bool,
}

/// A place and what is known there.
#[derive(Clone)]
struct Place {
    at: u64,
    state: State,
}

/// A way that was gone.
struct Way {
    end: Place,
    length: usize,
    /// Where it first came to a `pause` or gave the processor away.
    waited: Option<Place>,
}

/// What becomes of a way.
enum Turn {
    /// It is the one that was looked for.
    Found,
    /// It is gone no further.
    Back,
}

impl Way {
    fn from(place: Place) -> Self {
        Self {
            end: place,
            length: 0,
            waited: None,
        }
    }
}

impl Code {
    /// Whether a thread waits.
    pub(super) fn waits(&mut self, registers: &Registers, memory: &impl Memory) -> bool {
        let stack = registers.general[STACK_POINTER];
        let holds = |&(above, to): &(u64, u64)| {
            let mut bytes = [0; 8];
            memory.read(stack.wrapping_add(above), &mut bytes) && u64::from_le_bytes(bytes) == to
        };
        let findings = self.findings.entry(registers.instruction).or_default();
        let known = findings.iter().find(|finding| finding.returns.iter().all(holds));
        if let Some(known) = known {
            return known.waits;
        }
        let finding = self.look_around(registers, memory);
        let waits = finding.waits;
        let findings = self.findings.entry(registers.instruction).or_default();
        if findings.len() >= FINDINGS_MAX {
            findings.clear();
        }
        findings.push(finding);
        waits
    }

    /// Whether a short way leads back by way of a wait, and no shorter one from there to there without this place.
    fn look_around(&mut self, registers: &Registers, memory: &impl Memory) -> Finding {
        let (home, stack) = (registers.instruction, registers.general[STACK_POINTER]);
        let start = Place {
            at: home,
            state: State::of(registers),
        };
        let mut returns = Vec::new();
        let mut note_return = |at: u64, to: u64| {
            let found = (at.wrapping_sub(stack), to);
            if !returns.contains(&found) {
                returns.push(found);
            }
        };
        let around = self.explore(start, memory, LOOP_MAX, &mut note_return, |way| {
            (way.end.at == home && way.waited.is_some()).then_some(Turn::Found)
        });
        let waits = around.is_some_and(|Way { waited, length, .. }| {
            let wait = waited.expect("a way that has waited");
            let again = wait.at;
            let without = self.explore(wait, memory, length - 1, &mut note_return, |way| {
                match way.end.at {
                    at if at == again => Some(Turn::Found),
                    at if at == home => Some(Turn::Back),
                    _ => None,
                }
            });
            without.is_none()
        });
        Finding { returns, waits }
    }

    /// Goes all ways of at most so many instructions from a place, the shorter ones first, until one is found.
    /// `note_return` is told of each return to who called before: where on the stack that is kept, and where it leads.
    fn explore(
        &mut self,
        start: Place,
        memory: &impl Memory,
        length_max: usize,
        note_return: &mut impl FnMut(u64, u64),
        turn: impl Fn(&Way) -> Option<Turn>,
    ) -> Option<Way> {
        let (mut ways, mut seen) = (VecDeque::from([Way::from(start)]), HashSet::new());
        while let Some(mut way) = ways.pop_front() {
            match turn(&way).filter(|_| way.length > 0) {
                Some(Turn::Found) => return Some(way),
                Some(Turn::Back) => continue,
                None => {}
            }
            let is_new = seen.insert((way.end.at, way.waited.is_some()));
            if !is_new || way.length >= length_max || seen.len() > LOOKED_AT_MAX {
                continue;
            }
            let Some(decoded) = self.decode(way.end.at, memory) else {
                continue;
            };
            let (instruction, state) = (decoded.instruction, &mut way.end.state);
            let gives_away =
                instruction.mnemonic() == Mnemonic::Syscall && state.general(0) == Some(SCHED_YIELD);
            if way.waited.is_none() && (gives_away || instruction.mnemonic() == Mnemonic::Pause) {
                way.waited = Some(Place {
                    at: way.end.at,
                    state: state.clone(),
                });
            }
            let (address, top) = (state.touched(decoded), state.general(STACK_POINTER));
            let kept = top.filter(|top| instruction.mnemonic() == Mnemonic::Ret && !state.has_stored(*top));
            let next = state.step(decoded, address, memory);
            if let (Next::At(to), Some(kept)) = (next, kept) {
                if !memory.is_as_it_was(kept) {
                    continue;
                }
                note_return(kept, to);
            }
            way.length += 1;
            match next {
                Next::At(next) | Next::Kernel(next) => {
                    way.end.at = next;
                    ways.push_back(way);
                }
                Next::Either { taken, behind, .. } => {
                    ways.push_back(Way {
                        end: Place {
                            at: taken,
                            state: way.end.state.clone(),
                        },
                        length: way.length,
                        waited: way.waited.clone(),
                    });
                    way.end.at = behind;
                    ways.push_back(way);
                }
                Next::Unknown => {}
            }
        }
        None
    }
}
