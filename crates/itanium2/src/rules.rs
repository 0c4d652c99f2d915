//! Latencies between pairs of instructions that no register carries: Tables 4 and 5 of the paper.
//!
//! A rule says how many cycles after an instruction of one class one of another class may issue at the earliest, and
//! which counter shows the wait. Classes are sets of instructions; an instruction may be in several.

use sidestep_ia64::encoding::{IndirectFile, Instruction, Operation, Side, UnitClass};
use sidestep_ia64::registers::application::{BSP, BSPSTORE, RNAT, RSC, UNAT};

use crate::parameters::Cost;
use crate::stall::Stall;

/// A class of instructions in the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// `mov ar.rsc=`
    ToRsc,
    /// `mov ar.bspstore=`
    ToBspstore,
    /// `mov =ar.bspstore`
    FromBspstore,
    /// `mov =ar.bsp`
    FromBsp,
    /// `mov ar.rnat=`
    ToRnat,
    /// `mov ar.rnat=`, `mov ar.unat=`
    ToNat,
    /// `mov =ar.rnat`, `mov =ar.unat`
    FromNat,
    /// `mov =ar.unat`
    FromUnat,
    /// Any access to ar.rsc, ar.bspstore, ar.bsp or ar.rnat.
    RseRegister,
    /// Any floating-point operation.
    Float,
    /// `flushrs`
    FlushStack,
    /// `loadrs`
    LoadStack,
    /// `sum`, `rum`, `mov psr.um=`
    ToUserMask,
    /// `ssm`, `rsm`, `mov psr.l=`
    ToSystemMask,
    /// `mov =psr`, `mov =psr.um`
    FromStatus,
    /// `mov pkr=`, `mov rr=`
    ToRegion,
    /// `srlz`
    Serialize,
    /// `srlz`, `sync`, `fwb`, `mf`, `invala`
    Ordering,
}

/// A latency between two classes.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The earlier instruction.
    pub from: Class,
    /// The later one.
    pub to: Class,
    /// Cycles between their issue, at least.
    pub cycles: u16,
    /// How the wait is booked.
    pub stall: Stall,
    /// Where it is from.
    pub source: &'static str,
}

const fn rule(from: Class, to: Class, cycles: u16, stall: Stall, source: &'static str) -> Rule {
    Rule {
        from,
        to,
        cycles,
        stall,
        source,
    }
}

/// The rules.
pub const RULES: &[Rule] = &[
    rule(
        Class::ToRsc,
        Class::RseRegister,
        13,
        Stall::RseDependency,
        "paper table 4",
    ),
    rule(
        Class::ToBspstore,
        Class::RseRegister,
        6,
        Stall::RseDependency,
        "paper table 4",
    ),
    rule(
        Class::FromBspstore,
        Class::ToRnat,
        8,
        Stall::SystemRegister,
        "paper table 4",
    ),
    rule(
        Class::FromBsp,
        Class::ToRnat,
        8,
        Stall::SystemRegister,
        "paper table 4",
    ),
    rule(
        Class::FromNat,
        Class::ToNat,
        6,
        Stall::SystemRegister,
        "paper table 4",
    ),
    rule(
        Class::ToNat,
        Class::FromNat,
        6,
        Stall::SystemRegister,
        "paper table 4",
    ),
    rule(
        Class::FromUnat,
        Class::Float,
        6,
        Stall::SystemRegister,
        "paper table 4",
    ),
    rule(
        Class::ToBspstore,
        Class::FlushStack,
        12,
        Stall::RseOverflow,
        "paper table 4",
    ),
    rule(
        Class::ToRsc,
        Class::LoadStack,
        12,
        Stall::RseLoad,
        "paper table 4",
    ),
    rule(
        Class::ToBspstore,
        Class::LoadStack,
        12,
        Stall::RseLoad,
        "paper table 4",
    ),
    rule(
        Class::FromBspstore,
        Class::LoadStack,
        2,
        Stall::RseLoad,
        "paper table 4",
    ),
    rule(
        Class::LoadStack,
        Class::LoadStack,
        8,
        Stall::RseLoad,
        "paper table 4",
    ),
    rule(
        Class::ToUserMask,
        Class::Serialize,
        10,
        Stall::SystemRegister,
        "paper table 5",
    ),
    rule(
        Class::ToSystemMask,
        Class::Serialize,
        5,
        Stall::SystemRegister,
        "paper table 5",
    ),
    rule(
        Class::FromStatus,
        Class::Serialize,
        2,
        Stall::SystemRegister,
        "paper table 5",
    ),
    rule(
        Class::ToRegion,
        Class::Ordering,
        14,
        Stall::SystemRegister,
        "paper table 5",
    ),
];

