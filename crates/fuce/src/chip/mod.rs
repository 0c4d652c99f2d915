//! The chip, cycle by cycle.
//!
//! The order within a cycle is fixed: devices that have something due, the signal hub, the units by number, then the
//! controller (dispatch, commit, grant). Time is an integer count of the one clock. Cycles in which nothing can happen
//! are skipped, which changes no result. Two chips in one process share nothing.
//!
//! Limits: text is fetched from the image and is read-only (a disk that moves bytes over it changes what loads see, not
//! what runs); one unit's memory accesses stay in order; there is no data cache, as the paper names none.

mod arithmetic;
mod cache;
mod config;
mod counters;
mod execute;
mod shared;
mod unit;

pub use config::{ChipConfig, ConfigError, InterruptConfig};
pub use counters::{Cause, Counters, UnitCounters};

pub use shared::Stop;
pub use unit::{FRAME_REGISTER, THREAD_REGISTER};

use shared::Shared;
use thiserror::Error;
use unit::{NEVER, Unit};

use crate::controller::{
    Acceptors, Completion, Controller, ControllerConfig, ControllerOperation, Effect, Issuer, Level, Mode,
    Page, Request, Step, ThreadId,
};
use crate::device::{Bus, Device, System};
use crate::image::{Image, ImageError};
use crate::memory::Memory;

/// Why a chip cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChipError {
    /// The configuration is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The image does not fit.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Too many devices.
    #[error("a chip has room for {max} devices besides the system device, not {given}")]
    Devices {
        /// The most there can be.
        max: usize,
        /// What was asked for.
        given: usize,
    },
}

/// Cycles the signal hub waits after a handler was found not armed before it offers the next signal.
const SIGNAL_RETRY_CYCLES: u64 = 16;

/// What an observer sees of one cycle.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    /// The cycle.
    pub cycle: u64,
    /// Requests that were put into ports, with the port of each.
    pub submissions: &'a [(usize, Request)],
    /// Units that could take a thread.
    pub acceptors: Acceptors,
    /// What the controller did.
    pub step: Step,
    /// Threads in the ready queue after it.
    pub queued: usize,
    units: &'a [Unit],
}

impl Observation<'_> {
    /// How many units the chip has.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// The thread a unit runs after this cycle, and the byte address of its first instruction.
    pub fn running(&self, unit: usize) -> Option<(ThreadId, u32)> {
        self.units[unit]
            .running
            .map(|running| (running.thread, running.code * 4))
    }
}

/// A FUCE chip with a program loaded.
pub struct Chip {
    shared: Shared,
    units: Vec<Unit>,
    /// When each unit wants to act next.
    wakes: Vec<u64>,
    now: u64,
    /// The device whose signal is at the controller.
    signal_in_flight: Option<usize>,
    signal_retry: u64,
    preload_held_cycles: u64,
}

impl Chip {
    /// A chip with the image loaded, its boot thread ready, and the devices attached from number 1 on.
    ///
    /// # Errors
    /// When the configuration is impossible, the image does not fit, or there are too many devices.
    pub fn new(config: &ChipConfig, image: &Image, devices: Vec<Box<dyn Device>>) -> Result<Chip, ChipError> {
        config.check()?;
        let max = crate::device::DEVICES_MAX - 1;
        if devices.len() > max {
            return Err(ChipError::Devices {
                max,
                given: devices.len(),
            });
        }
        let memory = load(config, image)?;
        let mut system = System::new(
            config.fault_records,
            config.units,
            config.memory_bytes,
            devices.len() + 1,
        );
        system.set_user_region(image.user);
        let mut controller = Controller::new(
            ControllerConfig {
                pages: config.pages,
                queue: config.queue,
                service_cycles: config.controller_cycles,
                text_instructions: image.text.len() as u32,
            },
            config.units + 1,
        );
        let page = controller.allocate(Page {
            level: Level::System,
            frame: 0,
            words: 0,
        });
        let boot = ThreadId::new(page.expect("a new controller has free pages"), 0);
        controller.boot(boot, image.entry / 4, Mode::Kernel);
        Ok(Chip {
            shared: Shared::new(&image.text, memory, Bus::new(system, devices), controller, config),
            units: (0..config.units)
                .map(|number| Unit::new(number, config.instruction_cache_bytes))
                .collect(),
            wakes: vec![NEVER; config.units],
            now: 0,
            signal_in_flight: None,
            signal_retry: 0,
            preload_held_cycles: 0,
        })
    }

