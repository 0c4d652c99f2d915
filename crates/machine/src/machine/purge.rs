//! Global purges of translations: from the processor that issues one to all others.
//!
//! A processor that executes must have made a purge before the issuer goes on; one that does not (it waits, is
//! stopped, or it is not its turn in virtual time) makes it before it executes again. An issuer that waits for
//! others does not execute either: two issuers at once therefore never wait for each other, and each makes the
//! other's purge before its own instruction ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use sidestep_ia64::memory::GlobalPurge;

/// What one processor has to purge.
#[derive(Default)]
struct Slot {
    executes: bool,
    waiting: Vec<GlobalPurge>,
    /// Purges that were ever posted here, and those that the processor has taken.
    posted: u64,
    taken: u64,
}

impl Slot {
    fn take(&mut self) -> Vec<GlobalPurge> {
        self.taken = self.posted;
        std::mem::take(&mut self.waiting)
    }
}

/// What all processors have to purge, and who waits for them to.
struct Board {
    slots: Vec<Slot>,
    /// How many issuers wait. A change is told of only to them: telling nobody costs a system call too, and processors
    /// that take turns in virtual time come and go every few hundred instructions.
    issuers_waiting: usize,
}

/// Where processors leave purges for each other.
pub(crate) struct PurgeBoard {
    board: Mutex<Board>,
    changed: Condvar,
    attention: OnceLock<Vec<Arc<AtomicBool>>>,
}

impl PurgeBoard {
    pub fn new(processors: usize) -> PurgeBoard {
        PurgeBoard {
            board: Mutex::new(Board {
                slots: (0..processors).map(|_| Slot::default()).collect(),
                issuers_waiting: 0,
            }),
            changed: Condvar::new(),
            attention: OnceLock::new(),
        }
    }

    /// Gives the flags that make each processor look here.
    pub fn connect(&self, attention: Vec<Arc<AtomicBool>>) {
        assert!(self.attention.set(attention).is_ok(), "connected once");
    }

    /// Processor `index` is about to execute: the purges it must make first.
    pub fn enter(&self, index: usize) -> Vec<GlobalPurge> {
        let mut board = self.lock();
        let slot = &mut board.slots[index];
        slot.executes = true;
        let purges = slot.take();
        if !purges.is_empty() {
            self.tell(&board);
        }
        purges
    }

    /// Processor `index` does not execute for now.
    pub fn leave(&self, index: usize) {
        let mut board = self.lock();
        board.slots[index].executes = false;
        self.tell(&board);
    }

    /// Processor `index` purges everywhere else; comes back when no other executes with the old translation. The
    /// purges that others issued meanwhile are its own to make now.
    pub fn broadcast(&self, index: usize, purge: GlobalPurge) -> Vec<GlobalPurge> {
        let mut board = self.lock();
        let mut tickets = Vec::with_capacity(board.slots.len());
        for (other, slot) in board.slots.iter_mut().enumerate() {
            if other != index {
                slot.waiting.push(purge);
                slot.posted += 1;
                if slot.executes {
                    tickets.push((other, slot.posted));
                    self.call(other);
                }
            }
        }
        board.slots[index].executes = false;
        self.tell(&board);
        let must_wait = |board: &mut Board| {
            let mut tickets = tickets.iter();
            tickets.any(|&(other, ticket)| board.slots[other].executes && board.slots[other].taken < ticket)
        };
        board.issuers_waiting += 1;
        let mut board = self
            .changed
            .wait_while(board, must_wait)
            .unwrap_or_else(PoisonError::into_inner);
        board.issuers_waiting -= 1;
        board.slots[index].executes = true;
        board.slots[index].take()
    }

    /// Has the issuers that wait look again.
    fn tell(&self, board: &Board) {
        if board.issuers_waiting > 0 {
            self.changed.notify_all();
        }
    }

    fn call(&self, index: usize) {
        if let Some(attention) = self.attention.get() {
            attention[index].store(true, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidestep_ia64::VirtualAddress;

    fn purge(address: u64) -> GlobalPurge {
        GlobalPurge {
            address: VirtualAddress(address),
            region: 7,
            size_log2: 14,
            advanced_loads: false,
        }
    }

    #[test]
    fn one_that_does_not_execute_purges_when_it_enters() {
        let board = PurgeBoard::new(2);
        board.connect(vec![Arc::default(), Arc::default()]);
        assert!(board.enter(0).is_empty());
        assert!(board.broadcast(0, purge(1)).is_empty());
        assert_eq!(board.enter(1), [purge(1)]);
        assert!(board.enter(1).is_empty(), "made once");
    }

    #[test]
    fn issuers_at_once_wait_for_nobody_who_waits() {
        const ROUNDS: u64 = 2000;
        const PROCESSORS: usize = 4;
        let board = PurgeBoard::new(PROCESSORS);
        let flags: Vec<Arc<AtomicBool>> = (0..PROCESSORS).map(|_| Arc::default()).collect();
        board.connect(flags);
        let issue = |index: usize| {
            let mut made = board.enter(index).len();
            for round in 0..ROUNDS {
                made += board.broadcast(index, purge(round)).len();
                board.leave(index);
                made += board.enter(index).len();
            }
            board.leave(index);
            made
        };
        let made: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..PROCESSORS)
                .map(|index| scope.spawn(move || issue(index)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .sum()
        });
        let left: usize = (0..PROCESSORS).map(|index| board.enter(index).len()).sum();
        let expected = ROUNDS as usize * PROCESSORS * (PROCESSORS - 1);
        assert_eq!(
            made + left,
            expected,
            "each purge reaches each other processor once"
        );
    }
}
