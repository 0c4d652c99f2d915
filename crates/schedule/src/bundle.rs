//! Templates and slots: what issues in one cycle, as bundles that the dispersal rules send off together.
//!
//! A group begins at a bundle's start, or behind the stop in the middle of an `M;;MI` bundle, whose first slot then
//! holds an instruction behind which issue splits, such as `srlz.d`. It ends with a bundle, or behind such an
//! instruction.

use std::collections::HashMap;

use sidestep_ia64::encoding::{Bundle, Form, Instruction, Template, Unit};
use sidestep_itanium2::Parameters;
use sidestep_itanium2::dispersal::{Port, Window};
use sidestep_itanium2::flags::Flags;

use crate::block::Item;

/// Templates without a stop inside, by their even value, in the order in which they are tried.
const TEMPLATES: [u8; 10] = [0x08, 0x00, 0x04, 0x0c, 0x0e, 0x10, 0x18, 0x1c, 0x12, 0x16];
/// The template with a stop behind its first slot.
const STOP_BEHIND_FIRST: u8 = 0x0a;
/// Bundles of a group at most.
const WINDOW: usize = 2;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A `nop`.
    Nop,
    /// The item of this number.
    Item(usize),
    /// The first half of the long instruction behind it.
    Half,
}

/// A bundle with items in its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The template, without the stop at its end.
    pub template: u8,
    /// Whether a group ends with it.
    pub stop: bool,
    /// Its slots.
    pub slots: [Content; 3],
}

/// Where a group begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// With a bundle.
    Bundle,
    /// Behind the stop of an `M;;MI` bundle.
    Middle,
}

/// A group in bundles: those it begins, and whether it ends behind the first slot of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The slots behind the stop, for a group that begins there.
    rest: Option<[Content; 2]>,
    bundles: Vec<Placed>,
    ends_in_middle: bool,
}

/// What decides where an item can stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature(u16);

/// How items stand in slots: their ports by unit, and what issue does around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needs {
    memory: Option<Port>,
    integer: Option<Port>,
    float: bool,
    long: Option<Port>,
    branch: bool,
    hint: bool,
    /// It has to be the first of its group.
    first: bool,
    /// It has to be in the last slot of a bundle: branches that count.
    last_slot: bool,
    /// It has to be in the first slot of a bundle: checks that are returned to.
    first_slot: bool,
    /// Issue splits behind it.
    splits: bool,
    /// `mov =ar.bsp`, `fwb`.
    from_bsp: bool,
    flush_buffers: bool,
    /// In an M slot it counts as an instruction of that unit.
    counts: bool,
}

/// Where a group begins, and how many items of each kind it has.
type Question = (Start, Vec<(usize, u64)>);

/// Puts groups into bundles, and remembers how.
pub struct Packer<'a> {
    items: &'a [Item],
    needs: Vec<Needs>,
    signatures: Vec<Signature>,
    kinds: Vec<Needs>,
    known: HashMap<Question, Option<Packed>>,
}

