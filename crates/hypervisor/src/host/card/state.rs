//! What the threads of a card share, and what they count and record.

use std::collections::VecDeque;

use serde::Serialize;

use crate::cycle::Cycle;
use crate::host::recorded::Recorded;
use crate::nic::frame::Frame;
use crate::nic::ring::Store;
use crate::nic::vif::Vif;

/// What the card did that is no single interface's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardCounts {
    /// Interrupts of the card that the monitor has handled.
    pub interrupts: u64,
    /// Cycles of the core that it handled them on.
    pub handling_cycles: u64,
    /// Signals by a sidecore.
    pub sidecore_signals: u64,
    /// Cycles of sidecores for receive rings, looks in vain apart.
    pub sidecore_cycles: u64,
    /// Frames for an address that nobody has.
    pub unknown: u64,
    /// Frames for which the engines had no room.
    pub overrun: u64,
}

/// A step of a frame on its way, or of what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The frame.
    pub frame: u64,
    /// Who does it.
    pub place: Place,
    /// What is done.
    pub name: &'static str,
    /// From when on.
    pub start: Cycle,
    /// For how long.
    pub cycles: u64,
}

/// Who works on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A micro-engine.
    Engine(usize),
    /// The monitor on a guest's core.
    Core(usize),
    /// A sidecore.
    Sidecore(usize),
    /// The virtual machine that it is for, by its interface.
    Machine(usize),
}

/// What the threads of a card share.
pub(super) struct State {
    pub vifs: Vec<Vif>,
    pub adaptive: Vec<Rate>,
    pub frames: Vec<Option<Kept>>,
    pub free: Vec<usize>,
    /// Frames that each engine has not looked at yet.
    pub waiting: Vec<usize>,
    pub register: u64,
    /// Whether the interrupt line is asserted.
    pub is_asserted: bool,
    /// Whether a sidecore is going to look at a receive ring.
    pub is_noticed: Vec<bool>,
    /// What goes out over the wire, and when it is ready to.
    pub outgoing: VecDeque<(Cycle, Frame)>,
    /// Where each interface's virtual processor is, and who has which core.
    pub homes: Vec<Home>,
    pub holders: Vec<Option<(usize, usize)>>,
    /// What was owed to each core while nobody had it.
    pub unowned: Vec<u64>,
    /// Whether a guest without a core has use for one.
    pub has_woken: bool,
    /// The frame that each interface has got last.
    pub last: Vec<u64>,
    /// Frames in receive rings, while steps are recorded: each with its place among all that the ring has got.
    pub unread: Vec<VecDeque<(u64, u64)>>,
    pub numbers: u64,
    pub counts: CardCounts,
    pub steps: Option<Recorded<Step>>,
}

/// Where the virtual processor of an interface is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::host) struct Home {
    /// The core that it has, or had last: who wakes it does it there.
    pub core: usize,
    /// Whether it has that core.
    pub has_core: bool,
}

/// A frame that is under way.
#[derive(Clone)]
pub(super) struct Kept {
    pub frame: Frame,
    /// The virtual machine that this copy is for, of a frame for many.
    pub to: Option<usize>,
}

/// How quickly an interface's frames follow each other.
#[derive(Clone, Copy, Default)]
pub(super) struct Rate {
    pub last: Cycle,
    pub interval: u64,
    /// How many frames it had when it was signalled last.
    pub told: u64,
    pub is_waiting: bool,
}

impl State {
    /// Keeps a frame that is under way: its ticket.
    pub fn keep(&mut self, frame: Frame, to: Option<usize>) -> usize {
        let kept = Kept { frame, to };
        match self.free.pop() {
            Some(ticket) => {
                self.frames[ticket] = Some(kept);
                ticket
            }
            None => {
                self.frames.push(Some(kept));
                self.frames.len() - 1
            }
        }
    }

    /// A frame by its ticket.
    pub fn frame(&self, ticket: usize) -> &Frame {
        &self.kept(ticket).frame
    }

    /// A frame by its ticket, with what is known of it.
    pub fn kept(&self, ticket: usize) -> &Kept {
        self.frames[ticket]
            .as_ref()
            .expect("a ticket is valid until its frame is taken")
    }

    /// Takes a frame by its ticket.
    pub fn take(&mut self, ticket: usize) -> Frame {
        self.free.push(ticket);
        self.frames[ticket].take().expect("a frame is taken once").frame
    }

    /// The guest gives buffers back: it has read what was in them.
    pub fn read(&mut self, interface: usize, store: Store, entries: u64, time: Cycle) {
        match store {
            Store::Registered(_) => self.unread[interface].clear(),
            Store::Posted(count) => {
                while let Some((number, frame)) = self.unread[interface].front().copied()
                    && number.saturating_add(entries) < count
                {
                    self.unread[interface].pop_front();
                    self.step(frame, Place::Machine(interface), "read", time, time);
                }
            }
            Store::Sent(_) | Store::Wanted(_) | Store::Due | Store::Pairs(_) => {}
        }
    }

    /// Records a step, if that is wanted.
    pub fn step(&mut self, frame: u64, place: Place, name: &'static str, start: Cycle, end: Cycle) {
        if let Some(steps) = &mut self.steps {
            let step = Step {
                frame,
                place,
                name,
                start,
                cycles: end.since(start),
            };
            steps.push(start, step);
        }
    }
}
