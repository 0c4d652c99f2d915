//! What each instruction does inside a unit: read, compute, write. Nothing is written before every check has passed.

use super::arithmetic::{branches, compute};
use super::counters::Cause;
use super::shared::{Shared, Stop};
use super::unit::{Flow, NEVER, Unit, ends_thread};
use crate::controller::{ControllerOperation, FaultCause, Mode, Request};
use crate::device;
use crate::instruction::Instruction;
use crate::operation::{self as table, Cycles, Operation};

impl Unit {
    /// Executes one instruction whose registers are ready.
    #[inline]
    pub(super) fn execute(&mut self, instruction: &Instruction, now: u64, shared: &mut Shared) -> Flow {
        let register = |number: u8| self.registers.values[usize::from(number) & 31];
        let number = instruction.number as u32;
        match instruction.operation {
            operation @ (Operation::Add
            | Operation::Sub
            | Operation::And
            | Operation::Or
            | Operation::Xor
            | Operation::Sll
            | Operation::Srl
            | Operation::Sra
            | Operation::Slt
            | Operation::Sltu) => {
                let value = compute(operation, register(instruction.b), register(instruction.c));
                self.write(instruction.a, value, now)
            }
            operation @ (Operation::Addi
            | Operation::Andi
            | Operation::Ori
            | Operation::Xori
            | Operation::Slti
            | Operation::Sltiu
            | Operation::Slli
            | Operation::Srli
            | Operation::Srai
            | Operation::Lui) => {
                let value = compute(operation, register(instruction.b), number);
                self.write(instruction.a, value, now)
            }
            operation @ (Operation::Mul
            | Operation::Mulhu
            | Operation::Div
            | Operation::Divu
            | Operation::Rem
            | Operation::Remu) => {
                let value = compute(operation, register(instruction.b), register(instruction.c));
                self.write_late(operation, instruction.a, value, now)
            }
            operation @ (Operation::Beq
            | Operation::Bne
            | Operation::Blt
            | Operation::Bge
            | Operation::Bltu
            | Operation::Bgeu) => {
                if branches(operation, register(instruction.a), register(instruction.b)) {
                    Flow::Jump(self.relative(number))
                } else {
                    Flow::Next
                }
            }
            Operation::Jmp => Flow::Jump(self.relative(number)),
            Operation::Jal => {
                let target = self.relative(number);
                let next = self.relative(1).wrapping_mul(4);
                self.registers.set(instruction.a, next, now + 1);
                Flow::Jump(target)
            }
            Operation::Jr => {
                let target = register(instruction.b);
                if target.is_multiple_of(4) {
                    Flow::Jump(target / 4)
                } else {
                    Flow::Fault(FaultCause::Misaligned, target)
                }
            }
            Operation::Ldw => self.load::<4>(instruction, now, shared, u32::from_le_bytes),
            Operation::Ldh => {
                self.load::<2>(instruction, now, shared, |bytes| i16::from_le_bytes(bytes) as u32)
            }
            Operation::Ldhu => {
                self.load::<2>(instruction, now, shared, |bytes| u16::from_le_bytes(bytes).into())
            }
            Operation::Ldb => self.load::<1>(instruction, now, shared, |[byte]| byte as i8 as u32),
            Operation::Ldbu => self.load::<1>(instruction, now, shared, |[byte]| byte.into()),
            Operation::Stw => self.store::<4>(instruction, now, shared, u32::to_le_bytes),
            Operation::Sth => self.store::<2>(instruction, now, shared, |value| (value as u16).to_le_bytes()),
            Operation::Stb => self.store::<1>(instruction, now, shared, |value| [value as u8]),
            Operation::Preload => self.preload(instruction, now, shared),
            Operation::Cycle => self.write(instruction.a, Ok(now as u32), now),
            Operation::UnitNumber => self.write(instruction.a, Ok(self.number as u32), now),
            Operation::End | Operation::Halt | Operation::SelfContinue if self.answer.is_some() => {
                Flow::Wait(NEVER, Cause::ControllerAnswer)
            }
            Operation::End => Flow::End,
            Operation::Halt => {
                if self.mode() != Mode::Kernel {
                    return Flow::Fault(FaultCause::Privileged, 0);
                }
                let code = register(instruction.b);
                shared.stop(Stop::Halt(code));
                Flow::Stop
            }
            Operation::Cont
            | Operation::Contd
            | Operation::Contu
            | Operation::Contdu
            | Operation::SelfContinue
            | Operation::Lock
            | Operation::Unlock
            | Operation::Create
            | Operation::Delete
            | Operation::Install
            | Operation::SetCount
            | Operation::Rearm => self.ask(instruction, now, shared),
        }
    }