impl<'a> Packer<'a> {
    /// A packer of items.
    pub fn new(items: &'a [Item], parameters: &Parameters) -> Packer<'a> {
        let needs: Vec<Needs> = items.iter().map(|item| Needs::of(item, parameters)).collect();
        let mut kinds: Vec<Needs> = Vec::new();
        let signatures = needs
            .iter()
            .map(|need| {
                let place = kinds.iter().position(|kind| kind == need).unwrap_or_else(|| {
                    kinds.push(*need);
                    kinds.len() - 1
                });
                Signature(place as u16)
            })
            .collect();
        Packer {
            items,
            needs,
            signatures,
            kinds,
            known: HashMap::new(),
        }
    }

    /// How many signatures the items have.
    pub fn signature_count(&self) -> usize {
        self.kinds.len()
    }

    /// The signature of an item, from 0.
    pub fn signature(&self, item: usize) -> usize {
        usize::from(self.signatures[item].0)
    }

    /// Whether as many items of each signature, in any order, can issue in one cycle.
    pub fn fits(&self, counts: &[usize]) -> bool {
        let mut needs = Vec::new();
        for (kind, count) in counts.iter().enumerate() {
            needs.extend(std::iter::repeat_n(self.kinds[kind], *count));
        }
        let order = vec![0; needs.len()];
        [Start::Bundle, Start::Middle]
            .iter()
            .any(|start| Search::new(&needs, &order, *start).run().is_some())
    }

    /// Whether issue splits behind the item, in an M slot, so that the next group begins in its bundle.
    pub fn splits(&self, item: usize) -> bool {
        self.needs[item].splits && self.needs[item].memory.is_some()
    }

    /// A group in bundles. `before` says of two items whether the first has to stand before the second.
    pub fn pack(
        &mut self,
        group: &[usize],
        start: Start,
        before: impl Fn(usize, usize) -> bool,
    ) -> Option<Packed> {
        if group
            .iter()
            .map(|item| usize::from(self.items[*item].slots()))
            .sum::<usize>()
            > 3 * WINDOW
        {
            return None;
        }
        let order: Vec<u64> = group
            .iter()
            .map(|item| {
                let earlier = group
                    .iter()
                    .enumerate()
                    .filter(|(_, other)| before(**other, *item));
                earlier.fold(0, |set, (place, _)| set | 1 << place)
            })
            .collect();
        let key: Vec<(usize, u64)> = group
            .iter()
            .zip(&order)
            .map(|(item, order)| (self.signature(*item), *order))
            .collect();
        let needs: Vec<Needs> = group.iter().map(|item| self.needs[*item]).collect();
        let packed = self
            .known
            .entry((start, key))
            .or_insert_with(|| Search::new(&needs, &order, start).run())
            .clone();
        // What was remembered names items by their place in the group.
        packed.map(|mut packed| {
            let name = |content: &mut Content| {
                if let Content::Item(place) = content {
                    *place = group[*place];
                }
            };
            packed.rest.iter_mut().flatten().for_each(name);
            for bundle in &mut packed.bundles {
                bundle.slots.iter_mut().for_each(name);
            }
            packed
        })
    }

    /// All groups of a schedule in bundles, in order.
    ///
    /// # Errors
    /// The first group for which there are none.
    pub fn layout(
        &mut self,
        groups: &[Vec<usize>],
        before: impl Fn(usize, usize) -> bool + Copy,
    ) -> Result<Vec<Placed>, usize> {
        let mut bundles: Vec<Placed> = Vec::new();
        let mut start = Start::Bundle;
        for (index, group) in groups.iter().enumerate() {
            let packed = self.pack(group, start, before).ok_or(index)?;
            if let (Some(rest), Some(last)) = (packed.rest, bundles.last_mut()) {
                last.slots[1..].copy_from_slice(&rest);
                last.stop = packed.bundles.is_empty();
            }
            bundles.extend(packed.bundles);
            start = match packed.ends_in_middle {
                true => Start::Middle,
                false => Start::Bundle,
            };
        }
        // Behind the last one nothing follows.
        if let (Start::Middle, Some(last)) = (start, bundles.last_mut()) {
            last.stop = true;
        }
        Ok(bundles)
    }
}

impl Needs {
    fn of(item: &Item, parameters: &Parameters) -> Needs {
        let template = Template::new(0x00);
        let port = |unit, slot| {
            item.in_slot(unit, slot, template, parameters)
                .map(|(_, port)| port)
        };
        let unit = item.instruction.unit;
        let flags = item.flags();
        Needs {
            memory: port(Unit::M, 0),
            integer: port(Unit::I, 1),
            float: unit == Unit::F,
            long: (unit == Unit::X).then_some(item.known.port),
            branch: unit == Unit::B,
            hint: item.known.port == Port::BranchHint,
            first: item.begins_group(),
            last_slot: item.ends_bundle(),
            first_slot: item.begins_bundle(),
            splits: flags.contains(Flags::SPLIT_AFTER),
            from_bsp: flags.contains(Flags::FROM_BSP),
            flush_buffers: flags.contains(Flags::FLUSH_BUFFERS),
            counts: !flags.contains(Flags::NOP),
        }
    }

