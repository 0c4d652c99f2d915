//! Links: from where a unit has left to the unit that goes on there.
//!
//! Most units leave for a place at which another begins: a function on another page, the place behind a call, the
//! target of an indirect branch. The table knows the units that were entered lately by the places of their roots, so
//! that one follows the other without the loop that looks for blocks.
//!
//! A place is what decides which block runs there. For a program that is the guest's address: when its memory is mapped
//! otherwise, all its blocks are forgotten, and the units with them. In system mode an address means another thing in
//! each context: there it is the host's address, and one unit follows another on the same page only.
//!
//! A unit that is gone leaves its root here, without code: it is not found any more.

use std::sync::Arc;

use crate::unit::Piece;

/// Places that are known at once.
const LINKS: usize = 4096;

/// Where a unit begins.
#[derive(Clone)]
struct Link {
    place: u64,
    root: Arc<Piece>,
}

/// The roots of units by place.
pub struct Links {
    known: Vec<Option<Link>>,
}

impl Links {
    /// Nothing is known.
    pub fn new() -> Links {
        Links {
            known: vec![None; LINKS],
        }
    }

    /// Notes that a unit's root stands at a place.
    #[inline]
    pub fn note(&mut self, place: u64, root: &Arc<Piece>) {
        let known = &mut self.known[index(place)];
        match known {
            Some(link) if link.place == place && Arc::ptr_eq(&link.root, root) => {}
            _ => {
                *known = Some(Link {
                    place,
                    root: Arc::clone(root),
                });
            }
        }
    }

    /// The root of the unit at a place, if it is known and has its code.
    #[inline]
    pub fn find(&self, place: u64) -> Option<&Arc<Piece>> {
        let link = self.known[index(place)].as_ref()?;
        (link.place == place && !link.root.code().is_null()).then_some(&link.root)
    }
}

/// Bundles that follow each other stand behind each other; functions of one offset on different pages do not meet.
#[inline]
fn index(place: u64) -> usize {
    (place >> 4 ^ place >> 16 ^ place << 10) as usize % LINKS
}
