//! The registers an instruction reads and writes, for dependency checks and the timing model.
//!
//! Most follow from the operands of the instruction's form: those before the equals sign are written, the others
//! read. What an instruction touches without naming it is a column of the table of operations. Registers that never
//! change (`r0`, `f0`, `f1`, `p0`) are left out.

use std::ops::Deref;

use super::completers::*;
use super::effects::Effects;
use super::instruction::Instruction;
use super::operand::Operand;
use super::operation::Operation;
use crate::operations::operations;
use crate::registers::application::{BSP, BSPSTORE, EC, FPSR, LC, PFS, RSC, UNAT};
use crate::registers::system::control::{IFA, IFS, IIP, IPSR, ITIR, PTA};
use Resource::{Application, Control, FrameMarker, Indirect, Predicate, ProcessorStatus};

/// Something an instruction reads or writes. Numbers are as encoded: stacked and rotating registers are not
/// renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// A general register with its NaT bit.
    General(u8),
    /// A floating-point register.
    Float(u8),
    /// A predicate register.
    Predicate(u8),
    /// All predicate registers at once.
    Predicates,
    /// Predicate registers 16 to 63.
    RotatingPredicates,
    /// A branch register.
    Branch(u8),
    /// An application register.
    Application(u8),
    /// A control register.
    Control(u8),
    /// A register file indexed by a general register.
    Indirect(IndirectFile),
    /// The current frame marker with the rename bases.
    FrameMarker,
    /// The processor status register, with the user mask.
    ProcessorStatus,
}

impl Resource {
    /// Whether the resource always has the same value, so that reading it depends on nothing.
    fn is_constant(self) -> bool {
        matches!(
            self,
            Resource::General(0) | Resource::Float(0 | 1) | Resource::Predicate(0)
        )
    }
}

const LIST_MAX: usize = 8;

/// A short list of resources, held in place.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    items: [Resource; LIST_MAX],
    length: u8,
}

impl Resources {
    const EMPTY: Resources = Resources {
        items: [Resource::FrameMarker; LIST_MAX],
        length: 0,
    };

    fn add(&mut self, resource: Resource) {
        if !resource.is_constant() && !self.contains(&resource) {
            self.items[self.length as usize] = resource;
            self.length += 1;
        }
    }
}

impl Deref for Resources {
    type Target = [Resource];

    fn deref(&self) -> &[Resource] {
        &self.items[..self.length as usize]
    }
}

impl Instruction {
    /// What the instruction reads, its qualifying predicate first.
    pub fn sources(&self) -> Resources {
        let form = self.form();
        let mut list = Resources::EMPTY;
        if form.predicated {
            list.add(Resource::Predicate(self.qp()));
        }
        for (index, operand) in form.operands.iter().enumerate() {
            // The address of a store is written before the equals sign, but it is read.
            if index >= form.outputs || is_indexed(*operand) {
                self.add_read(&mut list, *operand);
            }
        }
        for resource in implicit(self).0 {
            list.add(*resource);
        }
        list
    }

    /// What the instruction writes when its qualifying predicate is 1; unconditional compares write also when it
    /// is 0.
    pub fn destinations(&self) -> Resources {
        let form = self.form();
        let mut list = Resources::EMPTY;
        for operand in &form.operands[..form.outputs] {
            if let Some(resource) = self.named(*operand) {
                list.add(resource);
            }
        }
        if self.base_update() != BaseUpdate::None {
            list.add(Resource::General(self.r3()));
        }
        for resource in implicit(self).1 {
            list.add(*resource);
        }
        list
    }

    /// The general register that the instruction names as its target, r0 included: writing it is an illegal
    /// operation, not a write that has no effect.
    pub fn general_target(&self) -> Option<u8> {
        self.form().has_general_target.then(|| self.r1())
    }

    fn add_read(&self, list: &mut Resources, operand: Operand) {
        if self.effects().contains(Effects::BY_NAME) {
            return;
        }
        if is_indexed(operand) {
            list.add(Resource::General(self.r3()));
        }
        // A memory operand or a file being written is not read itself.
        let written = is_indexed(operand) && matches!(self.operation, Operation::MoveToIndirect { .. });
        if let Some(resource) = self.named(operand).filter(|_| !written) {
            list.add(resource);
        }
    }

