//! Why nothing was issued in a cycle, and the tree of these causes.
//!
//! Every cycle without issue is booked to exactly one [`Stall`]. Where several would explain it, the one furthest down
//! the pipeline counts, as in the hardware's counters: flush, data cache, execution, register stack, front end.

use super::event::Event;

macro_rules! stalls {
    ($($variant:ident => $event:ident;)*) => {
        /// The cause of a bubble; earlier ones hide later ones.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Stall { $(#[doc = concat!("Counted as [`Event::", stringify!($event), "`].")] $variant,)* }

        impl Stall {
            /// All causes, the one that hides all others first.
            pub const ALL: &'static [Stall] = &[$(Stall::$variant),*];

            /// The event under which the cause is counted.
            pub fn event(self) -> Event {
                match self { $(Stall::$variant => Event::$event,)* }
            }
        }
    };
}

stalls! {
    FlushBranch => FlushBranch;
    FlushException => FlushException;
    Float => L1dFpuFloat;
    Walker => L1dWalker;
    Tlb => L1dTlb;
    BackPressure => L1dBackPressure;
    Recirculation => L1dRecirculation;
    StoreRecirculation => L1dStoreRecirculation;
    SystemQueue => L1dSystemQueue;
    NatConflict => L1dNatConflict;
    General => ExecutionGeneral;
    GeneralGeneral => ExecutionGeneralGeneral;
    FloatRegister => ExecutionFloat;
    Predicate => ExecutionPredicate;
    SystemRegister => ExecutionSystem;
    BankSwitch => RseBankSwitch;
    RseDependency => RseDependency;
    RseOverflow => RseOverflow;
    RseUnderflow => RseUnderflow;
    RseLoad => RseLoad;
    FrontEnd => BackEndBubbleFrontEnd;
}

impl Stall {
    /// How many causes there are.
    pub const COUNT: usize = Stall::ALL.len();
}

/// A row of the tree: its depth, its event, and the cause booked there itself.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// 0 for the root.
    pub depth: u8,
    /// The event.
    pub event: Event,
    /// The cause that is booked at this row; `None` where the row is only the sum of those below.
    pub own: Option<Stall>,
}

const fn sum(depth: u8, event: Event) -> Row {
    Row {
        depth,
        event,
        own: None,
    }
}

const fn leaf(depth: u8, event: Event, stall: Stall) -> Row {
    Row {
        depth,
        event,
        own: Some(stall),
    }
}

/// The tree of bubbles: Figure 5 of the paper with all leaves. A row's value is what is booked at it and below it.
pub const TREE: &[Row] = &[
    sum(0, Event::BackEndBubbleAll),
    sum(1, Event::FlushAll),
    leaf(2, Event::FlushBranch, Stall::FlushBranch),
    leaf(2, Event::FlushException, Stall::FlushException),
    sum(1, Event::L1dFpuAll),
    leaf(2, Event::L1dFpuFloat, Stall::Float),
    sum(2, Event::L1dAll),
    leaf(3, Event::L1dBackPressure, Stall::BackPressure),
    leaf(3, Event::L1dRecirculation, Stall::Recirculation),
    leaf(3, Event::L1dStoreRecirculation, Stall::StoreRecirculation),
    leaf(3, Event::L1dSystemQueue, Stall::SystemQueue),
    leaf(3, Event::L1dTlb, Stall::Tlb),
    leaf(3, Event::L1dWalker, Stall::Walker),
    leaf(3, Event::L1dNatConflict, Stall::NatConflict),
    sum(1, Event::ExecutionAll),
    leaf(2, Event::ExecutionGeneral, Stall::General),
    leaf(3, Event::ExecutionGeneralGeneral, Stall::GeneralGeneral),
    leaf(2, Event::ExecutionFloat, Stall::FloatRegister),
    leaf(2, Event::ExecutionPredicate, Stall::Predicate),
    leaf(2, Event::ExecutionSystem, Stall::SystemRegister),
    sum(1, Event::RseAll),
    leaf(2, Event::RseBankSwitch, Stall::BankSwitch),
    leaf(2, Event::RseDependency, Stall::RseDependency),
    leaf(2, Event::RseOverflow, Stall::RseOverflow),
    leaf(2, Event::RseUnderflow, Stall::RseUnderflow),
    leaf(2, Event::RseLoad, Stall::RseLoad),
    leaf(1, Event::BackEndBubbleFrontEnd, Stall::FrontEnd),
];

/// The value of every row of [`TREE`], from the cycles booked to each cause.
pub fn values(booked: &[u64; Stall::COUNT]) -> Vec<(Row, u64)> {
    TREE.iter()
        .enumerate()
        .map(|(index, row)| {
            let below = TREE[index + 1..]
                .iter()
                .take_while(|other| other.depth > row.depth);
            let total = std::iter::once(row)
                .chain(below)
                .filter_map(|row| row.own)
                .map(|stall| booked[stall as usize])
                .sum();
            (*row, total)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_in_the_tree_once_and_counts_at_its_event() {
        for stall in Stall::ALL {
            let rows: Vec<_> = TREE.iter().filter(|row| row.own == Some(*stall)).collect();
            assert_eq!(rows.len(), 1, "{stall:?}");
            assert_eq!(rows[0].event, stall.event());
        }
    }

    #[test]
    fn a_row_is_the_sum_of_what_is_booked_at_it_and_below_it() {
        let booked: [u64; Stall::COUNT] = std::array::from_fn(|index| 1 << index);
        let tree = values(&booked);
        assert_eq!(tree[0].1, (1 << Stall::COUNT) - 1);
        let general = tree.iter().find(|(row, _)| row.event == Event::ExecutionGeneral);
        let both = 1 << Stall::General as u8 | 1 << Stall::GeneralGeneral as u8;
        assert_eq!(general.map(|(_, value)| *value), Some(both));
    }
}