    /// The cycle the chip is in.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Shared memory.
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// The devices.
    pub fn bus(&self) -> &Bus {
        &self.shared.bus
    }

    /// The devices, to act on from outside.
    pub fn bus_mut(&mut self) -> &mut Bus {
        &mut self.shared.bus
    }

    /// The controller.
    pub fn controller(&self) -> &Controller {
        &self.shared.controller
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        let units: Vec<UnitCounters> = self.units.iter().map(|unit| unit.counters(self.now)).collect();
        for (number, unit) in units.iter().enumerate() {
            let booked: u64 = unit.cycles.iter().sum();
            assert_eq!(booked, self.now, "unit {number}: every cycle has a cause");
        }
        Counters {
            cycles: self.now,
            units,
            controller: *self.shared.controller.counters(),
            longest_queue: self.shared.controller.queue().longest(),
            memory_accesses: self.shared.memory.accesses(),
            bank_conflict_cycles: self.shared.memory.conflict_cycles(),
            preload_held_cycles: self.preload_held_cycles,
            faults: self.shared.faults,
        }
    }

    /// Runs until something stops the chip, at the latest before cycle `limit`.
    pub fn run(&mut self, limit: u64) -> Stop {
        self.run_observed(limit, |_| {})
    }

    /// Runs as [`Chip::run`] does, and shows every cycle that was not skipped to `observe`.
    pub fn run_observed(&mut self, limit: u64, mut observe: impl FnMut(&Observation)) -> Stop {
        loop {
            if let Some(stop) = self.shared.stopped() {
                return stop;
            }
            if self.now >= limit {
                return Stop::CycleLimit;
            }
            let acted = self.cycle(&mut observe);
            self.now += 1;
            if !acted {
                match self.next_event() {
                    NEVER => self.shared.stop(Stop::Idle),
                    next => self.skip_to(next.min(limit)),
                }
            }
        }
    }

    /// One cycle; answers whether any unit acted.
    fn cycle(&mut self, observe: &mut impl FnMut(&Observation)) -> bool {
        let now = self.now;
        if self.shared.bus.next_event() <= now {
            self.shared.bus.advance(now, &mut self.shared.memory);
        }
        if self.shared.bus.has_signal() {
            self.offer_signal(now);
        }
        let mut acted = false;
        for (unit, wake) in self.units.iter_mut().zip(&mut self.wakes) {
            if *wake <= now {
                *wake = unit.step(now, &mut self.shared);
                acted = true;
            }
        }
        let acceptors = self.shared.acceptors;
        let step = self.shared.controller.step(now, acceptors);
        observe(&Observation {
            cycle: now,
            submissions: self.shared.controller.submissions(),
            acceptors,
            step,
            queued: self.shared.controller.queue().len(),
            units: &self.units,
        });
        self.shared.controller.forget_submissions();
        if let Some((number, thread)) = step.dispatch {
            let unit = &mut self.units[number];
            self.wakes[number] = self.wakes[number].min(unit.accept(thread, now, &mut self.shared));
        }
        if let Some((port, completion)) = step.completion {
            self.complete(port, &completion, now);
        }
        self.preload_held_cycles += self.shared.held_needlessly();
        acted
    }

