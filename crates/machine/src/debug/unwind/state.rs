//! Where the registers of a procedure's caller are while an instruction of it is executed.
//!
//! Rules of the Itanium Software Conventions and Runtime Architecture Guide, section 11.4: the records of all regions
//! up to the instruction are applied in order; prologues nest, and an epilogue takes some of them back.

use std::collections::BTreeMap;

use super::descriptor::{Place, Record, Records};

/// What a procedure saves for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Saved {
    /// The return address.
    ReturnAddress,
    /// The previous function state, `ar.pfs`.
    FunctionState,
    /// The caller's stack pointer.
    StackPointer,
    /// The predicates.
    Predicates,
    /// `ar.unat`.
    NatCollection,
    /// `ar.lc`.
    LoopCount,
    /// `ar.fpsr`.
    FloatStatus,
    /// The NaT bits of what the prologue spills.
    PrimaryNat,
    /// `ar.bsp`.
    BackingStore,
    /// `ar.bspstore`.
    BackingStoreWrite,
    /// `ar.rnat`.
    RseNat,
    /// r4 to r7.
    General(u8),
    /// b1 to b5.
    Branch(u8),
    /// f2 to f5 and f16 to f31.
    Floating(u8),
}

/// In which order registers without a place of their own go to the general registers of a prologue.
const GENERAL_ORDER: [Saved; 4] = [
    Saved::ReturnAddress,
    Saved::FunctionState,
    Saved::StackPointer,
    Saved::Predicates,
];

/// How many states may be numbered or nested; tables of compilers stay far below.
const STATES_MAX: usize = 256;

/// A register's place, and from which slot of the procedure on it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Save {
    place: Option<Place>,
    from: u64,
}

/// What is known between two records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    saves: BTreeMap<Saved, Save>,
    /// Bytes by which the stack pointer has gone down, and from which slot on.
    frame: Option<(u64, u64)>,
    abi: Option<(u8, u8)>,
}

/// The places at one instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Those that have been saved; the others are where they were at the entry.
    pub places: BTreeMap<Saved, Place>,
    /// Bytes between the stack pointer and the caller's.
    pub frame_bytes: u64,
    /// The kind of frame if it is no procedure's.
    pub abi: Option<(u8, u8)>,
}

/// Works through the records up to an instruction.
struct Walk {
    target: u64,
    state: State,
    nested: Vec<State>,
    labelled: BTreeMap<u64, (State, Vec<State>)>,
    region_start: u64,
    region_slots: u64,
    spill_base: i64,
    spill_mask: Vec<u8>,
    spilled: Vec<Saved>,
    /// From which slot on the stack is the caller's, and how many prologues the region's end takes back.
    epilogue: Option<(u64, u64)>,
}

/// The rules at the instruction `slot` slots behind the procedure's first.
pub fn rules_at(descriptors: &[u8], slot: u64) -> Rules {
    let mut walk = Walk {
        target: slot,
        state: State::default(),
        nested: Vec::new(),
        labelled: BTreeMap::new(),
        region_start: 0,
        region_slots: 0,
        spill_base: 16,
        spill_mask: Vec::new(),
        spilled: Vec::new(),
        epilogue: None,
    };
    for record in Records::new(descriptors) {
        if matches!(record, Record::Region { .. }) && walk.is_past_target() {
            break;
        }
        walk.apply(record);
    }
    walk.place_spills();
    walk.rules()
}

impl Walk {
    /// Whether the next region begins behind the instruction.
    fn is_past_target(&self) -> bool {
        self.region_start.saturating_add(self.region_slots) > self.target
    }

    /// A time of a region as a slot of the procedure.
    fn slot(&self, slot: u64) -> u64 {
        match self.region_slots.checked_sub(1) {
            Some(last) => self.region_start.saturating_add(slot.min(last)),
            None => self.region_start.saturating_sub(1),
        }
    }

