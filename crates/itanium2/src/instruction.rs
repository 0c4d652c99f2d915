//! What the pipeline knows of an instruction before it runs: its class's row, applied to its registers and its slot.
//!
//! [`StaticInstruction::new`] reads it once, when a block is decoded, which keeps it.

use sidestep_ia64::encoding::{DecodedSlot, Instruction, Resource, Template, Unit};

use crate::classes::Class;
use crate::dispersal::Port;
use crate::flags::Flags;
use crate::operations::{Classified, classify};
use crate::parameters::{Cost, Parameters};
use crate::rules::{self, Behind};
use crate::scoreboard::{Operand, Producer, Use};

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
    /// How many bytes it refers to, as a power of two; 0 also for whole lines and for none.
    pub size_log2: u8,
    /// Whether a stop follows it.
    pub stop: bool,
    /// Whether a predicate other than p0 qualifies it.
    pub is_predicated: bool,
    /// Its bits and unit, which opcode matchers look at.
    pub opcode: (u64, Unit),
}

impl StaticInstruction {
    /// Reads an instruction and the slot of its bundle that it stands in.
    pub fn new(instruction: &Instruction, slot: &DecodedSlot, parameters: &Parameters) -> Self {
        let classified = classify(instruction);
        let (rules_to, rules_from) = rules::rules_of(classified.ends, parameters.knowledge);
        let class = classified.class;
        let flags = flags(&classified, instruction);
        let is_branch = flags.contains(Flags::BRANCH);
        let mut known = StaticInstruction {
            port: port(class, instruction, slot.slot, first_branch_slot(slot.template)),
            flags,
            behind: classified.behind,
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
            size_log2: size_log2(instruction),
            stop: slot.stop,
            is_predicated: instruction.predicate() != 0,
            opcode: (instruction.slot, instruction.unit),
        };
        if !flags.contains(Flags::NOP) {
            known.add_sources(class, instruction);
            known.add_destinations(class, instruction, parameters);
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

    fn add_sources(&mut self, class: Class, instruction: &Instruction) {
        for resource in instruction.sources().iter() {
            let is_qualifier = *resource == Resource::Predicate(instruction.predicate());
            let Some(operand) = Operand::of(*resource).filter(|_| !is_qualifier) else {
                continue;
            };
            let index = usize::from(self.source_count);
            if index < SOURCES_MAX {
                self.sources[index] = (operand, source_use(class, instruction, *resource, self.flags));
                self.source_count += 1;
            }
        }
    }

    fn add_destinations(&mut self, class: Class, instruction: &Instruction, parameters: &Parameters) {
        for resource in instruction.destinations().iter() {
            let Some(operand) = Operand::of(*resource) else {
                continue;
            };
            let (latency, producer) = production(class, instruction, *resource, parameters);
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

fn source_use(class: Class, instruction: &Instruction, resource: Resource, flags: Flags) -> Use {
    let is_memory = flags.intersects(Flags::LOAD | Flags::STORE | Flags::PREFETCH);
    match resource {
        Resource::General(register) if is_memory && register == instruction.r3() => Use::Address,
        Resource::General(_) if class.is_multimedia() => Use::Multimedia,
        Resource::Float(_) if flags.contains(Flags::STORE) => Use::FloatStore,
        Resource::Float(_) if class == Class::GetFloat => Use::FloatStore,
        Resource::Branch(_) | Resource::Application(_) if flags.contains(Flags::BRANCH) => Use::Branch,
        _ => Use::Alu,
    }
}

/// The latency of what an instruction writes to a register, and as what it bypasses.
fn production(
    class: Class,
    instruction: &Instruction,
    resource: Resource,
    parameters: &Parameters,
) -> (u64, Producer) {
    let updated = (parameters.cost(Cost::Alu), Producer::Alu);
    let result = class.row().produces(parameters).unwrap_or(updated);
    match (class, resource) {
        (Class::FloatCompare | Class::ToPredicates, _) => result,
        (_, Resource::Predicate(_)) => (parameters.cost(Cost::ComparePredicate), Producer::Compare),
        (Class::FloatLoad | Class::FloatLoadPair, Resource::General(_)) => updated,
        (Class::Load, Resource::General(register)) if register != instruction.r1() => updated,
        _ => result,
    }
}

/// How many bytes an instruction refers to, as a power of two.
fn size_log2(instruction: &Instruction) -> u8 {
    let access = instruction.operation.memory_access();
    let bytes = access.map_or(0, |access| access.bytes);
    bytes.next_power_of_two().trailing_zeros() as u8
}

/// The first slot of a template that has a B unit; 3 for none.
fn first_branch_slot(template: Template) -> u8 {
    let units = template.units().unwrap_or([Unit::M; 3]);
    units.iter().position(|unit| *unit == Unit::B).unwrap_or(3) as u8
}

/// The port that an instruction of a class asks for in its slot.
fn port(class: Class, instruction: &Instruction, slot: u8, first_branch_slot: u8) -> Port {
    let row = class.row();
    let is_hint = matches!(class, Class::Nop | Class::BranchPrediction);
    match instruction.unit {
        // Registers of the other unit: encodings that fault.
        Unit::M => row.memory.unwrap_or(Port::MemorySystem),
        Unit::I => row.integer.unwrap_or(Port::IntegerFirst),
        Unit::F => Port::Float,
        Unit::B if first_branch_slot < 2 => Port::BranchMultiple(slot),
        Unit::B if is_hint => Port::BranchHint,
        Unit::B => Port::BranchSingle,
        Unit::X | Unit::L if matches!(class, Class::Branch | Class::Call) => Port::LongBranch,
        Unit::X | Unit::L => Port::Long,
    }
}

/// What an instruction does beside its class: by its completers and its unit.
fn flags(classified: &Classified, instruction: &Instruction) -> Flags {
    let mut flags = classified.class.row().flags | classified.flags;
    if flags.contains(Flags::BRANCH) {
        flags |= hints(instruction);
    }
    flags.set(Flags::B_UNIT, instruction.unit == Unit::B);
    flags.set(
        Flags::M_UNIT,
        instruction.unit == Unit::M && !flags.contains(Flags::NOP),
    );
    flags
}

/// The branch's whether hint, of which bits 33 and 34 are sptk, spnt, dptk, dpnt, and its hint of how much is wanted
/// behind it, of which bit 12 is few, many.
fn hints(instruction: &Instruction) -> Flags {
    let whether = instruction.slot >> 33 & 3;
    let mut flags = Flags::empty();
    flags.set(Flags::STATIC_HINT, whether < 2);
    flags.set(Flags::HINT_TAKEN, whether & 1 == 0);
    flags.set(Flags::MANY, instruction.slot >> 12 & 1 != 0);
    flags
}
