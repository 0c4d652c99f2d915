//! What the pipeline knows of an instruction before it runs: ports, operands, latencies.
//!
//! [`StaticInstruction::new`] reads it once per instruction in memory; the pipeline keeps the records by address.

use sidestep_ia64::encoding::{
    BranchKind, IndirectFile, Instruction, LoadKind, Operation, Resource, StoreKind, Template, Unit,
    UnitClass,
};
use sidestep_ia64::registers::application::{self, EC, FPSR, ITC, KERNEL_0, KERNEL_7, LC, PFS, RNAT, RUC};
use sidestep_ia64::registers::system::control;

use crate::dispersal::Port;
use crate::parameters::{Cost, Parameters};
use crate::rules::{self, Behind};
use crate::scoreboard::{Operand, Producer};

/// How a source is used: what bypasses apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    /// By the ALU, shifts, and everything else.
    Alu,
    /// As an address.
    Address,
    /// By a multimedia operation.
    Multimedia,
    /// By `getf` or a floating-point store.
    FloatStore,
    /// As the qualifying predicate of a branch, or its target register.
    Branch,
}

/// How many ways to use a source there are.
pub const USES: usize = 5;

bitflags::bitflags! {
    /// What the pipeline has to do for an instruction beside reading and writing registers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u64 {
        /// A nop.
        const NOP = 1 << 0;
        /// Reads memory.
        const LOAD = 1 << 1;
        /// Writes memory.
        const STORE = 1 << 2;
        /// Its data passes by the first-level cache: floating point, semaphores.
        const SECOND_LEVEL = 1 << 3;
        /// Only brings a line in.
        const PREFETCH = 1 << 4;
        /// A branch.
        const BRANCH = 1 << 5;
        /// A call.
        const CALL = 1 << 6;
        /// A return.
        const RETURN = 1 << 7;
        /// A branch to a branch register.
        const INDIRECT = 1 << 8;
        /// Changes the frame, the rename bases or the register stack.
        const FRAME = 1 << 9;
        /// Writes all predicates.
        const ALL_PREDICATES = 1 << 10;
        /// Reads all predicates.
        const READS_PREDICATES = 1 << 11;
        /// Goes through the queue of system-register accesses.
        const SYSTEM_QUEUE = 1 << 12;
        /// One of the slow registers, of which an access issues every few cycles only.
        const TIMER = 1 << 13;
        /// A move to a region or protection key register.
        const REGION = 1 << 14;
        /// Issue splits behind it.
        const SPLIT_AFTER = 1 << 15;
        /// Issue splits before it.
        const SPLIT_BEFORE = 1 << 16;
        /// `mov =ar.bsp`, which issue splits from any B-unit instruction behind it.
        const FROM_BSP = 1 << 17;
        /// An instruction of the B unit.
        const B_UNIT = 1 << 18;
        /// An instruction of the M unit that is no nop.
        const M_UNIT = 1 << 19;
        /// `fwb`.
        const FLUSH_BUFFERS = 1 << 20;
        /// `flushrs`.
        const FLUSH_STACK = 1 << 21;
        /// `loadrs`.
        const LOAD_STACK = 1 << 22;
        /// `srlz.i`.
        const SERIALIZES = 1 << 23;
        /// May change the privilege level.
        const PRIVILEGE = 1 << 24;
        /// A floating-point arithmetic operation.
        const FLOAT = 1 << 25;
        /// A multiply-add, which counts as two operations.
        const MULTIPLY_ADD = 1 << 26;
        /// A predicted relative branch whose hint is static.
        const STATIC_HINT = 1 << 27;
        /// The hint says taken.
        const HINT_TAKEN = 1 << 28;
        /// Writes a branch register from a general one.
        const TO_BRANCH = 1 << 29;
        /// A branch that also moves the rotating registers or counts, and is taken by prediction of the loop count.
        const LOOP = 1 << 30;
        /// Spills or fills with a NaT bit.
        const NAT = 1 << 31;
        /// Changes PSR.
        const STATUS = 1 << 32;
        /// Brings a system register's value to a general one.
        const READS_SYSTEM = 1 << 33;
        /// Checks an advanced load: `chk.a`, a check load.
        const CHECKS_ADVANCED = 1 << 34;
    }
}

/// Sources that are looked at.
pub const SOURCES_MAX: usize = 6;
/// Destinations that are noted.
pub const DESTINATIONS_MAX: usize = 4;