    fn save(&mut self, saved: Saved, place: Place, slot: Option<u64>) {
        let from = self.slot(slot.unwrap_or(u64::MAX));
        let known = self
            .state
            .saves
            .entry(saved)
            .or_insert(Save { place: None, from });
        // A time that was told before the place stays.
        if slot.is_some() || known.place.is_some() {
            known.from = from;
        }
        known.place = Some(place);
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Region {
                is_body,
                slots,
                saves,
            } => self.begin(is_body, slots, saves),
            Record::FixedFrame { slot, bytes } => self.state.frame = Some((bytes, self.slot(slot))),
            Record::When(saved, slot) => {
                let from = self.slot(slot);
                let save = self
                    .state
                    .saves
                    .entry(saved)
                    .or_insert(Save { place: None, from });
                save.from = from;
            }
            Record::At(saved, place, slot) => self.save(saved, place, slot),
            Record::Predicated => {}
            Record::SpillBase(base) => self.spill_base = base,
            Record::SpillMask(mask) => self.spill_mask = mask,
            Record::Spilled {
                floating,
                general,
                branch,
            } => {
                let floating =
                    bits(floating).map(|bit| Saved::Floating(if bit < 4 { 2 + bit } else { 12 + bit }));
                let general = bits(u32::from(general)).map(|bit| Saved::General(4 + bit));
                let branch = bits(u32::from(branch)).map(|bit| Saved::Branch(1 + bit));
                self.spilled.extend(floating.chain(general).chain(branch));
            }
            Record::Moved {
                general,
                branch,
                first,
            } => {
                let general = bits(u32::from(general)).map(|bit| Saved::General(4 + bit));
                let branch = bits(u32::from(branch)).map(|bit| Saved::Branch(1 + bit));
                for (saved, register) in general.chain(branch).zip(first..) {
                    self.save(saved, Place::General(register), None);
                }
            }
            Record::Abi(abi, context) => self.state.abi = Some((abi, context)),
            Record::Epilogue { slots, count } => {
                let end = self.region_start.saturating_add(self.region_slots);
                let start = end.saturating_sub(1).saturating_sub(slots);
                self.epilogue = Some((start, count.saturating_add(1)));
            }
            Record::LabelState(label) => {
                if self.labelled.len() < STATES_MAX {
                    self.labelled
                        .insert(label, (self.state.clone(), self.nested.clone()));
                }
            }
            Record::CopyState(label) => {
                if let Some((state, nested)) = self.labelled.get(&label) {
                    (self.state, self.nested) = (state.clone(), nested.clone());
                }
            }
        }
    }

    fn begin(&mut self, is_body: bool, slots: u64, saves: Option<(u8, u8)>) {
        self.place_spills();
        if let Some((_, count)) = self.epilogue.take() {
            for _ in 0..count {
                let Some(state) = self.nested.pop() else { break };
                self.state = state;
            }
        }
        self.region_start = self.region_start.saturating_add(self.region_slots);
        self.region_slots = slots;
        if is_body {
            return;
        }
        if self.nested.len() < STATES_MAX {
            self.nested.push(self.state.clone());
        }
        self.spill_base = 16;
        let (mask, first) = saves.unwrap_or((0, 0));
        let chosen = GENERAL_ORDER
            .iter()
            .zip([8, 4, 2, 1])
            .filter(|(_, bit)| mask & bit != 0);
        for ((&saved, _), register) in chosen.zip(first..) {
            self.save(saved, Place::General(register), None);
        }
    }

    /// Gives what the prologue has spilled its places, from the base of the spill area downwards, and its times.
    fn place_spills(&mut self) {
        let mut spilled = std::mem::take(&mut self.spilled);
        let mask = std::mem::take(&mut self.spill_mask);
        spilled.sort_unstable();
        for (kind, is_kind) in [
            (
                1,
                (|saved: &Saved| matches!(saved, Saved::Floating(_))) as fn(&Saved) -> bool,
            ),
            (3, |saved| matches!(saved, Saved::Branch(_))),
            (2, |saved| matches!(saved, Saved::General(_))),
        ] {
            let all: Vec<Saved> = spilled.iter().copied().filter(is_kind).collect();
            let mut times = (0..)
                .zip(&mask)
                .filter(|&(_, &of)| of == kind)
                .map(|(slot, _)| slot);
            let times: Vec<Option<u64>> = all.iter().map(|_| times.next()).collect();
            for (&saved, &slot) in all.iter().zip(&times).rev() {
                self.spill_base = self.spill_base.wrapping_sub(if kind == 1 { 16 } else { 8 });
                self.save(saved, Place::CallerStack(self.spill_base), slot);
            }
        }
    }

    fn rules(&self) -> Rules {
        let is_caller_stack = self.epilogue.is_some_and(|(start, _)| self.target > start);
        let mut rules = Rules {
            abi: self.state.abi,
            ..Rules::default()
        };
        for (&saved, save) in &self.state.saves {
            let place = match save.place {
                Some(place) if save.from < self.target => place,
                _ => continue,
            };
            // What lies below the caller's stack pointer is gone with the frame.
            let is_gone = match place {
                Place::CallerStack(distance) => distance <= 16,
                Place::Stack(_) => true,
                _ => saved == Saved::StackPointer,
            };
            if place != Place::Itself && !(is_caller_stack && is_gone) {
                rules.places.insert(saved, place);
            }
        }
        if let (Some((bytes, from)), false) = (self.state.frame, is_caller_stack)
            && from < self.target
        {
            rules.frame_bytes = bytes;
        }
        rules
    }
}

/// The numbers of the bits that are set.
fn bits(mask: u32) -> impl Iterator<Item = u8> {
    (0..32).filter(move |bit| mask >> bit & 1 != 0)
}