    /// The resource an operand names; `None` for memory and immediates.
    fn named(&self, operand: Operand) -> Option<Resource> {
        Some(match operand {
            Operand::R1 => Resource::General(self.r1()),
            Operand::R2 => Resource::General(self.r2()),
            Operand::R3 => Resource::General(self.r3()),
            Operand::R3Short => Resource::General(self.r3_short()),
            Operand::F1 => Resource::Float(self.f1()),
            Operand::F2 => Resource::Float(self.f2()),
            Operand::F3 => Resource::Float(self.f3()),
            Operand::F4 => Resource::Float(self.f4()),
            Operand::P1 => Resource::Predicate(self.p1()),
            Operand::P2 => Resource::Predicate(self.p2()),
            Operand::B1 => Resource::Branch(self.b1()),
            Operand::B2 => Resource::Branch(self.b2()),
            Operand::Ar3 => Resource::Application(self.ar3()),
            Operand::Cr3 => Resource::Control(self.cr3()),
            Operand::ArCsd | Operand::ArCcv | Operand::ArPfs => {
                Resource::Application(operand.extract(0, 0) as u8)
            }
            Operand::Pr => Resource::Predicates,
            Operand::PrRot => Resource::RotatingPredicates,
            Operand::Psr | Operand::PsrLower | Operand::PsrUserMask => Resource::ProcessorStatus,
            Operand::Cpuid => Resource::Indirect(IndirectFile::ProcessorIdentification),
            Operand::Dbr => Resource::Indirect(IndirectFile::DataBreakpoint),
            Operand::Ibr => Resource::Indirect(IndirectFile::InstructionBreakpoint),
            Operand::Msr => Resource::Indirect(IndirectFile::ModelSpecific),
            Operand::Pkr => Resource::Indirect(IndirectFile::ProtectionKey),
            Operand::Pmc => Resource::Indirect(IndirectFile::MonitorConfiguration),
            Operand::Pmd => Resource::Indirect(IndirectFile::MonitorData),
            Operand::Dahr | Operand::DahrIndirect => Resource::Indirect(IndirectFile::DataAccessHint),
            Operand::Rr => Resource::Indirect(IndirectFile::Region),
            _ => return None,
        })
    }
}

/// Whether the operand is addressed by the value of `r3`.
fn is_indexed(operand: Operand) -> bool {
    matches!(
        operand.description().notation,
        super::operand::Notation::Indirect(_)
    )
}

/// What an instruction reads, and what it writes, without naming it.
type Implicit = (&'static [Resource], &'static [Resource]);

const NOTHING: Implicit = (&[], &[]);
const STATUS: Implicit = (&[ProcessorStatus], &[ProcessorStatus]);
const MARKER: Implicit = (&[FrameMarker], &[FrameMarker]);
const SPILLS: Implicit = (&[Application(RSC)], &[Application(BSPSTORE)]);
const COVERS: Implicit = (&[FrameMarker], &[FrameMarker, Control(IFS), Application(BSP)]);
const CALLS: Implicit = (
    &[FrameMarker, Application(EC)],
    &[FrameMarker, Application(PFS), Application(BSP)],
);
const RETURNS: Implicit = (
    &[Application(PFS)],
    &[FrameMarker, Application(EC), Application(BSP), ProcessorStatus],
);
const RETURNS_FROM_INTERRUPTION: Implicit = (
    &[Control(IPSR), Control(IIP), Control(IFS)],
    &[ProcessorStatus, FrameMarker],
);
const ENTERS: Implicit = (&[Application(PFS), ProcessorStatus], &[ProcessorStatus]);
const INSERTS: Implicit = (&[Control(IFA), Control(ITIR)], &[]);
const HASHES: Implicit = (&[Control(PTA), Indirect(IndirectFile::Region)], &[]);
const READS_FPSR: Implicit = (&[Application(FPSR)], &[]);
const UPDATES_FPSR: Implicit = (&[Application(FPSR)], &[Application(FPSR)]);

const fn load(kind: LoadKind) -> Implicit {
    match kind {
        LoadKind::Fill => (&[Application(UNAT)], &[]),
        LoadKind::Normal
        | LoadKind::Speculative
        | LoadKind::Advanced
        | LoadKind::SpeculativeAdvanced
        | LoadKind::Bias
        | LoadKind::Acquire
        | LoadKind::CheckClear
        | LoadKind::CheckKeep
        | LoadKind::CheckClearAcquire => NOTHING,
    }
}

const fn store(kind: StoreKind) -> Implicit {
    match kind {
        StoreKind::Spill => (&[], &[Application(UNAT)]),
        StoreKind::Normal | StoreKind::Release => NOTHING,
    }
}

const fn to_application(instruction: &Instruction) -> Implicit {
    match instruction.ar3() {
        BSPSTORE => (&[], &[Application(BSP)]),
        _ => NOTHING,
    }
}

const fn branch(kind: BranchKind) -> Implicit {
    match kind {
        BranchKind::Conditional => NOTHING,
        BranchKind::CountedLoop => (&[Application(LC)], &[Application(LC)]),
        BranchKind::WhileExit | BranchKind::WhileTop => (
            &[Application(EC), FrameMarker],
            &[Application(EC), FrameMarker, Predicate(63)],
        ),
        BranchKind::CountedExit | BranchKind::CountedTop => (
            &[Application(LC), Application(EC), FrameMarker],
            &[Application(LC), Application(EC), FrameMarker, Predicate(63)],
        ),
    }
}

macro_rules! implicit_column {
    ($instruction:ident; $(
        $(#[$comment:meta])*
        $name:ident $({ $($completer:ident: $kind:ty = $about:literal,)+ })?
            => $memory:expr, $effects:expr, $implicit:expr, $handler:expr;
    )+) => {
        /// What an instruction reads and writes without naming it.
        #[allow(unused_variables, reason = "most completers do not decide it")]
        pub(super) fn implicit($instruction: &Instruction) -> Implicit {
            match $instruction.operation {
                $(Operation::$name $({ $($completer),+ })? => $implicit,)+
            }
        }
    };
}

operations!(implicit_column);