/// A register that an instruction writes.
#[derive(Clone, Copy, Debug)]
pub struct Destination {
    /// The register.
    pub operand: Operand,
    /// Cycles from issue until a plain use may issue, on a cache hit.
    pub latency: u8,
    /// What produced it, for bypasses and the name of a stall.
    pub producer: Producer,
}

/// What is known of an instruction before it runs.
#[derive(Clone, Copy, Debug)]
pub struct StaticInstruction {
    /// The port it asks for.
    pub port: Port,
    /// What else it does.
    pub flags: Flags,
    /// What everything behind it waits for.
    pub behind: Option<Behind>,
    /// Rules that it ends, as a set of indices.
    pub rules_to: u32,
    /// Rules that it starts.
    pub rules_from: u32,
    /// Its qualifying predicate, and the predicates's use.
    pub predicate: Operand,
    /// How the qualifying predicate is used.
    pub predicate_use: Use,
    sources: [(Operand, Use); SOURCES_MAX],
    source_count: u8,
    destinations: [Destination; DESTINATIONS_MAX],
    destination_count: u8,
    /// The branch register that it writes or branches to.
    pub branch_register: u8,
}

impl StaticInstruction {
    /// Reads an instruction in `slot` of a bundle of a template.
    pub fn new(instruction: &Instruction, slot: u8, template: Template, parameters: &Parameters) -> Self {
        let (rules_to, rules_from) = rules::rules_of(instruction);
        let flags = flags(instruction);
        let is_branch = flags.contains(Flags::BRANCH);
        let mut known = StaticInstruction {
            port: port(instruction, slot, first_branch_slot(template)),
            flags,
            behind: rules::behind(instruction),
            rules_to,
            rules_from,
            predicate: Operand::of(Resource::Predicate(instruction.predicate())).unwrap_or(Operand::ALWAYS),
            predicate_use: if is_branch { Use::Branch } else { Use::Alu },
            sources: [(Operand::ALWAYS, Use::Alu); SOURCES_MAX],
            source_count: 0,
            destinations: [Destination {
                operand: Operand::ALWAYS,
                latency: 0,
                producer: Producer::Alu,
            }; DESTINATIONS_MAX],
            destination_count: 0,
            branch_register: if flags.contains(Flags::TO_BRANCH) {
                instruction.b1()
            } else {
                instruction.b2()
            },
        };
        if !flags.contains(Flags::NOP) {
            known.add_sources(instruction);
            known.add_destinations(instruction, parameters);
        }
        known
    }

    /// The registers it reads, but for its qualifying predicate.
    #[inline]
    pub fn sources(&self) -> &[(Operand, Use)] {
        &self.sources[..usize::from(self.source_count)]
    }

    /// The registers it writes.
    #[inline]
    pub fn destinations(&self) -> &[Destination] {
        &self.destinations[..usize::from(self.destination_count)]
    }

    fn add_sources(&mut self, instruction: &Instruction) {
        for resource in instruction.sources().iter() {
            let is_qualifier = *resource == Resource::Predicate(instruction.predicate());
            let Some(operand) = Operand::of(*resource).filter(|_| !is_qualifier) else {
                continue;
            };
            let index = usize::from(self.source_count);
            if index < SOURCES_MAX {
                self.sources[index] = (operand, source_use(instruction, *resource, self.flags));
                self.source_count += 1;
            }
        }
    }

    fn add_destinations(&mut self, instruction: &Instruction, parameters: &Parameters) {
        for resource in instruction.destinations().iter() {
            let Some(operand) = Operand::of(*resource) else {
                continue;
            };
            let (cost, producer) = production(instruction, *resource);
            let mut latency = parameters.cost(cost);
            if self.flags.contains(Flags::SECOND_LEVEL) && producer == Producer::Load {
                let second = u64::from(parameters.l2.latency);
                latency = second
                    + if matches!(resource, Resource::Float(_)) {
                        parameters.cost(Cost::FloatLoadFormat)
                    } else {
                        parameters.cost(Cost::Semaphore)
                    };
            }
            let index = usize::from(self.destination_count);
            if index < DESTINATIONS_MAX {
                self.destinations[index] = Destination {
                    operand,
                    latency: u8::try_from(latency).unwrap_or(u8::MAX),
                    producer,
                };
                self.destination_count += 1;
            }
        }
    }
}