/// A wait of whatever follows an instruction: its parts one after the other.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// Bubbles.
    Bubbles(u16),
    /// As many bubbles as a cost says.
    Of(Cost),
}

/// What every instruction waits for behind these (Table 5, "to ANY"): the bubbles in order.
pub const BEHIND: &[(Behind, &[(Stall, Length)])] = &[
    (Behind::BankSwitch, &[(Stall::BankSwitch, Length::Bubbles(5))]),
    (
        Behind::Return,
        &[
            (Stall::FlushBranch, Length::Bubbles(1)),
            (Stall::FlushException, Length::Of(Cost::ExceptionFlush)),
            (Stall::FrontEnd, Length::Of(Cost::FrontEndRefill)),
        ],
    ),
    (
        Behind::Flush,
        &[
            (Stall::FlushException, Length::Of(Cost::ExceptionFlush)),
            (Stall::FrontEnd, Length::Of(Cost::FrontEndRefill)),
        ],
    ),
    (Behind::UserMask, &[(Stall::SystemRegister, Length::Bubbles(4))]),
];

/// The instructions behind which everything waits; the order is that of [`BEHIND`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Behind {
    /// `bsw`
    BankSwitch,
    /// `rfi`
    Return,
    /// `srlz.i`, and every interruption.
    Flush,
    /// `sum`, `rum`, `mov psr.um=`
    UserMask,
}

/// The rules whose later and earlier instruction it is, as sets of indices into [`RULES`].
pub fn rules_of(instruction: &Instruction) -> (u32, u32) {
    let classes = classes(instruction);
    let is_in = |class: Class| classes >> class as u32 & 1 != 0;
    let mut sets = (0, 0);
    for (index, rule) in RULES.iter().enumerate() {
        sets.0 |= u32::from(is_in(rule.to)) << index;
        sets.1 |= u32::from(is_in(rule.from)) << index;
    }
    sets
}

/// What everything behind the instruction waits for.
pub fn behind(instruction: &Instruction) -> Option<Behind> {
    match instruction.operation {
        Operation::BankSwitch { .. } => Some(Behind::BankSwitch),
        Operation::ReturnFromInterruption => Some(Behind::Return),
        Operation::Serialize {
            side: Side::Instruction,
        } => Some(Behind::Flush),
        Operation::SetUserMask | Operation::ResetUserMask | Operation::MoveToUserMask => {
            Some(Behind::UserMask)
        }
        _ => None,
    }
}

fn classes(instruction: &Instruction) -> u32 {
    use Class::*;
    let set = |classes: &[Class]| classes.iter().fold(0, |set, class| set | 1 << *class as u32);
    match instruction.operation {
        Operation::MoveToApplication { .. } => match instruction.ar3() {
            RSC => set(&[ToRsc, RseRegister]),
            BSPSTORE => set(&[ToBspstore, RseRegister]),
            RNAT => set(&[ToRnat, ToNat, RseRegister]),
            UNAT => set(&[ToNat]),
            _ => 0,
        },
        Operation::MoveFromApplication => match instruction.ar3() {
            RSC => set(&[RseRegister]),
            BSPSTORE => set(&[FromBspstore, RseRegister]),
            BSP => set(&[FromBsp, RseRegister]),
            RNAT => set(&[FromNat, RseRegister]),
            UNAT => set(&[FromNat, FromUnat]),
            _ => 0,
        },
        Operation::FlushRegisterStack => set(&[FlushStack]),
        Operation::LoadRegisterStack => set(&[LoadStack]),
        Operation::SetUserMask | Operation::ResetUserMask | Operation::MoveToUserMask => set(&[ToUserMask]),
        Operation::SetSystemMask | Operation::ResetSystemMask | Operation::MoveToPsrLower => {
            set(&[ToSystemMask])
        }
        Operation::MoveFromPsr | Operation::MoveFromUserMask => set(&[FromStatus]),
        Operation::MoveToIndirect {
            file: IndirectFile::Region | IndirectFile::ProtectionKey,
        } => set(&[ToRegion]),
        Operation::Serialize { .. } => set(&[Serialize, Ordering]),
        Operation::SynchronizeInstructionCache
        | Operation::FlushWriteBuffers
        | Operation::MemoryFence
        | Operation::MemoryFenceAcceptance
        | Operation::InvalidateAlat => set(&[Ordering]),
        Operation::Nop => 0,
        _ if instruction.unit_class() == UnitClass::F => set(&[Float]),
        _ => 0,
    }
}