    /// The instruction `distance` instructions from the one being executed.
    fn relative(&self, distance: u32) -> u32 {
        self.running
            .map_or(0, |running| running.pc.wrapping_add(distance))
    }

    fn mode(&self) -> Mode {
        self.running.map_or(Mode::User, |running| running.mode)
    }

    #[inline(always)]
    fn write(&mut self, register: u8, value: Result<u32, FaultCause>, now: u64) -> Flow {
        match value {
            Ok(value) => {
                self.registers.set(register, value, now + 1);
                Flow::Next
            }
            Err(cause) => Flow::Fault(cause, 0),
        }
    }

    /// Writes a product or quotient; a division also keeps the pipeline.
    fn write_late(
        &mut self,
        operation: Operation,
        register: u8,
        value: Result<u32, FaultCause>,
        now: u64,
    ) -> Flow {
        let description = operation.description();
        let Cycles::Fixed(cycles) = description.cycles else {
            unreachable!("the table gives arithmetic a fixed time");
        };
        let flow = self.write(register, value, now);
        if flow == Flow::Next {
            let ready = now + u64::from(cycles);
            // A division holds the pipeline through register 0, which every instruction waits for.
            let held = if description.unit == table::Unit::Divider {
                0
            } else {
                usize::from(register)
            };
            if held != 0 || description.unit == table::Unit::Divider {
                self.registers.ready[held] = ready;
                self.registers.cause[held] = Cause::LongOperation;
            }
        }
        flow
    }

    /// Whether the running thread may access `length` bytes at `address`, and how.
    #[inline]
    fn check<const N: usize>(&self, address: u32, store: bool, shared: &Shared) -> Result<(), FaultCause> {
        if !address.is_multiple_of(N as u32) {
            return Err(FaultCause::Misaligned);
        }
        let allowed = if self.mode() == Mode::User {
            shared.in_user_region(address, N as u32)
        } else {
            !store || address >= shared.text_end
        };
        if allowed {
            Ok(())
        } else {
            Err(FaultCause::MemoryProtection)
        }
    }

    /// The address an instruction accesses, if the memory path is free and the mode allows it.
    #[inline]
    fn address<const N: usize>(
        &self,
        instruction: &Instruction,
        store: bool,
        now: u64,
        shared: &Shared,
    ) -> Result<u32, Flow> {
        if self.store_accepted > now {
            return Err(Flow::Wait(self.store_accepted, Cause::StoreBuffer));
        }
        let base = self.registers.values[usize::from(instruction.b)];
        let address = base.wrapping_add(instruction.number as u32);
        self.check::<N>(address, store, shared)
            .map_err(|cause| Flow::Fault(cause, address))?;
        Ok(address)
    }

    #[inline]
    fn load<const N: usize>(
        &mut self,
        instruction: &Instruction,
        now: u64,
        shared: &mut Shared,
        value: impl Fn([u8; N]) -> u32,
    ) -> Flow {
        let address = match self.address::<N>(instruction, false, now, shared) {
            Ok(address) => address,
            Err(flow) => return flow,
        };
        if let Some(bytes) = shared.memory.read::<N>(address) {
            let timing = shared.memory.reserve(address, now);
            self.arrives(instruction.a, value(bytes), timing.done);
            Flow::Next
        } else if N == 4 && address >= device::BASE {
            let word = shared.bus.read(address, now);
            self.arrives(instruction.a, word, now + shared.device_register_cycles);
            Flow::Next
        } else {
            Flow::Fault(FaultCause::MemoryProtection, address)
        }
    }

    fn arrives(&mut self, register: u8, value: u32, ready: u64) {
        self.registers.set(register, value, ready);
        if register != 0 {
            self.registers.cause[usize::from(register)] = Cause::Memory;
        }
    }