    /// The port that it asks for in a slot; `None` if it cannot be there.
    fn port(&self, unit: Unit, slot: usize, first_branch: usize) -> Option<Port> {
        match unit {
            Unit::M => self.memory,
            Unit::I => self.integer,
            Unit::F => self.float.then_some(Port::Float),
            Unit::B => self.branch.then_some(branch_port(slot, first_branch, self.hint)),
            Unit::L => self.long,
            Unit::X => None,
        }
    }
}

/// The port of a B slot.
fn branch_port(slot: usize, first_branch: usize, is_hint: bool) -> Port {
    match (first_branch < 2, is_hint) {
        (true, _) => Port::BranchMultiple(slot as u8),
        (false, true) => Port::BranchHint,
        (false, false) => Port::BranchSingle,
    }
}

/// What has been placed so far.
#[derive(Clone)]
struct Partial {
    window: Window,
    placed: u64,
    /// Slots filled in this group, and those of them with items.
    filled: usize,
    taken: usize,
    after_bsp: bool,
    after_memory: bool,
    bundles: Vec<Placed>,
    rest: Option<[Content; 2]>,
}

/// The search for the bundles of one group: the fewest first, slot by slot.
struct Search<'a> {
    needs: &'a [Needs],
    /// The items that stand before each, as a set.
    order: &'a [u64],
    start: Start,
    /// For each item the earlier ones that could stand in its place: only the first of such that is left is tried.
    alike: Vec<u64>,
    /// Slots that the items fill.
    width: usize,
}

impl<'a> Search<'a> {
    fn new(needs: &'a [Needs], order: &'a [u64], start: Start) -> Search<'a> {
        let is_free = |item: usize| order[item] == 0 && order.iter().all(|before| before >> item & 1 == 0);
        let alike = (0..needs.len())
            .map(|item| {
                let same = |other: &usize| needs[*other] == needs[item] && is_free(*other) && is_free(item);
                (0..item).filter(same).fold(0, |set, other| set | 1 << other)
            })
            .collect();
        let width = needs
            .iter()
            .map(|needs| 1 + usize::from(needs.long.is_some()))
            .sum();
        Search {
            needs,
            order,
            start,
            alike,
            width,
        }
    }

    fn run(&self) -> Option<Packed> {
        let empty = Partial {
            window: Window::default(),
            placed: 0,
            filled: 0,
            taken: 0,
            after_bsp: false,
            after_memory: false,
            bundles: Vec::new(),
            rest: None,
        };
        let fresh = match self.start {
            Start::Bundle => 1..=WINDOW,
            Start::Middle => 0..=WINDOW - 1,
        };
        fresh.into_iter().find_map(|count| {
            let mut partial = empty.clone();
            if self.start == Start::Middle {
                partial.window.begin_bundle();
                partial.rest = Some([Content::Nop; 2]);
                return self.slot(&partial, STOP_BEHIND_FIRST, 1, count);
            }
            self.bundle(&partial, count)
        })
    }

    /// Begins one more bundle, of `left`.
    fn bundle(&self, partial: &Partial, left: usize) -> Option<Packed> {
        if left == 0 {
            return self.finish(partial, false);
        }
        let ends_in_middle = (left == 1).then_some(STOP_BEHIND_FIRST);
        TEMPLATES.into_iter().chain(ends_in_middle).find_map(|template| {
            let mut next = partial.clone();
            if !next.window.begin_bundle() {
                return None;
            }
            next.bundles.push(Placed {
                template,
                stop: false,
                slots: [Content::Nop; 3],
            });
            self.slot(&next, template, 0, left - 1)
        })
    }

    /// Fills a slot of the bundle that was begun last, and those behind it.
    fn slot(&self, partial: &Partial, template: u8, slot: usize, left: usize) -> Option<Packed> {
        if slot == 3 {
            return self.bundle(partial, left);
        }
        if 3 * left + 3 - slot < self.width - partial.taken {
            return None;
        }
        let units = Template::new(template).units()?;
        let first_branch = units.iter().position(|unit| *unit == Unit::B).unwrap_or(3);
        let is_middle = partial.rest.is_some() && partial.bundles.is_empty();
        let unit = units[slot];
        for item in 0..self.needs.len() {
            let needs = &self.needs[item];
            let is_next = self.alike[item] & !partial.placed == 0;
            let is_free =
                is_next && partial.placed >> item & 1 == 0 && self.order[item] & !partial.placed == 0;
            if !is_free || needs.first && partial.filled > 0 {
                continue;
            }
            if needs.last_slot && slot != 2 || needs.first_slot && slot != 0 {
                continue;
            }
            if needs.flush_buffers && partial.after_memory || unit == Unit::B && partial.after_bsp {
                continue;
            }
            let Some(port) = needs.port(unit, slot, first_branch) else {
                continue;
            };
            let mut next = partial.clone();
            if next.window.take(port).is_none() {
                continue;
            }
            next.placed |= 1 << item;
            next.filled += 1;
            next.after_bsp |= needs.from_bsp;
            next.after_memory |= unit == Unit::M && needs.counts;
            let width = 1 + usize::from(unit == Unit::L);
            next.taken += width;
            next.put(slot, is_middle, Content::Item(item), width);
            if needs.splits && unit == Unit::M {
                // Nothing may follow but in the next cycle.
                let is_last = template == STOP_BEHIND_FIRST && slot == 0 && left == 0;
                if is_last && let Some(packed) = self.finish(&next, true) {
                    return Some(packed);
                }
                continue;
            }
            if needs.splits {
                next.window.close();
            }
            if let Some(packed) = self.slot(&next, template, slot + width, left) {
                return Some(packed);
            }
        }
        // Behind the stop in the middle a group ends with the item before it, or does not.
        if template == STOP_BEHIND_FIRST && slot == 0 && !is_middle || unit == Unit::B && partial.after_bsp {
            return None;
        }
        let mut next = partial.clone();
        let (port, width) = match unit {
            Unit::M => (Port::MemoryAny, 1),
            Unit::I => (Port::IntegerAny, 1),
            Unit::F => (Port::Float, 1),
            Unit::B => (branch_port(slot, first_branch, true), 1),
            // A long nop is never better than another template.
            Unit::L | Unit::X => return None,
        };
        next.window.take(port)?;
        next.filled += 1;
        self.slot(&next, template, slot + width, left)
    }

    fn finish(&self, partial: &Partial, ends_in_middle: bool) -> Option<Packed> {
        if partial.placed.count_ones() as usize != self.needs.len() {
            return None;
        }
        let mut bundles = partial.bundles.clone();
        if let (Some(last), false) = (bundles.last_mut(), ends_in_middle) {
            last.stop = true;
        }
        Some(Packed {
            rest: partial.rest,
            bundles,
            ends_in_middle,
        })
    }
}