fn source_use(instruction: &Instruction, resource: Resource, flags: Flags) -> Use {
    let is_memory = flags.intersects(Flags::LOAD | Flags::STORE | Flags::PREFETCH);
    match resource {
        Resource::General(register) if is_memory && register == instruction.r3() => Use::Address,
        Resource::General(_) if is_multimedia(instruction) => Use::Multimedia,
        Resource::Float(_) if flags.contains(Flags::STORE) => Use::FloatStore,
        Resource::Float(_) if matches!(instruction.operation, Operation::GetFloat { .. }) => Use::FloatStore,
        Resource::Branch(_) | Resource::Application(_) if flags.contains(Flags::BRANCH) => Use::Branch,
        _ => Use::Alu,
    }
}

/// The latency of what an instruction writes to a register, and the kind of its producer.
fn production(instruction: &Instruction, resource: Resource) -> (Cost, Producer) {
    use Operation as O;
    match (&instruction.operation, resource) {
        (O::FloatCompare { .. } | O::FloatClass { .. }, _) => (Cost::FloatCompare, Producer::FloatCompare),
        (O::Load { .. } | O::LoadSixteen { .. }, Resource::General(register))
            if register == instruction.r1() =>
        {
            (Cost::Load, Producer::Load)
        }
        (O::LoadFloat { .. } | O::LoadFloatPair { .. }, Resource::Float(_)) => (Cost::Load, Producer::Load),
        (
            O::CompareExchange { .. }
            | O::CompareExchangeSixteen { .. }
            | O::Exchange { .. }
            | O::FetchAdd { .. },
            Resource::General(_),
        ) => (Cost::Load, Producer::Load),
        (O::GetFloat { .. }, _) => (Cost::GetFloat, Producer::Transfer),
        (O::SetFloat { .. }, _) => (Cost::SetFloat, Producer::SetFloat),
        (O::MoveFromBranch, _) => (Cost::FromBranch, Producer::Transfer),
        (O::MoveToBranch, _) => (Cost::ToBranch, Producer::ToBranch),
        (O::MoveFromPredicates, _) => (Cost::FromPredicates, Producer::Transfer),
        (O::MoveToPredicates | O::MoveToRotatingPredicates, _) => (Cost::ToPredicates, Producer::Compare),
        (O::MoveFromApplication, _) => (from_application(instruction.ar3()), Producer::System),
        (O::MoveToApplication { .. }, _) if instruction.unit != Unit::M => {
            (Cost::ToApplicationInteger, Producer::ToBranch)
        }
        // What is written to the RSE's registers is in the rules.
        (O::MoveToApplication { .. }, _) if is_stack_register(instruction.ar3()) => {
            (Cost::Alu, Producer::System)
        }
        (O::MoveToApplication { .. }, _) => (Cost::ToApplicationMemory, Producer::System),
        (O::MoveFromPsr, _) => (Cost::FromSlowState, Producer::System),
        (O::MoveFromUserMask, _) => (Cost::FromUserMask, Producer::System),
        (O::MoveFromControl, _) => (from_control(instruction.cr3()), Producer::System),
        (
            O::MoveFromIndirect {
                file: IndirectFile::MonitorData | IndirectFile::MonitorConfiguration,
            },
            _,
        ) => (Cost::FromTimer, Producer::System),
        (O::MoveFromIndirect { .. }, _) => (Cost::FromIndirect, Producer::System),
        (
            O::Probe { .. }
            | O::TranslateToPhysical
            | O::TranslationAccessKey
            | O::TranslationHash
            | O::TranslationTag,
            _,
        ) => (Cost::Probe, Producer::System),
        (_, Resource::Predicate(_)) => (Cost::ComparePredicate, Producer::Compare),
        (_, Resource::Float(_)) => (Cost::Float, Producer::Float),
        _ if is_multimedia(instruction) => (Cost::Multimedia, Producer::Multimedia),
        (O::MoveLong, _) => (Cost::Alu, Producer::Alu),
        _ => (Cost::Alu, Producer::Alu),
    }
}

fn is_stack_register(register: u8) -> bool {
    (application::RSC..=application::RNAT).contains(&register)
}

fn from_application(register: u8) -> Cost {
    match register {
        PFS | LC | EC => Cost::FromApplicationInteger,
        ITC | RUC => Cost::FromTimer,
        RNAT => Cost::FromApplicationMemory,
        KERNEL_0..=KERNEL_7 | FPSR => Cost::FromSlowState,
        _ if is_stack_register(register) => Cost::FromSlowState,
        _ => Cost::FromApplicationMemory,
    }
}

