//! Bundles and templates: 16 bytes that hold three 41-bit slots and a 5-bit template (manual, volume 3, table 4-1).

use std::fmt;

/// An execution unit type a template gives to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Memory.
    M,
    /// Integer.
    I,
    /// Floating point.
    F,
    /// Branch.
    B,
    /// The first slot of a long instruction, which holds only immediate bits.
    L,
    /// The second slot of a long instruction.
    X,
}

/// The 5-bit template field of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Template(u8);

/// The units of templates 0x00, 0x02, 0x04, ...; an odd template is its even neighbour with a stop at the end.
/// The second column is the slot after which a template has a stop inside the bundle.
const TEMPLATES: [Option<([Unit; 3], Option<u8>)>; 16] = {
    use Unit::{B, F, I, L, M, X};
    [
        Some(([M, I, I], None)),
        Some(([M, I, I], Some(1))),
        Some(([M, L, X], None)),
        None,
        Some(([M, M, I], None)),
        Some(([M, M, I], Some(0))),
        Some(([M, F, I], None)),
        Some(([M, M, F], None)),
        Some(([M, I, B], None)),
        Some(([M, B, B], None)),
        None,
        Some(([B, B, B], None)),
        Some(([M, M, B], None)),
        None,
        Some(([M, F, B], None)),
        None,
    ]
};

impl Template {
    /// The template with the given 5-bit value; higher bits are dropped.
    pub const fn new(value: u8) -> Template {
        Template(value & 0x1f)
    }

    /// The 5-bit value.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// The unit of each slot, or `None` for a reserved template.
    pub const fn units(self) -> Option<[Unit; 3]> {
        match TEMPLATES[(self.0 >> 1) as usize] {
            Some((units, _)) => Some(units),
            None => None,
        }
    }

    /// Whether an instruction group ends after the slot (0 to 2). A reserved template has only its last stop.
    pub const fn stop_after(self, slot: u8) -> bool {
        if slot == 2 {
            return self.0 & 1 == 1;
        }
        match TEMPLATES[(self.0 >> 1) as usize] {
            Some((_, Some(inner))) => inner == slot,
            _ => false,
        }
    }

    /// Whether slots 1 and 2 hold one long instruction.
    pub const fn is_long(self) -> bool {
        self.0 >> 1 == 2
    }
}

/// The letters of the units, such as `MIB`; of a reserved template, its number without the stop bit.
impl fmt::Display for Template {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.units() {
            Some([first, second, third]) => write!(out, "{first:?}{second:?}{third:?}"),
            None => write!(out, "-{:x}-", self.0 >> 1),
        }
    }
}

/// The 16 bytes of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bundle(u128);

impl Bundle {
    /// The size of a bundle in bytes.
    pub const BYTES: u64 = 16;
    /// The bits of one slot.
    pub const SLOT_MASK: u64 = (1 << 41) - 1;

    /// A bundle from its bits, the template in the lowest five.
    pub const fn from_bits(bits: u128) -> Bundle {
        Bundle(bits)
    }

    /// A bundle from memory; instructions are little-endian whatever the data byte order is.
    pub const fn from_bytes(bytes: [u8; 16]) -> Bundle {
        Bundle(u128::from_le_bytes(bytes))
    }

    /// A bundle from a template and three slots; bits above the 41st of a slot are dropped.
    pub const fn new(template: Template, slots: [u64; 3]) -> Bundle {
        Bundle(
            template.0 as u128
                | ((slots[0] & Self::SLOT_MASK) as u128) << 5
                | ((slots[1] & Self::SLOT_MASK) as u128) << 46
                | ((slots[2] & Self::SLOT_MASK) as u128) << 87,
        )
    }

    /// The bits, the template in the lowest five.
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// The bytes as they are in memory.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// The template.
    pub const fn template(self) -> Template {
        Template::new(self.0 as u8)
    }

    /// The 41 bits of a slot (0 to 2).
    pub const fn slot(self, slot: u8) -> u64 {
        (self.0 >> (5 + 41 * slot as u32)) as u64 & Self::SLOT_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_template_survive_a_round_trip_through_bytes() {
        let slots = [0x123_4567_89ab, 0x1ff_ffff_ffff, 0x0aa_5555_aaaa];
        let bundle = Bundle::new(Template::new(0x1d), slots);
        let again = Bundle::from_bytes(bundle.to_bytes());
        assert_eq!(again.template().value(), 0x1d);
        assert_eq!([0, 1, 2].map(|slot| again.slot(slot)), slots);
    }

    #[test]
    fn stops_follow_the_template() {
        let stops = |value| [0, 1, 2].map(|slot| Template::new(value).stop_after(slot));
        assert_eq!(stops(0x00), [false, false, false]);
        assert_eq!(stops(0x03), [false, true, true]);
        assert_eq!(stops(0x0a), [true, false, false]);
        assert_eq!(stops(0x1d), [false, false, true]);
        assert_eq!(Template::new(0x06).units(), None);
    }
}
