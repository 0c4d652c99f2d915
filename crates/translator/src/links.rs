//! Links: from where a unit has left to the unit that goes on there.
//!
//! Most units leave for a place at which another begins: a function on another page, the place behind a call, the
//! target of an indirect branch. The table knows the units that were entered lately by the places of their roots.
//! Emitted code looks into it and goes on with the next unit by itself.
//!
//! A place is what decides which block runs there. For a program that is the guest's address: when its memory is mapped
//! otherwise, all its blocks are forgotten, and the units with them. In system mode an address means another thing in
//! each context: there it is the host's address, and one unit follows another on the same page only.
//!
//! A unit that is gone leaves its root here, without code: it is not found any more.

use std::mem::offset_of;
use std::sync::Arc;

use crate::unit::Piece;

/// No block begins there: there are three slots.
const NOWHERE: u64 = 3;

/// Where a unit begins, as emitted code reads it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Link {
    place: u64,
    /// The address of the word that has the address of the unit's code, zero for none.
    code: usize,
}

/// The roots of units by place.
pub struct Links {
    known: Box<[Link]>,
    /// What keeps the words that the links name.
    roots: Box<[Option<Arc<Piece>>]>,
}

impl Links {
    /// Places that are known at once, as a power of two.
    pub const COUNT_LOG2: u32 = 12;
    /// The size of a link, in bytes, as a power of two.
    pub const SIZE_LOG2: u32 = size_of::<Link>().trailing_zeros();
    /// Where a link has the place, in bytes from its start: 64 bits.
    pub const PLACE: usize = offset_of!(Link, place);
    /// Where a link has the address of the word that has the address of the code: 64 bits.
    pub const CODE: usize = offset_of!(Link, code);
    /// The number of a place's link is the exclusive or of the place shifted to the right by each of these and to the
    /// left by [`Links::LEFT_SHIFT`], modulo their number. Bundles that follow each other stand behind each other;
    /// functions of one offset on different pages do not meet.
    pub const RIGHT_SHIFTS: [u32; 2] = [4, 16];
    /// See [`Links::RIGHT_SHIFTS`].
    pub const LEFT_SHIFT: u32 = 10;

    /// Nothing is known.
    pub fn new() -> Links {
        let nothing = Link {
            place: NOWHERE,
            code: 0,
        };
        Links {
            known: vec![nothing; 1 << Links::COUNT_LOG2].into(),
            roots: vec![None; 1 << Links::COUNT_LOG2].into(),
        }
    }

    /// Where the table begins.
    pub fn address(&self) -> usize {
        self.known.as_ptr() as usize
    }

    /// The number of a place's link.
    #[inline]
    pub fn index(place: u64) -> usize {
        let [near, far] = Links::RIGHT_SHIFTS;
        (place >> near ^ place >> far ^ place << Links::LEFT_SHIFT) as usize % (1 << Links::COUNT_LOG2)
    }

    /// Whether it is known that a unit's root stands at a place.
    #[inline]
    pub fn knows(&self, place: u64, root: &Piece) -> bool {
        let known = &self.known[Links::index(place)];
        known.place == place && known.code == root.code_word()
    }

    /// Notes that a unit's root stands at a place.
    pub fn note(&mut self, place: u64, root: &Arc<Piece>) {
        let index = Links::index(place);
        self.known[index] = Link {
            place,
            code: root.code_word(),
        };
        self.roots[index] = Some(Arc::clone(root));
    }
}

const _: () = assert!(size_of::<Link>().is_power_of_two(), "a shift finds a link");