fn is_interrupt_register(register: u8) -> bool {
    (control::LID..=control::CMCV).contains(&register)
        || matches!(register, control::LRR_0 | control::LRR_1 | control::ITM)
}

fn from_control(register: u8) -> Cost {
    match register {
        control::IPSR => Cost::FromSlowState,
        _ if is_interrupt_register(register) => Cost::FromTimer,
        _ => Cost::FromControl,
    }
}

/// Whether the multimedia units execute it.
fn is_multimedia(instruction: &Instruction) -> bool {
    use Operation as O;
    matches!(
        instruction.operation,
        O::ParallelAdd { .. }
            | O::ParallelSubtract { .. }
            | O::ParallelAverage { .. }
            | O::ParallelAverageSubtract { .. }
            | O::ParallelCompare { .. }
            | O::ParallelShiftLeftAdd
            | O::ParallelShiftRightAdd
            | O::ParallelMultiplyShiftRight { .. }
            | O::ParallelMultiply { .. }
            | O::Mix { .. }
            | O::Pack { .. }
            | O::Unpack { .. }
            | O::ParallelSumAbsoluteDifference
            | O::MuxBytes
            | O::MuxPairs
            | O::ParallelShiftRight { .. }
            | O::ParallelShiftLeft { .. }
            | O::PopulationCount
            | O::ComputeZeroIndex { .. }
            | O::ShiftRight { .. }
            | O::ShiftLeft
    )
}

/// The first slot of a template that has a B unit; 3 for none.
fn first_branch_slot(template: Template) -> u8 {
    let units = template.units().unwrap_or([Unit::M; 3]);
    units.iter().position(|unit| *unit == Unit::B).unwrap_or(3) as u8
}

fn port(instruction: &Instruction, slot: u8, first_branch_slot: u8) -> Port {
    use Operation as O;
    let is_hint = matches!(
        instruction.operation,
        O::Nop | O::Hint | O::BranchPredict | O::BranchPredictIndirect { .. }
    );
    match instruction.unit {
        Unit::F => Port::Float,
        Unit::B if first_branch_slot < 2 => Port::BranchMultiple(slot),
        Unit::B if is_hint => Port::BranchHint,
        Unit::B => Port::BranchSingle,
        Unit::X | Unit::L if matches!(instruction.operation, O::Branch { .. } | O::Call { .. }) => {
            Port::LongBranch
        }
        Unit::X | Unit::L => Port::Long,
        Unit::I => integer_port(instruction),
        Unit::M => memory_port(instruction),
    }
}

fn integer_port(instruction: &Instruction) -> Port {
    use Operation as O;
    match instruction.operation {
        O::Nop | O::Hint | O::ZeroExtend { .. } | O::SignExtend { .. } | O::CheckSpeculative | O::Break => {
            Port::IntegerAny
        }
        O::ParallelShiftRight { .. }
        | O::ParallelShiftLeft { .. }
        | O::ShiftRight { .. }
        | O::ShiftLeft
        | O::Mix { .. }
        | O::Pack { .. }
        | O::Unpack { .. }
        | O::MuxBytes
        | O::MuxPairs
        | O::ComputeZeroIndex { .. } => Port::IntegerAny,
        _ if instruction.unit_class() == UnitClass::A => Port::IntegerAlu,
        _ => Port::IntegerFirst,
    }
}

fn memory_port(instruction: &Instruction) -> Port {
    use Operation as O;
    match instruction.operation {
        _ if instruction.unit_class() == UnitClass::A => Port::MemoryAny,
        O::Nop | O::Hint | O::Break => Port::MemoryAny,
        O::LoadFloat {
            kind: LoadKind::Normal | LoadKind::Speculative | LoadKind::Fill,
            ..
        } => Port::MemoryAny,
        O::Load { .. }
        | O::LoadSixteen { .. }
        | O::LoadFloat { .. }
        | O::LoadFloatPair { .. }
        | O::LineFetch { .. }
        | O::LineFetchCount
        | O::CheckAdvanced { .. }
        | O::CheckAdvancedFloat { .. }
        | O::InvalidateAlat
        | O::InvalidateAlatEntry
        | O::InvalidateAlatEntryFloat => Port::MemoryLoad,
        O::Store { .. }
        | O::StoreSixteen { .. }
        | O::StoreFloat { .. }
        | O::CompareExchange { .. }
        | O::CompareExchangeSixteen { .. }
        | O::Exchange { .. }
        | O::FetchAdd { .. }
        | O::SetFloat { .. }
        | O::CheckSpeculative
        | O::CheckSpeculativeFloat => Port::MemoryStore,
        O::MemoryFence
        | O::MemoryFenceAcceptance
        | O::FlushWriteBuffers
        | O::FlushCache { .. }
        | O::SynchronizeInstructionCache
        | O::Serialize { .. }
        | O::FlushRegisterStack
        | O::LoadRegisterStack
        | O::PurgeTranslationCache { .. }
        | O::PurgeTranslationCacheEntry
        | O::PurgeTranslationRegister { .. } => Port::MemoryFirst,
        _ => Port::MemorySystem,
    }
}

