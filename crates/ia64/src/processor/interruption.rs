//! Delivering interruptions in system mode: what the interruption registers collect, and where control goes.
//!
//! Manual volume 2, sections 5.5 (the sequence) and 5.8 (external interrupts); chapter 8 for the vectors.

use crate::fault::{Fault, FaultKind, isr};
use crate::interrupts::{SPURIOUS, highest_of, may_interrupt};
use crate::mmu::vhpt::{PageTableAddress, hash};
use crate::processor::{Processor, pending};
use crate::registers::application::ITC;
use crate::registers::status::psr;
use crate::registers::system::control;

/// Bits of DCR that become bits of PSR on an interruption.
mod default_control {
    /// Privileged performance monitors (PSR.pp).
    pub const PP: u64 = 1 << 0;
    /// Byte order (PSR.be).
    pub const BE: u64 = 1 << 1;
}

/// PSR bits that an interruption leaves alone; all others become zero, be and pp follow DCR.
const KEPT: u64 = psr::UP | psr::MFL | psr::MFH | psr::PK | psr::DT | psr::RT | psr::MC | psr::IT;
/// The mask bit of ITV.
const TIMER_MASKED: u64 = 1 << 16;

/// Interruptions between which and the one before no instruction has retired. Some are sound, as when a handler's first
/// bundle is not in the TLB; a guest whose handlers cannot execute takes them for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FruitlessInterruptions {
    /// How many there were since the processor was made.
    pub total: u64,
    /// How many came one behind another, up to the last interruption.
    pub in_a_row: u64,
    /// The last interruption, and the address of the bundle at which it was taken.
    pub last: Option<(Fault, u64)>,
    /// How many instructions had retired then.
    retired: u64,
}

impl FruitlessInterruptions {
    fn note(&mut self, fault: Fault, ip: u64, retired: u64) {
        let is_fruitless = self.last.is_some() && self.retired == retired;
        self.in_a_row = if is_fruitless { self.in_a_row + 1 } else { 0 };
        self.total += u64::from(is_fruitless);
        self.last = Some((fault, ip));
        self.retired = retired;
    }
}

impl Processor {
    /// Takes an interruption: collects its state and goes to its vector.
    pub(crate) fn take_interruption(&mut self, fault: Fault) {
        self.interruption = Some(fault);
        self.fruitless.note(fault, self.ip, self.retired);
        let collects = self.status & psr::IC != 0;
        let (_, slot) = if fault.kind.is_trap() {
            self.trapped
        } else {
            (self.ip, self.slot)
        };
        let external = fault.kind == FaultKind::ExternalInterrupt;
        let mut status = fault.isr | u64::from(slot) << isr::SLOT_SHIFT;
        if !collects {
            status |= isr::NESTED;
        }
        if self.is_frame_incomplete() {
            status |= isr::INCOMPLETE_FRAME;
        }
        let is_reference = fault.isr & (isr::READ | isr::WRITE | isr::NON_ACCESS) != 0;
        if is_reference && fault.isr & isr::REGISTER_STACK == 0 && self.fetches_with_deferral() {
            status |= isr::DEFERRAL;
        }
        self.system.control[usize::from(control::ISR)] = status;
        if collects {
            let previous = if fault.kind.is_trap() {
                self.trapped.0
            } else {
                self.completed_bundle()
            };
            let saved = self.status & !psr::RI | u64::from(self.slot) << psr::RI_SHIFT;
            let registers = &mut self.system.control;
            registers[usize::from(control::IPSR)] = saved;
            registers[usize::from(control::IIP)] = self.ip;
            registers[usize::from(control::IIPA)] = previous;
            registers[usize::from(control::IFS)] = 0;
            if !external {
                self.collect_reference(&fault);
            }
        }
        self.suspend_fill(true);
        self.select_bank(0);
        let defaults = self.system.control[usize::from(control::DCR)];
        let mut status = self.status & KEPT;
        if defaults & default_control::BE != 0 {
            status |= psr::BE;
        }
        if defaults & default_control::PP != 0 {
            status |= psr::PP;
        }
        self.change_status(status);
        self.ip = self.system.control[usize::from(control::IVA)].wrapping_add(fault.kind.vector());
        self.slot = 0;
        self.pending |= pending::CODE_CONTEXT;
    }

    /// The interruptions so far that nothing came of.
    pub fn fruitless_interruptions(&self) -> &FruitlessInterruptions {
        &self.fruitless
    }

    /// IFA, ITIR, IHA and IIM.
    fn collect_reference(&mut self, fault: &Fault) {
        let address = fault.address;
        let region = self.region_register(address);
        if fault.kind.has_address() {
            self.system.control[usize::from(control::IFA)] = address.0;
            self.system.control[usize::from(control::ITIR)] = region.default_itir();
        }
        let table = PageTableAddress(self.system.control[usize::from(control::PTA)]);
        match fault.kind {
            FaultKind::VhptTranslation => {
                let entry = hash(address, region, table);
                self.system.control[usize::from(control::IHA)] = entry.0;
                self.system.control[usize::from(control::ITIR)] = self.region_register(entry).default_itir();
            }
            FaultKind::InstructionTlb | FaultKind::DataTlb => {
                self.system.control[usize::from(control::IHA)] = hash(address, region, table).0;
            }
            FaultKind::Break | FaultKind::Speculation => {
                self.system.control[usize::from(control::IIM)] = fault.immediate;
            }
            _ => {}
        }
    }

    /// The bundle that completed last before the instruction pointer.
    fn completed_bundle(&self) -> u64 {
        if self.slot > 0 { self.ip } else { self.completed }
    }

