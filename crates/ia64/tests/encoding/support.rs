//! What the encoding tests share: reproducible random bits, and slots that reach every row of the opcode table.

use sidestep_ia64::encoding::{Bundle, Form, Template, UnitClass};

/// A reproducible generator of random bits (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below the bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// Three random slots.
    pub fn slots(&mut self) -> [u64; 3] {
        [0; 3].map(|_: u64| self.bits())
    }

    /// A template that is not reserved.
    pub fn template(&mut self) -> Template {
        loop {
            let template = Template::new(self.bits() as u8);
            if template.units().is_some() {
                return template;
            }
        }
    }
}

/// The templates and slots where a form of the class can be.
fn places(class: UnitClass) -> &'static [(u8, usize)] {
    match class {
        UnitClass::A => &[(0x00, 0), (0x08, 1), (0x00, 2)],
        UnitClass::I => &[(0x00, 1), (0x02, 2)],
        UnitClass::M => &[(0x00, 0), (0x0a, 1)],
        UnitClass::B => &[(0x16, 0), (0x16, 1), (0x16, 2)],
        UnitClass::F => &[(0x0c, 1), (0x0e, 2)],
        UnitClass::LX => &[(0x04, 2)],
    }
}

/// A slot of a form with random bits everywhere else, of which some operand fields have edge values or the value
/// of another operand: what decides between a form and its aliases.
pub fn slot_of(form: &Form, random: &mut Random) -> u64 {
    let mut slot = random.bits();
    if random.below(4) == 0 {
        slot &= !0x3f;
    }
    for operand in form.operands {
        let fields = operand.description().fields;
        let Some(first) = fields.first() else { continue };
        let mask = operand.mask();
        match random.below(10) {
            0 => slot &= !mask,
            1 => slot |= mask,
            2 => slot = slot & !mask | 1 << first.shift,
            3 => {
                let other = form.operands[random.below(form.operands.len() as u64) as usize];
                let value = other.extract(slot, 0) as u64 & ((1 << first.bits) - 1);
                slot = slot & !mask | value << first.shift;
            }
            4 => {
                // A length that reaches from some position to the end of the register, or nearly.
                let other = form.operands[random.below(form.operands.len() as u64) as usize];
                let value = 63 - (other.extract(slot, 0) as u64 & 0x3f);
                slot = slot & !mask | (value & ((1 << first.bits) - 1)) << first.shift;
            }
            _ => {}
        }
    }
    slot & !form.mask | form.value
}

/// A bundle with a slot of the form, the other slots and the stops random.
pub fn bundle_of(form: &Form, random: &mut Random) -> Bundle {
    let places = places(form.class);
    let (template, place) = places[random.below(places.len() as u64) as usize];
    let mut slots = random.slots();
    slots[place] = slot_of(form, random);
    Bundle::new(Template::new(template | random.below(2) as u8), slots)
}