fn flags(instruction: &Instruction) -> Flags {
    use Operation as O;
    let mut flags = match instruction.operation {
        O::Nop | O::Hint => Flags::NOP,
        O::Load { kind, .. } => {
            let nat = if kind == LoadKind::Fill {
                Flags::NAT
            } else {
                Flags::empty()
            };
            Flags::LOAD | nat
        }
        O::LoadSixteen { .. } => Flags::LOAD,
        O::LoadFloat { .. } | O::LoadFloatPair { .. } => Flags::LOAD | Flags::SECOND_LEVEL,
        O::Store { kind, .. } => {
            let nat = if kind == StoreKind::Spill {
                Flags::NAT
            } else {
                Flags::empty()
            };
            Flags::STORE | nat
        }
        O::StoreSixteen { .. } | O::StoreFloat { .. } => Flags::STORE,
        O::CompareExchange { .. }
        | O::CompareExchangeSixteen { .. }
        | O::Exchange { .. }
        | O::FetchAdd { .. } => Flags::LOAD | Flags::STORE | Flags::SECOND_LEVEL,
        O::LineFetch { .. } => Flags::PREFETCH,
        O::Branch { kind, target } => {
            let mut flags = Flags::BRANCH;
            flags.set(
                Flags::INDIRECT,
                target == sidestep_ia64::encoding::Target::Indirect,
            );
            if kind != BranchKind::Conditional {
                flags |= Flags::FRAME;
            }
            flags.set(Flags::LOOP, kind != BranchKind::Conditional);
            flags | hints(instruction)
        }
        O::Call { target } => {
            let mut flags = Flags::BRANCH | Flags::CALL | Flags::FRAME;
            flags.set(
                Flags::INDIRECT,
                target == sidestep_ia64::encoding::Target::Indirect,
            );
            flags | hints(instruction)
        }
        O::Return => {
            Flags::BRANCH
                | Flags::RETURN
                | Flags::INDIRECT
                | Flags::FRAME
                | Flags::PRIVILEGE
                | hints(instruction)
        }
        O::CheckSpeculative
        | O::CheckSpeculativeFloat
        | O::CheckAdvanced { .. }
        | O::CheckAdvancedFloat { .. }
        | O::FloatCheckFlags { .. } => Flags::empty(),
        O::Allocate | O::Cover | O::ClearRegisterRename { .. } => Flags::FRAME,
        O::FlushRegisterStack => Flags::FRAME | Flags::FLUSH_STACK,
        O::LoadRegisterStack => Flags::FRAME | Flags::LOAD_STACK,
        O::ReturnFromInterruption => Flags::FRAME | Flags::SPLIT_AFTER | Flags::PRIVILEGE,
        O::BankSwitch { .. } => Flags::SPLIT_AFTER,
        O::EnterPrivilegedCode => Flags::SPLIT_AFTER | Flags::PRIVILEGE,
        O::Serialize { side } => {
            let mut flags = Flags::SPLIT_AFTER;
            flags.set(
                Flags::SERIALIZES,
                side == sidestep_ia64::encoding::Side::Instruction,
            );
            flags
        }
        O::SynchronizeInstructionCache => Flags::SPLIT_AFTER,
        O::SetUserMask | O::ResetUserMask | O::MoveToUserMask => Flags::SYSTEM_QUEUE,
        O::MemoryFence | O::MemoryFenceAcceptance => Flags::SPLIT_BEFORE,
        O::FlushWriteBuffers => Flags::FLUSH_BUFFERS,
        O::MoveToPredicates | O::MoveToRotatingPredicates => Flags::ALL_PREDICATES,
        O::MoveFromPredicates => Flags::READS_PREDICATES,
        O::MoveToBranch => Flags::TO_BRANCH,
        O::MoveFromApplication if instruction.unit == Unit::M => match instruction.ar3() {
            application::UNAT => Flags::SYSTEM_QUEUE | Flags::SPLIT_AFTER,
            application::BSP => Flags::SYSTEM_QUEUE | Flags::FROM_BSP,
            ITC | RUC => Flags::SYSTEM_QUEUE | Flags::TIMER,
            _ => Flags::SYSTEM_QUEUE,
        },
        O::MoveToApplication { .. } if instruction.unit == Unit::M => match instruction.ar3() {
            ITC | RUC => Flags::SYSTEM_QUEUE | Flags::TIMER,
            application::BSPSTORE => Flags::SYSTEM_QUEUE | Flags::FRAME,
            _ => Flags::SYSTEM_QUEUE,
        },
        O::MoveFromControl | O::MoveToControl if is_interrupt_register(instruction.cr3()) => {
            Flags::SYSTEM_QUEUE | Flags::TIMER
        }
        O::MoveFromControl
        | O::MoveToControl
        | O::MoveFromPsr
        | O::MoveFromUserMask
        | O::MoveToPsrLower
        | O::SetSystemMask
        | O::ResetSystemMask => Flags::SYSTEM_QUEUE,
        O::MoveFromIndirect { file } | O::MoveToIndirect { file } => {
            let mut flags = Flags::SYSTEM_QUEUE;
            flags.set(
                Flags::TIMER,
                matches!(
                    file,
                    IndirectFile::MonitorData | IndirectFile::MonitorConfiguration
                ),
            );
            let writes = matches!(instruction.operation, O::MoveToIndirect { .. });
            let is_region = matches!(file, IndirectFile::Region | IndirectFile::ProtectionKey);
            flags.set(Flags::REGION, writes && is_region);
            flags
        }
        O::FloatMultiplyAdd { .. } | O::ParallelFloatMultiplyAdd { .. } => Flags::FLOAT | Flags::MULTIPLY_ADD,
        _ if instruction.unit_class() == UnitClass::F => Flags::FLOAT,
        _ => Flags::empty(),
    };
    flags.set(Flags::STATUS, changes_status(instruction));
    flags.set(Flags::CHECKS_ADVANCED, checks_advanced(instruction));
    flags.set(
        Flags::READS_SYSTEM,
        flags.contains(Flags::SYSTEM_QUEUE) && reads_system_register(instruction),
    );
    flags.set(Flags::B_UNIT, matches!(instruction.unit, Unit::B));
    flags.set(
        Flags::M_UNIT,
        instruction.unit == Unit::M && !flags.contains(Flags::NOP),
    );
    flags
}

