//! A processor's whole state as data: to save a machine, to restore it, to compare two processors.
//!
//! [`Processor::save`] copies everything that decides what the processor does next: the registers that programs and
//! kernels see, and what the architecture keeps hidden (translation registers and caches with the order in which they
//! are replaced, the ALAT, the register stack engine with a fill under way, requested interrupts).
//! [`Processor::restore`] makes any processor of the same kind go on from there.
//!
//! Rules
//! - Memory is not part of it: who saves a machine saves its memory at the same time, while no processor runs.
//! - State may come from a file. `restore` refuses what no processor can hold, and then changes nothing.
//! - Any format of serde that has 64-bit integers can hold it.
//!
//! Limits: the flag of [`Processor::attention`] stays as it is. Decoded instructions are not kept: a guest that has
//! overwritten instructions without the `fc` that the architecture demands executes the new ones after a restore.

use serde::{Deserialize, Serialize};
use serde_big_array::BigArray;

use crate::alat::AdvancedLoads;
use crate::fault::Fault;
use crate::float::{ControlTable, FloatRegister};
use crate::mmu::Mmu;
use crate::mmu::vhpt::{PageTableAddress, RegionRegister};
use crate::processor::environment::Environment;
use crate::processor::execution::Forget;
use crate::processor::register_stack::RegisterStack;
use crate::processor::{Processor, pending};
use crate::registers::application;
use crate::registers::frame::FrameMarker;
use crate::registers::general::GeneralRegisters;
use crate::registers::system::{SystemRegisters, control};

/// The state of one processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorState {
    general: GeneralRegisters,
    predicates: u64,
    branch: [u64; 8],
    frame: FrameMarker,
    status: u64,
    system: Box<SystemRegisters>,
    #[serde(with = "BigArray")]
    application: [u64; 128],
    #[serde(with = "BigArray")]
    floating: [FloatRegister; 128],
    register_stack: RegisterStack,
    advanced_loads: AdvancedLoads,
    ip: u64,
    slot: u8,
    trapped: (u64, u8),
    completed: u64,
    retired: u64,
    interruption: Option<Fault>,
    /// What a processor in system mode has beside; a program's has none of it.
    system_mode: Option<SystemModeState>,
}

/// What a processor in system mode has beside its registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SystemModeState {
    mmu: Mmu,
    requested_interrupts: [u64; 4],
    hypercall: Option<u64>,
    monitored: bool,
}

/// A state that a processor cannot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidState {
    /// One in system mode for a program's processor, or the other way round.
    #[error("the state is that of a processor {}", if *.system { "in system mode" } else { "that runs a program" })]
    Kind {
        /// Whether the state is one of system mode.
        system: bool,
    },
    /// A part holds what no processor can.
    #[error("the state of a processor holds impossible {0}")]
    Impossible(&'static str),
}

impl ProcessorState {
    /// Where the processor goes on: bundle and slot.
    pub fn instruction_pointer(&self) -> (u64, u8) {
        (self.ip, self.slot)
    }

    /// Instructions retired so far.
    pub fn instructions_retired(&self) -> u64 {
        self.retired
    }

    /// Refuses what no processor can hold.
    fn check(&self) -> Result<(), InvalidState> {
        let constants = self.predicates & 1 != 0
            && self.general.value(0) == 0
            && !self.general.nat(0)
            && self.floating[..2] == [FloatRegister::ZERO, FloatRegister::ONE];
        let is_place = |(ip, slot): (u64, u8)| ip.is_multiple_of(16) && slot < 3;
        let regions = self.system.region.iter();
        let table = self.system.control[usize::from(control::PTA)];
        let mmu = self.system_mode.as_ref().map(|system| &system.mmu);
        let parts = [
            (constants, "constant registers"),
            (self.frame.is_valid(), "frame marker"),
            (
                self.register_stack.is_valid(self.frame.size)
                    && self.general.is_valid(self.register_stack.at_hand()),
                "register stack",
            ),
            (self.advanced_loads.is_valid(), "advanced loads"),
            (
                is_place((self.ip, self.slot)) && is_place(self.trapped),
                "instruction pointer",
            ),
            (
                self.application[usize::from(application::EC)] < 64,
                "epilogue count",
            ),
            // After reset they are zero, which no kernel could write.
            (
                { regions }.all(|&region| region == 0 || RegionRegister(region).is_valid()),
                "region registers",
            ),
            (
                table == 0 || PageTableAddress(table).is_valid(),
                "page table address",
            ),
            (
                mmu.is_none_or(|mmu| mmu.instruction.is_valid() && mmu.data.is_valid()),
                "translations",
            ),
        ];
        match parts.into_iter().find(|(is_valid, _)| !is_valid) {
            Some((_, part)) => Err(InvalidState::Impossible(part)),
            None => Ok(()),
        }
    }
}

impl Processor {
    /// The processor's state, while it does not run.
    pub fn save(&self) -> ProcessorState {
        ProcessorState {
            general: self.general.clone(),
            predicates: self.predicates,
            branch: self.branch,
            frame: self.frame,
            status: self.status,
            system: self.system.clone(),
            application: self.application,
            floating: self.floating.images(&self.divisions),
            register_stack: self.register_stack.clone(),
            advanced_loads: self.advanced_loads.clone(),
            ip: self.ip,
            slot: self.slot,
            trapped: self.trapped,
            completed: match self.environment {
                Environment::Program(_) => 0,
                Environment::System(_) => self.completed,
            },
            retired: self.retired,
            interruption: self.interruption,
            system_mode: self.environment.system().map(|system| SystemModeState {
                mmu: system.mmu.clone(),
                requested_interrupts: std::array::from_fn(|word| system.interrupts.requests(word)),
                hypercall: system.hypercall,
                monitored: system.monitored,
            }),
        }
    }

    /// Goes on from `state` on this processor's own memory. [`Processor::interrupts`] stays the same object, so that
    /// devices need not be connected again.
    pub fn restore(&mut self, state: &ProcessorState) -> Result<(), InvalidState> {
        state.check()?;
        match (&mut self.environment, &state.system_mode) {
            (Environment::Program(_), None) => {}
            (Environment::System(system), Some(saved)) => {
                system.mmu = saved.mmu.clone();
                system.interrupts.restore(saved.requested_interrupts);
                system.hypercall = saved.hypercall;
                system.monitored = saved.monitored;
            }
            (_, saved) => {
                return Err(InvalidState::Kind {
                    system: saved.is_some(),
                });
            }
        }
        self.general = state.general.clone();
        self.predicates = state.predicates;
        self.branch = state.branch;
        self.frame = state.frame;
        self.status = state.status;
        self.system = state.system.clone();
        self.application = state.application;
        self.floating = state.floating.into();
        self.float_controls = ControlTable::new(state.application[usize::from(application::FPSR)]);
        self.register_stack = state.register_stack.clone();
        self.advanced_loads = state.advanced_loads.clone();
        (self.ip, self.slot) = state.instruction_pointer();
        self.trapped = state.trapped;
        self.completed = state.completed;
        self.retired = state.retired;
        self.interruption = state.interruption;
        self.raised = None;
        self.blocks.flush();
        // Everything that could be pending is looked at anew with the page of the instruction pointer.
        self.pending = pending::CODE_PAGE;
        self.changed_code.clear();
        self.restart_translations();
        Ok(())
    }
}