    /// Makes PSR `status` and does what the change asks for. PSR.bn is not changed here.
    pub(crate) fn change_status(&mut self, status: u64) {
        let before = self.status;
        self.status = status & !psr::BN | before & psr::BN;
        let changed = before ^ self.status;
        if changed & (psr::DT | psr::CPL) != 0 {
            self.context_changed();
        }
        if changed & (psr::PK | psr::DB | psr::BE | psr::DA | psr::VM) != 0 {
            self.translations_changed();
        }
        if changed & (psr::IT | psr::CPL) != 0 {
            self.pending |= pending::CODE_CONTEXT;
        }
        if changed & self.status & psr::I != 0 {
            self.signal_interrupts();
        }
    }

    /// Makes a register bank visible.
    pub(crate) fn select_bank(&mut self, bank: u8) {
        if (self.status & psr::BN != 0) != (bank != 0) {
            self.status ^= psr::BN;
            let (values, nats) = &mut self.system.other_bank;
            self.general.exchange_bank(values, nats);
        }
    }

    /// Has the engine look at external interrupts before the next block.
    pub(crate) fn signal_interrupts(&self) {
        if let Some(system) = self.environment.system() {
            system.interrupts.signal();
        }
    }

    /// Delivers the external interrupt that is due, if any.
    pub(crate) fn deliver_external_interrupt(&mut self) {
        if self.status & psr::I != 0 && self.deliverable_interrupt().is_some() {
            self.take_interruption(Fault::new(FaultKind::ExternalInterrupt, 0));
        }
    }

    /// The requested interrupt that nothing masks.
    fn deliverable_interrupt(&self) -> Option<u8> {
        let system = self.environment.system()?;
        let vector = system.interrupts.highest()?;
        let in_service = highest_of(self.system.in_service);
        may_interrupt(vector, in_service, self.system.control[usize::from(control::TPR)]).then_some(vector)
    }

    /// Whether an external interrupt is pending that neither the task priority nor one in service masks, whatever
    /// PSR.i is: what ends a processor's wait for an interrupt.
    pub fn has_deliverable_interrupt(&self) -> bool {
        self.deliverable_interrupt().is_some()
    }

    /// How many ticks of the interval time counter are left until it matches ITM; `None` if it has passed it.
    pub fn ticks_to_timer(&self) -> Option<u64> {
        match self.timer_deadline() {
            u64::MAX => None,
            deadline => Some(deadline - self.retired),
        }
    }

    /// Lets time pass in which no instruction retires: the interval time counter goes on by `ticks`, and the timer's
    /// interrupt is requested if it matches meanwhile.
    pub fn advance_clock(&mut self, ticks: u64) {
        let matches = self.ticks_to_timer().is_some_and(|left| left <= ticks);
        let counter = &mut self.application[usize::from(ITC)];
        *counter = counter.wrapping_add(ticks);
        if matches {
            self.timer_matched();
        }
    }

    /// Reading IVR: accepts the interrupt that is due and puts it in service.
    pub(crate) fn accept_interrupt(&mut self) -> u64 {
        let Some(vector) = self.deliverable_interrupt() else {
            return u64::from(SPURIOUS);
        };
        if let Some(system) = self.environment.system() {
            system.interrupts.accept(vector);
        }
        self.system.in_service[usize::from(vector / 64)] |= 1 << (vector % 64);
        u64::from(vector)
    }

    /// Writing EOI: ends the interrupt in service.
    pub(crate) fn end_interrupt(&mut self) {
        if let Some(vector) = highest_of(self.system.in_service) {
            self.system.in_service[usize::from(vector / 64)] &= !(1 << (vector % 64));
        }
        self.signal_interrupts();
    }

    /// The number of retired instructions at which the interval timer matches next.
    pub(crate) fn timer_deadline(&self) -> u64 {
        let counter = self.application[usize::from(ITC)];
        let distance = self.system.control[usize::from(control::ITM)]
            .wrapping_sub(counter)
            .wrapping_sub(self.retired);
        if distance == 0 || distance >> 63 != 0 {
            u64::MAX
        } else {
            self.retired.saturating_add(distance)
        }
    }

    /// An instruction has written ITM or ITC, after so many of its block have retired: the timer is looked at before
    /// the next block, and its match may lie in this one.
    pub(crate) fn timer_set(&mut self, retired_in_block: u16) {
        self.pending |= pending::TIMER;
        let deadline = self.timer_deadline();
        self.awaits_timer =
            deadline != u64::MAX && deadline > self.retired.saturating_add(u64::from(retired_in_block));
    }

    /// The interval timer has matched: requests its interrupt.
    pub(crate) fn timer_matched(&mut self) {
        self.awaits_timer = false;
        let vector = self.system.control[usize::from(control::ITV)];
        if vector & TIMER_MASKED == 0
            && let Some(system) = self.environment.system()
        {
            system.interrupts.request(vector as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_are_fruitless_as_long_as_nothing_retires() {
        let mut interruptions = FruitlessInterruptions::default();
        let fault = Fault::new(FaultKind::Break, 0);
        let mut note = |retired| {
            interruptions.note(fault, 0x2c00, retired);
            (interruptions.total, interruptions.in_a_row)
        };
        assert_eq!([note(0), note(0), note(0)], [(0, 0), (1, 1), (2, 2)]);
        assert_eq!([note(1), note(1), note(9)], [(2, 0), (3, 1), (3, 0)]);
        assert_eq!(interruptions.last, Some((fault, 0x2c00)));
    }
}