impl Partial {
    fn put(&mut self, slot: usize, is_middle: bool, content: Content, width: usize) {
        if let (true, Some(rest)) = (is_middle, &mut self.rest) {
            rest[slot - 1] = content;
            return;
        }
        let Some(bundle) = self.bundles.last_mut() else {
            return;
        };
        if width == 2 {
            bundle.slots[slot] = Content::Half;
            bundle.slots[slot + 1] = content;
        } else {
            bundle.slots[slot] = content;
        }
    }
}

/// The `nop` of a unit.
pub fn nop(unit: Unit) -> u64 {
    let mnemonic = match unit {
        Unit::M => "nop.m",
        Unit::I => "nop.i",
        Unit::F => "nop.f",
        Unit::B => "nop.b",
        Unit::L | Unit::X => "nop.x",
    };
    let form = Form::named(mnemonic).next().expect("every unit has a nop");
    form.encode(0, &[0], &[]).expect("a nop of 0").slot
}

impl Placed {
    /// The instructions in the bundle's slots, as the units have them; `None` for a `nop`.
    pub fn instructions(&self, items: &[Item], parameters: &Parameters) -> [Option<(usize, Instruction)>; 3] {
        let units = Template::new(self.template)
            .units()
            .expect("a template that was chosen");
        std::array::from_fn(|slot| match self.slots[slot] {
            Content::Item(item) => {
                let template = Template::new(self.template);
                let (instruction, _) = items[item]
                    .in_slot(units[slot], slot as u8, template, parameters)
                    .expect("the item was placed where it can be");
                Some((item, instruction))
            }
            Content::Nop | Content::Half => None,
        })
    }

    /// The bundle's bits.
    pub fn encode(&self, items: &[Item]) -> Bundle {
        let template = Template::new(self.template | u8::from(self.stop));
        let units = template.units().expect("a template that was chosen");
        let mut slots = [0; 3];
        for slot in 0..3 {
            match self.slots[slot] {
                Content::Nop => slots[slot] = nop(units[slot]),
                Content::Half => {}
                Content::Item(item) => {
                    slots[slot] = items[item].instruction.slot;
                    if units[slot] == Unit::X {
                        slots[slot - 1] = items[item].instruction.long_slot();
                    }
                }
            }
        }
        Bundle::new(template, slots)
    }
}
