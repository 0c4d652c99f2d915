//! Units: emitted code, and what makes it invalid.
//!
//! A unit belongs to the block that is its root, and is made of more blocks. It goes when any of them goes: blocks are
//! forgotten in one way, and the last that a forgotten block does is to retire the units that it is part of.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use sidestep_ia64::Processor;
use sidestep_ia64::registers::application::FPSR;

use crate::chain::{Enter, Named, SharedFunctions};
use crate::code_memory::CodeMemory;
use crate::node::Node;
use crate::region::Region;

/// Emitted code.
pub struct Unit {
    /// What it was made of. The code names operations of the region's nodes by their addresses.
    pub region: Region,
    /// What it leaves to the interpreter, which the code names by addresses as well.
    pub named: Named,
    /// Bits of FPSR, and what these have to be where it is entered.
    pub settled: (u64, u64),
    /// Where it stands.
    pub memory: Arc<Mutex<CodeMemory>>,
    /// The functions that it is used with, in the same memory.
    pub support: Arc<Support>,
}

/// Where the functions stand that all units of a memory are used with.
pub struct Support {
    /// The one by which units are entered.
    pub enter: Enter,
    /// Those that they share.
    pub shared: SharedFunctions,
}

// SAFETY: it is addresses of code, in memory that the unit keeps.
unsafe impl Send for Support {}
// SAFETY: as above.
unsafe impl Sync for Support {}

/// A block as the translator keeps it.
pub struct Piece {
    /// What it is.
    pub node: Arc<Node>,
    /// Whether it ends by rotating registers.
    pub rotates: bool,
    /// How often it was entered since it last had no unit.
    entered: AtomicU32,
    /// How often it has to be entered to become the root of a unit.
    threshold: AtomicU32,
    /// The code of the unit whose root it is; null for none.
    code: AtomicPtr<u8>,
    /// The functions that its unit is used with, which the unit keeps; null for none.
    support: AtomicPtr<Support>,
    unit: Mutex<Option<Unit>>,
    /// The guest's address that its unit is for.
    base: AtomicU64,
    /// The roots of the units that it is part of.
    roots: Mutex<Vec<Weak<Piece>>>,
    /// Whether the processor has forgotten it: what still refers to it may not make it part of anything.
    is_forgotten: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it changes a unit")
}

impl Piece {
    /// A block that was not entered yet, and has to be that often to become the root of a unit.
    pub fn new(node: Node, threshold: u32) -> Piece {
        Piece {
            rotates: node.rotates(),
            node: Arc::new(node),
            entered: AtomicU32::new(0),
            threshold: AtomicU32::new(threshold),
            code: AtomicPtr::default(),
            support: AtomicPtr::default(),
            unit: Mutex::default(),
            base: AtomicU64::new(0),
            roots: Mutex::default(),
            is_forgotten: AtomicBool::new(false),
        }
    }

    /// The block that a reference names, as long as the processor keeps it.
    pub fn kept(reference: &Weak<Piece>) -> Option<Arc<Piece>> {
        let piece = reference.upgrade()?;
        (!piece.is_forgotten.load(Ordering::Relaxed)).then_some(piece)
    }

    /// Counts an entry, and answers whether it is the one that makes the block worth a unit.
    #[inline]
    pub fn count(&self) -> bool {
        // The processor that enters it is the only one that counts: no exchange is needed, which would cost more than a
        // short block.
        let entered = self.entered.load(Ordering::Relaxed).wrapping_add(1);
        self.entered.store(entered, Ordering::Relaxed);
        entered == self.threshold.load(Ordering::Relaxed)
    }

    /// How often it was entered so far.
    pub fn entered(&self) -> u32 {
        self.entered.load(Ordering::Relaxed)
    }

    /// Counts its entries from the beginning again.
    pub fn forget_entries(&self) {
        self.entered.store(0, Ordering::Relaxed);
    }

    /// Its code; null for none.
    #[inline]
    pub fn code(&self) -> *const u8 {
        self.code.load(Ordering::Relaxed)
    }

    /// The functions with which the unit is used whose root it is.
    ///
    /// # Safety
    /// There is such a unit, and it stays as long as the answer is used.
    #[inline]
    pub unsafe fn support(&self) -> &Support {
        // SAFETY: as the caller says; the unit keeps them.
        unsafe { &*self.support.load(Ordering::Relaxed) }
    }

    /// The unit whose root it is.
    pub fn unit(&self) -> MutexGuard<'_, Option<Unit>> {
        lock(&self.unit)
    }

    /// Whether it became hot while another block was executed rarely: it has a unit that the other one is not part of.
    pub fn is_hot_without(&self, other: &Piece) -> bool {
        let unit = self.unit();
        let nodes = unit.as_ref().map(|unit| &unit.region.nodes);
        nodes.is_some_and(|nodes| nodes.iter().all(|node| node.place != other.node.place))
    }

    /// Whether its unit is for the code at an address of a program's.
    pub fn is_for(&self, address: u64) -> bool {
        self.base.load(Ordering::Relaxed) == address
    }

    /// Whether FPSR is what its unit, if it has one, takes it to be, and as many registers rotate as in the loop that
    /// it begins with.
    pub fn fits(&self, processor: &Processor) -> bool {
        self.unit().as_ref().is_none_or(|unit| {
            let (looked_at, settled) = unit.settled;
            let rotation = unit
                .region
                .tight_loop(0)
                .and_then(|tight_loop| tight_loop.rotation);
            processor.application(FPSR) & looked_at == settled
                && rotation.is_none_or(|rotation| u32::from(rotation.size) == processor.frame.rotating)
        })
    }

    /// The address of the word that has the address of its code, zero for none.
    pub fn code_word(&self) -> usize {
        self.code.as_ptr() as usize
    }

    /// Sets how often it has to be entered once its unit has gone, to become the root of another one.
    pub fn set_threshold(&self, threshold: u32) {
        self.threshold.store(threshold, Ordering::Relaxed);
    }

    /// Makes it the root of a unit with its code at a place.
    pub fn install(&self, unit: Unit, code: *const u8) {
        let support = Arc::as_ptr(&unit.support).cast_mut();
        self.support.store(support, Ordering::Relaxed);
        self.base.store(unit.region.base, Ordering::Relaxed);
        *self.unit() = Some(unit);
        self.code.store(code.cast_mut(), Ordering::Relaxed);
    }

    /// Notes that it is part of a root's unit.
    pub fn belong_to(&self, root: &Arc<Piece>) {
        let mut roots = lock(&self.roots);
        roots.retain(|root| root.strong_count() > 0);
        roots.push(Arc::downgrade(root));
    }

    /// Gives up its unit. No code of the unit may be running.
    pub fn retire(&self) {
        self.code.store(ptr::null_mut(), Ordering::Relaxed);
        self.forget_entries();
        *self.unit() = None;
    }
}

/// A block as the processor keeps it: when it is forgotten, so are the units that it is part of.
///
/// The processor forgets blocks between two of them, when no emitted code runs.
pub struct Owned(pub Arc<Piece>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.is_forgotten.store(true, Ordering::Relaxed);
        let roots = std::mem::take(&mut *lock(&self.0.roots));
        roots
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|root| root.retire());
        self.0.retire();
    }
}