    /// Gives a request's outcome to who asked.
    fn complete(&mut self, port: usize, completion: &Completion, now: u64) {
        let of_unit = port < self.units.len();
        match completion.result {
            Ok(Effect::Answer(value)) => {
                self.units[port].answered(value, now);
                self.wakes[port] = self.wakes[port].min(now + 1);
            }
            Ok(Effect::Write { address, value }) => {
                self.shared.memory.reserve(address, now);
                self.shared
                    .memory
                    .set_word(address, value)
                    .expect("create has checked that the frame lies in memory");
            }
            Ok(Effect::None | Effect::Deferred) => {}
            Err(fault) => {
                if !self.shared.report(fault) {
                    // The unit that asked has gone on; only the chip can say that the record found no room.
                    self.shared.stop(Stop::FaultsFull);
                }
                let answers = matches!(
                    completion.request.operation,
                    ControllerOperation::Lock { .. } | ControllerOperation::Create { .. }
                );
                if let Some(thread) = fault.thread
                    && self.units[port].refused(thread, answers, now, &mut self.shared)
                {
                    self.wakes[port] = self.wakes[port].min(now + 1);
                }
            }
        }
        if !of_unit {
            let device = self
                .signal_in_flight
                .take()
                .expect("the hub's request belongs to a device");
            if completion.result == Ok(Effect::Deferred) {
                self.signal_retry = now + SIGNAL_RETRY_CYCLES;
            } else {
                self.shared.bus.signal_taken(device);
            }
        }
    }

    /// Takes the next raised signal to the controller, or, on the conventional chip, to a unit.
    fn offer_signal(&mut self, now: u64) {
        let hub = self.units.len();
        if self.shared.interrupts.is_some() {
            while let Some((device, _)) = self.shared.bus.offer_signal() {
                let unit = device % self.units.len();
                if self.units[unit].interrupt(device) {
                    self.wakes[unit] = self.wakes[unit].min(now);
                }
                self.shared.bus.signal_taken(device);
            }
            return;
        }
        if self.signal_in_flight.is_some() || now < self.signal_retry {
            return;
        }
        if let Some((device, target)) = self.shared.bus.offer_signal() {
            self.signal_in_flight = Some(device);
            let issuer = Issuer {
                thread: None,
                mode: Mode::Kernel,
                address: 0,
            };
            let operation = ControllerOperation::Signal { target };
            self.shared.controller.submit(hub, Request { issuer, operation });
        }
    }

    /// The next cycle in which anything can happen, after one in which no unit acted.
    fn next_event(&self) -> u64 {
        let controller = &self.shared.controller;
        let units = self.wakes.iter().copied().min().unwrap_or(NEVER);
        let mut next = units.min(self.shared.bus.next_event());
        if let Some(ends) = controller.service_ends() {
            next = next.min(ends);
        } else if !controller.is_quiet() {
            next = self.now;
        }
        let acceptors = self.shared.acceptors;
        if !controller.queue().is_empty() && acceptors.idle | acceptors.preload != 0 {
            next = self.now;
        }
        if self.shared.bus.has_signal() && self.signal_in_flight.is_none() {
            next = next.min(self.signal_retry.max(self.now));
        }
        next.max(self.now)
    }

    /// Passes over cycles in which nothing happens.
    fn skip_to(&mut self, next: u64) {
        self.preload_held_cycles += self.shared.held_needlessly() * (next - self.now);
        self.now = next;
    }
}

/// The memory with text and data in place.
fn load(config: &ChipConfig, image: &Image) -> Result<Memory, ImageError> {
    let available = config.memory_bytes;
    if image.end() > u64::from(available) || image.user.1 > available {
        let needed = image.end().max(image.user.1.into());
        return Err(ImageError::TooLarge { needed, available });
    }
    let mut memory = Memory::new(
        config.memory_bytes,
        config.banks,
        config.bank_cycles,
        config.interconnect_cycles,
    );
    for (index, word) in image.text.iter().enumerate() {
        let fits = memory.set_word(index as u32 * 4, *word);
        fits.ok_or(ImageError::TooLarge {
            needed: image.text.len() as u64 * 4,
            available,
        })?;
    }
    memory
        .bytes_mut(image.data_address, image.data.len() as u32)
        .expect("the image's end lies in memory")
        .copy_from_slice(&image.data);
    Ok(memory)
}