    #[inline]
    fn store<const N: usize>(
        &mut self,
        instruction: &Instruction,
        now: u64,
        shared: &mut Shared,
        bytes: impl Fn(u32) -> [u8; N],
    ) -> Flow {
        let address = match self.address::<N>(instruction, true, now, shared) {
            Ok(address) => address,
            Err(flow) => return flow,
        };
        let value = self.registers.values[usize::from(instruction.a)];
        if shared.memory.write::<N>(address, bytes(value)).is_some() {
            self.store_accepted = shared.memory.reserve(address, now).accepted;
            Flow::Next
        } else if N == 4 && address >= device::BASE {
            shared.bus.write(address, value, now);
            Flow::Next
        } else {
            Flow::Fault(FaultCause::MemoryProtection, address)
        }
    }

    /// A `preload` that is not a thread's first instruction: one word a cycle, the pipeline waits for the last.
    fn preload(&mut self, instruction: &Instruction, now: u64, shared: &mut Shared) -> Flow {
        let running = *self
            .running
            .as_ref()
            .expect("an instruction belongs to a running thread");
        match shared.preload(&running, instruction, &mut self.registers, now) {
            Ok(done) => {
                for register in instruction.a..instruction.a + instruction.b {
                    if register != 0 {
                        self.registers.ready[usize::from(register)] = done;
                        self.registers.cause[usize::from(register)] = Cause::Memory;
                    }
                }
                Flow::Next
            }
            Err((cause, value)) => Flow::Fault(cause, value),
        }
    }

    /// Puts a request into the unit's port.
    fn ask(&mut self, instruction: &Instruction, now: u64, shared: &mut Shared) -> Flow {
        if !shared.controller.port_is_free(self.number) {
            return Flow::Wait(now + 1, Cause::ControllerPort);
        }
        if self.answer.is_some() && instruction.operation.description().writes() {
            return Flow::Wait(NEVER, Cause::ControllerAnswer);
        }
        let operation = match self.controller_operation(instruction, shared) {
            Ok(operation) => operation,
            Err((cause, value)) => return Flow::Fault(cause, value),
        };
        let mut issuer = self.issuer();
        if matches!(instruction.operation, Operation::Contu | Operation::Contdu) {
            issuer.mode = Mode::User;
        }
        shared
            .controller
            .submit(self.number, Request { issuer, operation });
        if instruction.operation.description().writes() {
            self.answer = Some(instruction.a);
            if instruction.a != 0 {
                self.registers.ready[usize::from(instruction.a)] = NEVER;
                self.registers.cause[usize::from(instruction.a)] = Cause::ControllerAnswer;
            }
        }
        if ends_thread(instruction.operation) {
            Flow::End
        } else {
            Flow::Next
        }
    }

    fn controller_operation(
        &self,
        instruction: &Instruction,
        shared: &Shared,
    ) -> Result<ControllerOperation, (FaultCause, u32)> {
        let b = self.registers.values[usize::from(instruction.b)];
        let c = self.registers.values[usize::from(instruction.c)];
        Ok(match instruction.operation {
            Operation::Cont | Operation::Contu => ControllerOperation::Continue { target: b },
            Operation::Contd | Operation::Contdu => ControllerOperation::ContinueWithData {
                target: b,
                slot: instruction.number as u16,
                value: c,
            },
            Operation::SelfContinue => ControllerOperation::SelfContinue,
            Operation::Lock => ControllerOperation::Lock { target: b },
            Operation::Unlock => ControllerOperation::Unlock { target: b },
            Operation::Create => {
                let words = instruction.number as u16;
                let length = u32::from(words) * 4;
                let allowed = if self.mode() == Mode::User {
                    shared.in_user_region(b, length)
                } else {
                    b >= shared.text_end && shared.memory.contains(b, length)
                };
                if words != 0 && !(allowed && b.is_multiple_of(4)) {
                    return Err((FaultCause::MemoryProtection, b));
                }
                ControllerOperation::Create { frame: b, words }
            }
            Operation::Delete => ControllerOperation::Delete { target: b },
            Operation::Install => ControllerOperation::Install {
                target: b,
                code: c,
                mode: Mode::from_bits(instruction.a).expect("decoding has checked the mode"),
                fan_in: instruction.number as u8,
            },
            Operation::SetCount => ControllerOperation::SetCount { target: b, count: c },
            Operation::Rearm => ControllerOperation::Rearm,
            other => unreachable!("{other:?} asks nothing of the controller"),
        })
    }
}