fn reads_system_register(instruction: &Instruction) -> bool {
    use Operation as O;
    matches!(
        instruction.operation,
        O::MoveFromApplication
            | O::MoveFromControl
            | O::MoveFromPsr
            | O::MoveFromUserMask
            | O::MoveFromIndirect { .. }
    )
}

fn checks_advanced(instruction: &Instruction) -> bool {
    use Operation as O;
    match instruction.operation {
        O::CheckAdvanced { .. } | O::CheckAdvancedFloat { .. } => true,
        O::Load { kind, .. } | O::LoadFloat { kind, .. } | O::LoadFloatPair { kind, .. } => matches!(
            kind,
            LoadKind::CheckClear | LoadKind::CheckKeep | LoadKind::CheckClearAcquire
        ),
        _ => false,
    }
}

fn changes_status(instruction: &Instruction) -> bool {
    use Operation as O;
    matches!(
        instruction.operation,
        O::SetUserMask
            | O::ResetUserMask
            | O::MoveToUserMask
            | O::SetSystemMask
            | O::ResetSystemMask
            | O::MoveToPsrLower
            | O::ReturnFromInterruption
    )
}

/// The branch's whether hint: bits 33 and 34 are sptk, spnt, dptk, dpnt.
fn hints(instruction: &Instruction) -> Flags {
    let whether = instruction.slot >> 33 & 3;
    let mut flags = Flags::empty();
    flags.set(Flags::STATIC_HINT, whether < 2);
    flags.set(Flags::HINT_TAKEN, whether & 1 == 0);
    flags
}
