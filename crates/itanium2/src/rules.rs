//! Latencies between pairs of instructions that no register carries: Tables 4 and 5 of the paper.
//!
//! A rule says how many cycles after an instruction of one set one of another set may issue at the earliest, and
//! which counter shows the wait. An instruction may be in several of these sets, the ends of rules.

use crate::knowledge::Knowledge;
use crate::parameters::Cost;
use crate::pmu::stall::Stall;

macro_rules! ends {
    ($($end:ident = $what:literal;)*) => {
        /// One end of a rule: a set of instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum End { $(#[doc = $what] $end,)* }

        impl End {
            /// The instructions, as the paper's tables write them.
            pub fn what(self) -> &'static str {
                const WHAT: &[&str] = &[$($what),*];
                WHAT[self as usize]
            }
        }
    };
}

ends! {
    ToRsc = "mov ar.rsc=";
    ToBspstore = "mov ar.bspstore=";
    FromBspstore = "mov =ar.bspstore";
    FromBsp = "mov =ar.bsp";
    ToRnat = "mov ar.rnat=";
    ToNat = "mov ar.rnat=, ar.unat=";
    FromNat = "mov =ar.rnat, ar.unat";
    FromUnat = "mov =ar.unat";
    RseRegister = "any access to ar.rsc, ar.bspstore, ar.bsp, ar.rnat";
    Float = "any floating-point operation";
    FlushStack = "flushrs";
    LoadStack = "loadrs";
    ToUserMask = "sum, rum, mov psr.um=";
    ToSystemMask = "ssm, rsm, mov psr.l=";
    FromStatus = "mov =psr, psr.um";
    ToRegion = "mov pkr=, rr=";
    Serialize = "srlz";
    Ordering = "srlz, sync, fwb, mf, invala";
}

/// A latency between two ends.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The earlier instruction.
    pub from: End,
    /// The later one.
    pub to: End,
    /// Cycles between their issue, at least.
    pub cycles: u16,
    /// How the wait is booked.
    pub stall: Stall,
    /// Where it is from.
    pub source: &'static str,
}

const fn rule(from: End, to: End, cycles: u16, stall: Stall, source: &'static str) -> Rule {
    Rule {
        from,
        to,
        cycles,
        stall,
        source,
    }
}

impl Knowledge {
    fn has(self, rule: &Rule) -> bool {
        match self {
            Knowledge::Measured => true,
            Knowledge::RegisterStack => rule.source == TABLE_4,
            Knowledge::Documented => false,
        }
    }
}

/// The source of what is known of the register stack.
const TABLE_4: &str = "paper table 4";

/// The rules.
pub const RULES: &[Rule] = &[
    rule(End::ToRsc, End::RseRegister, 13, Stall::RseDependency, TABLE_4),
    rule(
        End::ToBspstore,
        End::RseRegister,
        6,
        Stall::RseDependency,
        TABLE_4,
    ),
    rule(End::FromBspstore, End::ToRnat, 8, Stall::SystemRegister, TABLE_4),
    rule(End::FromBsp, End::ToRnat, 8, Stall::SystemRegister, TABLE_4),
    rule(End::FromNat, End::ToNat, 6, Stall::SystemRegister, TABLE_4),
    rule(End::ToNat, End::FromNat, 6, Stall::SystemRegister, TABLE_4),
    rule(End::FromUnat, End::Float, 6, Stall::SystemRegister, TABLE_4),
    rule(End::ToBspstore, End::FlushStack, 12, Stall::RseOverflow, TABLE_4),
    rule(End::ToRsc, End::LoadStack, 12, Stall::RseLoad, TABLE_4),
    rule(End::ToBspstore, End::LoadStack, 12, Stall::RseLoad, TABLE_4),
    rule(End::FromBspstore, End::LoadStack, 2, Stall::RseLoad, TABLE_4),
    rule(End::LoadStack, End::LoadStack, 8, Stall::RseLoad, TABLE_4),
    rule(
        End::ToUserMask,
        End::Serialize,
        10,
        Stall::SystemRegister,
        "paper table 5",
    ),
    rule(
        End::ToSystemMask,
        End::Serialize,
        5,
        Stall::SystemRegister,
        "paper table 5",
    ),
    rule(
        End::FromStatus,
        End::Serialize,
        2,
        Stall::SystemRegister,
        "paper table 5",
    ),
    rule(
        End::ToRegion,
        End::Ordering,
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

impl Behind {
    /// The instructions, as the paper's table writes them.
    pub fn what(self) -> &'static str {
        match self {
            Behind::BankSwitch => "bsw",
            Behind::Return => "rfi",
            Behind::Flush => "srlz.i, interruptions",
            Behind::UserMask => "sum, rum, mov psr.um=",
        }
    }
}

/// The rules whose later and earlier instruction one with these ends is, as sets of indices into [`RULES`]; of those
/// that the processor has.
pub fn rules_of(ends: &[End], knowledge: Knowledge) -> (u32, u32) {
    let is_in = |end: End| ends.contains(&end);
    let mut sets = (0, 0);
    for (index, rule) in RULES.iter().enumerate().filter(|(_, rule)| knowledge.has(rule)) {
        sets.0 |= u32::from(is_in(rule.to)) << index;
        sets.1 |= u32::from(is_in(rule.from)) << index;
    }
    sets
}
