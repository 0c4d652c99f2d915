//! Instructions that have a place of their own in a group.

use sidestep_ia64::encoding::DecodedSlot;

use super::Effects;

/// Where in its group an instruction has to stand; elsewhere the architecture leaves undefined what it does (manual,
/// volume 3, section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Position {
    /// First, in slot 0 or behind a stop there.
    First,
    /// Last: a stop follows.
    Last,
}

/// Which place an instruction should have and has not; `is_first` says whether its group begins with it.
pub fn misplaced(effects: &Effects, slot: &DecodedSlot, is_first: bool) -> Option<Position> {
    let position = effects.position?;
    let is_in_place = match position {
        Position::First => is_first && (slot.slot == 0 || slot.slot == 1 && slot.template.stop_after(0)),
        Position::Last => slot.stop,
    };
    (!is_in_place).then_some(position)
}
