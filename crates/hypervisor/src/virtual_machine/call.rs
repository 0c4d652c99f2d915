//! Calls of the monitor by `break`: those of every machine, and those of the request interface.

use std::sync::Arc;

use sidestep_ia64::PhysicalAddress;
use sidestep_machine::machine::hypercall::{FAILED, FUNCTION_REGISTER, function};

use super::VirtualMachine;
use super::configuration::Method;
use super::exit::ExitReason;
use super::processor::Activity;
use super::requests::{EXIT_SLOT, Posted, posted_at};
use super::service::{Progress, Served, Server};
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::nic::ring;
use crate::sidecall::request::Request;
use crate::sidecall::{call, page};

impl VirtualMachine {
    /// Answers the call at which virtual processor `index` stands.
    pub(super) fn call(&mut self, costs: &HostCosts, index: usize) {
        let registers = &self.processors[index].processor().general;
        let number = registers.value(FUNCTION_REGISTER);
        let [first, second, third, fourth] = [8, 9, 10, 11].map(|register| registers.value(register));
        if number == call::REQUEST {
            let request = Request::read(first, [second, third, fourth]);
            return self.request_by_exit(costs, index, request);
        }
        if number == call::SUBMIT {
            let is_taken = self.submit_by_exit(costs, index, first);
            let processor = self.processors[index].processor_mut();
            processor.general.set(8, if is_taken { 0 } else { FAILED });
            return processor.skip_instruction();
        }
        let is_ours = number == call::REGISTER || number == ring::call::REGISTER;
        let asked = self.processors[index].clock();
        if !is_ours && self.call_firmware(costs, index) {
            return;
        }
        self.processors[index].charge(
            ExitReason::Hypercall,
            costs.round_trip() + costs.cycles(Cost::Emulate),
        );
        let result = match number {
            function::EXIT => {
                self.exit_code = Some(first);
                0
            }
            function::PUT_CHARACTER => {
                self.print(&[first as u8]);
                0
            }
            function::GET_CHARACTER => FAILED,
            function::WAIT_FOR_INTERRUPT => {
                self.processors[index].activity = Activity::Waiting;
                self.rests(index);
                0
            }
            function::PUT_BYTES => self.put_bytes(PhysicalAddress(first), second),
            function::IDENTIFY => {
                let count = self.processors.len() as u64;
                self.processors[index].processor_mut().general.set(9, count);
                index as u64
            }
            function::PARAMETERS => self.copy_parameters(PhysicalAddress(first), second),
            function::STOP => {
                self.processors[index].activity = Activity::Stopped;
                0
            }
            function::START => self.start(index, first, PhysicalAddress(second), third),
            function::TIME => costs.nanoseconds(self.processors[index].clock().since(Cycle::START)),
            call::REGISTER => self.register_page(index, PhysicalAddress(first)),
            call::MARK => self.mark(first, asked),
            ring::call::REGISTER => match self.register_interface(index, PhysicalAddress(first), second) {
                true => 0,
                false => FAILED,
            },
            _ => FAILED,
        };
        let waits = number == function::WAIT_FOR_INTERRUPT || number == function::STOP;
        let processor = self.processors[index].processor_mut();
        if !waits {
            processor.general.set(8, result);
        }
        processor.skip_instruction();
    }

    /// A request whose answer goes into registers. For a device the processor waits in the monitor.
    fn request_by_exit(&mut self, costs: &HostCosts, index: usize, request: Request) {
        let asked = self.processors[index].clock();
        let served = self.serve_exit(costs, index, request);
        if let Progress::Answered(answer) = served.progress {
            let cycles = self.processors[index].clock() - asked;
            self.note_request(request.kind(), Server::OwnCore, cycles);
            return self.processors[index].take_answer(answer);
        }
        self.processors[index].activity = Activity::Asking;
        let posted = Posted {
            request,
            completion: None,
        };
        self.take_by_exit(costs, index, EXIT_SLOT, (posted, served), asked);
    }

    /// A request that the guest has written into a slot and hands over by exit: false if there is no such slot, or
    /// the slot is the monitor's.
    fn submit_by_exit(&mut self, costs: &HostCosts, index: usize, slot: u64) -> bool {
        let asked = self.processors[index].clock();
        let requests = &self.processors[index].requests;
        let slot = usize::try_from(slot).unwrap_or(usize::MAX);
        let (Some(address), true) = (requests.page.address(), slot < page::SLOTS) else {
            return false;
        };
        if requests.served() >> slot & 1 != 0 {
            return false;
        }
        let start = address + page::slot_offset(slot);
        let memory = Arc::clone(&self.shared);
        let posted = posted_at(&memory.memory, start);
        let status = start + page::slot::STATUS;
        let marked = (memory.memory).write_value(status, page::status::REQUESTED);
        marked.expect("a registered page is memory");
        let served = self.serve_exit(costs, index, posted.request);
        self.take_by_exit(costs, index, slot, (posted, served), asked);
        true
    }

    /// Serves a request on the processor's own core.
    fn serve_exit(&mut self, costs: &HostCosts, index: usize, request: Request) -> Served {
        let time = self.processors[index].clock();
        let served = self.serve(costs, index, request, Server::OwnCore, time);
        let cycles = costs.round_trip() + costs.cycles(Cost::Emulate) + served.cycles;
        self.processors[index].charge(ExitReason::Request, cycles);
        served
    }

    fn mark(&mut self, label: u64, time: Cycle) -> u64 {
        if self.marks.len() == call::MARKS_MAX {
            return FAILED;
        }
        self.marks.push((label, time));
        0
    }

    fn put_bytes(&mut self, address: PhysicalAddress, size: u64) -> u64 {
        const SIZE_MAX: u64 = 1 << 20;
        if size > SIZE_MAX {
            return FAILED;
        }
        let mut bytes = vec![0; size as usize];
        if self.shared.memory.read(address, &mut bytes).is_err() {
            return FAILED;
        }
        self.print(&bytes);
        0
    }

    fn copy_parameters(&mut self, address: PhysicalAddress, size: u64) -> u64 {
        let mut bytes = self.parameters.clone().into_bytes();
        let length = bytes.len() as u64;
        bytes.push(0);
        let fits = bytes.len() as u64 <= size;
        if fits && self.shared.memory.write(address, &bytes).is_err() {
            return FAILED;
        }
        length
    }

    fn start(&mut self, from: usize, target: u64, entry: PhysicalAddress, argument: u64) -> u64 {
        let time = self.processors[from].clock();
        let count = self.processors.len();
        let Some(target) = usize::try_from(target)
            .ok()
            .filter(|target| *target < count && *target != from)
        else {
            return FAILED;
        };
        self.start_processor(target, entry, argument, time);
        0
    }

    fn register_page(&mut self, index: usize, address: PhysicalAddress) -> u64 {
        let memory = &self.shared.memory;
        if !address.0.is_multiple_of(page::SIZE) || !memory.holds(address, page::SIZE) {
            return FAILED;
        }
        let mode = u64::from(self.method == Method::Sidecall);
        let fields = [
            (page::MAGIC_OFFSET, page::MAGIC),
            (page::VERSION_OFFSET, page::VERSION),
            (page::MODE_OFFSET, mode),
            (page::SLOTS_OFFSET, page::SLOTS as u64),
        ];
        let cleared = memory.clear(address, page::SIZE);
        let written = fields.into_iter().fold(cleared, |written, (offset, value)| {
            written.and(memory.write_value(address + offset, value))
        });
        if written.is_err() {
            return FAILED;
        }
        self.forget_requests(index);
        self.processors[index].set_request_page(address);
        0
    }
}
