//! Stopping the world: moments at which no guest code runs anywhere in the process.
//!
//! A guest thread is *inside* while its processor executes and *outside* while it is in a system call. Some
//! changes (unmapping, protecting, `fork`) must not happen under a running processor, which holds host
//! pointers in its software TLB. [`World::exclusively`] raises every processor's attention, waits until all
//! are outside, makes the change, and moves the [`Generation`] on; a thread that enters and sees a new one drops
//! its cached translations first, and its decoded instructions if code may have changed, too.
//!
//! A thread blocked in a host system call is outside, so it never holds anybody up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What makes a processor leave its run soon.
pub type RaiseAttention = Arc<dyn Fn() + Send + Sync>;

/// All guest threads that share an address space.
///
/// Going in and out costs an atomic exchange each. A thread says that it is inside *before* it looks whether somebody
/// stops the world, and who stops it says so *before* looking who is inside: both in one total order, so one of the two
/// sees the other.
#[derive(Default)]
pub struct World {
    state: Mutex<State>,
    changed: Condvar,
    /// The same as in `state`, to be looked at without it.
    stopping: AtomicBool,
    /// Counts exclusive changes.
    changes: AtomicU64,
    /// Counts those after which code may be different.
    code_changes: AtomicU64,
}

/// Which changes of the memory a thread has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// How many changes there were.
    pub changes: u64,
    /// How many of them may have changed code.
    pub code_changes: u64,
}

#[derive(Default)]
struct State {
    stopping: bool,
    members: Vec<Arc<Place>>,
}

/// Where a thread is, and how it is called out.
struct Place {
    inside: AtomicBool,
    raise_attention: RaiseAttention,
}

/// One guest thread's place in the world.
#[derive(Clone)]
pub struct Member(Arc<Place>);

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no thread panics while it holds the world")
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .expect("no thread panics while it holds the world")
    }

    /// Adds a thread, outside.
    pub fn join(&self, raise_attention: RaiseAttention) -> Member {
        let place = Arc::new(Place {
            inside: AtomicBool::new(false),
            raise_attention,
        });
        self.state().members.push(place.clone());
        Member(place)
    }

    /// Removes a thread, wherever it is; for the thread itself, or for one that is known to have ended.
    pub fn part(&self, member: &Member) {
        let mut state = self.state();
        member.0.inside.store(false, Ordering::SeqCst);
        state.members.retain(|place| !Arc::ptr_eq(place, &member.0));
        self.changed.notify_all();
    }

    /// Waits until nobody is stopping the world, and goes inside; answers the current generation.
    pub fn enter(&self, member: &Member) -> Generation {
        loop {
            member.0.inside.store(true, Ordering::SeqCst);
            if !self.stopping.load(Ordering::SeqCst) {
                break;
            }
            self.leave(member);
            let mut state = self.state();
            while state.stopping {
                state = self.wait(state);
            }
        }
        Generation {
            changes: self.changes.load(Ordering::Acquire),
            code_changes: self.code_changes.load(Ordering::Acquire),
        }
    }

    /// Goes outside.
    pub fn leave(&self, member: &Member) {
        member.0.inside.store(false, Ordering::SeqCst);
        if self.stopping.load(Ordering::SeqCst) {
            // Under the lock, so that who waits has either seen the change or sleeps already.
            let _state = self.state();
            self.changed.notify_all();
        }
    }

    /// Makes a change while no guest code runs. The calling thread must be outside.
    pub fn exclusively<T>(&self, change: impl FnOnce() -> T) -> T {
        self.stopped(|| {
            let result = change();
            self.changes.fetch_add(1, Ordering::AcqRel);
            result
        })
    }

    /// How many exclusive changes there were.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Does something while no guest code runs, that takes nothing away from the memory.
    pub fn stopped<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut state = self.state();
        while state.stopping {
            state = self.wait(state);
        }
        state.stopping = true;
        self.stopping.store(true, Ordering::SeqCst);
        state.call_out();
        while state.is_anybody_inside() {
            state = self.wait(state);
        }
        drop(state);
        let result = work();
        self.state().stopping = false;
        self.stopping.store(false, Ordering::SeqCst);
        self.changed.notify_all();
        result
    }

    /// Notes, within an exclusive change, that code may be different after it.
    pub fn note_code_change(&self) {
        self.code_changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes every thread drop its decoded instructions before it goes on.
    pub fn tell_code_change(&self) {
        self.note_code_change();
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.state().call_out();
    }

    /// Forks with the world stopped and its own lock held, so that the child finds it unlocked and holding
    /// the calling thread alone. `fork` answers whether this is the child.
    pub fn fork<T>(&self, survivor: &Member, fork: impl FnOnce() -> (bool, T)) -> T {
        self.stopped(|| {
            let mut state = self.state();
            let (is_child, result) = fork();
            if is_child {
                state.members.retain(|place| Arc::ptr_eq(place, &survivor.0));
            }
            result
        })
    }
}

impl State {
    fn call_out(&self) {
        for place in &self.members {
            if place.inside.load(Ordering::SeqCst) {
                (place.raise_attention)();
            }
        }
    }

    fn is_anybody_inside(&self) -> bool {
        self.members
            .iter()
            .any(|place| place.inside.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_happens_only_while_everybody_is_outside() {
        let world = Arc::new(World::default());
        let running = Arc::new(AtomicU64::new(0));
        let done = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (world, running, done) = (world.clone(), running.clone(), done.clone());
                std::thread::spawn(move || {
                    let attention = Arc::new(AtomicBool::new(false));
                    let raise = attention.clone();
                    let member = world.join(Arc::new(move || raise.store(true, Ordering::Release)));
                    while !done.load(Ordering::Acquire) {
                        world.enter(&member);
                        attention.store(false, Ordering::Release);
                        running.fetch_add(1, Ordering::AcqRel);
                        for _ in 0..1000 {
                            if attention.load(Ordering::Acquire) || done.load(Ordering::Acquire) {
                                break;
                            }
                            std::hint::spin_loop();
                        }
                        running.fetch_sub(1, Ordering::AcqRel);
                        world.leave(&member);
                    }
                    world.part(&member);
                })
            })
            .collect();
        for _ in 0..100 {
            world.exclusively(|| assert_eq!(running.load(Ordering::Acquire), 0));
        }
        done.store(true, Ordering::Release);
        for thread in threads {
            thread.join().expect("a thread that does not panic");
        }
        assert!(!world.state().is_anybody_inside());
    }

    #[test]
    fn a_thread_that_ended_inside_holds_nobody_up() {
        let world = World::default();
        let member = world.join(Arc::new(|| ()));
        let before = world.enter(&member);
        world.part(&member);
        world.exclusively(|| ());
        let other = world.join(Arc::new(|| ()));
        assert!(world.enter(&other).changes > before.changes);
    }
}
