//! What a running thread can do.
//!
//! A body gets a [`Context`] and its data, does its work, and ends. What it wants to happen next it says by
//! continuing: nothing here blocks. Where something is full the context says so at once and hands the value
//! back, because a zero-wait thread cannot wait for room: it drops the value, answers with an error, or
//! continues to itself.
//!
//! There is always room for one continuation that a thread makes to an unbound thread, so a thread that ends
//! by continuing once never meets a full queue.

use super::Program;
use super::gate::Admission;
use crate::continuation::{ANYWHERE, Continuation, Kind};
use crate::device::{Buffer, BufferGuard, BufferPool, Completion, Operation};
use crate::handle::{Edge, Entry, JoinEdge, Release};
use crate::join::{Activation, Bring};
use crate::payload::{Payload, Words};
use crate::pushback::{Pushback, Reason};
use crate::queue::Local;
use crate::time::Time;

/// What the two executors do differently, off the hot path.
pub(crate) trait World {
    /// Sends a continuation, this core's `issued`th, to the core that its thread is bound to.
    fn forward(&self, continuation: Continuation, issued: u64) -> Result<(), Reason>;
    /// Keeps a continuation until `due`.
    fn at(&self, due: Time, continuation: Continuation) -> Result<(), Reason>;
    /// Starts a device operation whose completion is `continuation` with other words.
    fn submit(
        &self,
        operation: Operation,
        token: u64,
        continuation: Continuation,
    ) -> Result<(), (Reason, Operation)>;
    /// The time now (cores only: in virtual time the context knows).
    fn now(&self) -> Time;
    /// A clock reading to stamp a sampled continuation with; never 0 (cores only).
    fn ticks(&self) -> u64;
    /// The device buffers.
    fn buffers(&self) -> Option<&BufferPool>;
}

/// How a context tells the time and stamps what it issues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clockwork {
    /// The time of the running event plus what its thread has spent; every continuation is stamped.
    Virtual { now: Time },
    /// Real time; one continuation in `every` is stamped (0: none).
    Sampled { every: u32 },
}

/// What runs now, or runs next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Running {
    pub(crate) words: Words,
    /// When it was issued, as in [`Continuation`].
    pub(crate) stamp: u64,
    pub(crate) thread: u32,
    pub(crate) place: u16,
}

/// What one core counted; owned by the core, published now and then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Continuations queued.
    pub(crate) issued: u64,
    /// Continuations taken from a queue and run, or run by a gate that was being served anyway.
    pub(crate) executed: u64,
    /// Continuations of a thread to itself.
    pub(crate) retried: u64,
    /// Continuations sent to another core because their thread is bound to it.
    pub(crate) forwarded: u64,
    /// Continuations that a full queue handed back to the thread.
    pub(crate) refused: u64,
}

/// The running thread's view of its executor.
pub struct Context<'a> {
    pub(crate) program: &'a Program,
    pub(crate) local: &'a mut Local,
    pub(crate) world: &'a dyn World,
    pub(crate) counters: &'a mut Counters,
    pub(crate) runs: &'a mut [u64],
    pub(crate) clockwork: Clockwork,
    /// So many continuations are not stamped before the next that is looked at; 0 in virtual time.
    pub(crate) until_stamp: u32,
    pub(crate) current: Running,
    pub(crate) core: u16,
    /// Whether the running thread still has its one continuation for which there is always room.
    pub(crate) guaranteed: bool,
    pub(crate) gate_batch: u32,
}

impl Context<'_> {
    /// Makes `continuation` the current one, which [`begin`](Self::begin) then counts.
    ///
    /// From here on everything takes it from the context: handed on by reference it would have to lie in
    /// memory a second time.
    #[inline(always)]
    pub(crate) fn take_up(&mut self, continuation: Continuation) {
        self.current = Running {
            words: continuation.words,
            stamp: continuation.stamp,
            thread: continuation.thread,
            place: continuation.place,
        };
    }

    /// Prepares for the current thread to run.
    #[inline(always)]
    pub(crate) fn begin(&mut self, thread: u32) {
        self.guaranteed = true;
        self.counters.executed += 1;
        self.runs[thread as usize] += 1;
    }

    /// Counts an entry that a gate serves without its having gone through a core's queue.
    #[inline]
    pub(crate) fn count_batched(&mut self, words: Words) {
        self.current.words = words;
        self.guaranteed = true;
        self.counters.issued += 1;
        self.counters.executed += 1;
        self.runs[self.current.thread as usize] += 1;
    }

    pub(crate) fn gate_batch(&self) -> u32 {
        self.gate_batch
    }

    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.clockwork, Clockwork::Virtual { .. })
    }

    #[inline]
    fn stamp(&mut self) -> u64 {
        if self.until_stamp > 0 {
            self.until_stamp -= 1;
            return 0;
        }
        self.stamp_now()
    }

    #[inline(never)]
    fn stamp_now(&mut self) -> u64 {
        match self.clockwork {
            Clockwork::Virtual { now } => now.0,
            Clockwork::Sampled { every: 0 } => {
                self.until_stamp = u32::MAX;
                0
            }
            Clockwork::Sampled { every } => {
                self.until_stamp = every - 1;
                self.world.ticks()
            }
        }
    }

    /// Whether a thread of this place is run by the core (or, in virtual time, the partition) that is asked.
    #[inline]
    fn is_here(&self, place: u16) -> bool {
        place == ANYWHERE || place == self.core || self.is_virtual()
    }

    /// Queues a start of thread `to`.
    ///
    /// Inlined into the bodies: what a body continues with goes from registers into the queue. All that is
    /// not the common case is one call at the end, so that nothing has to be saved around it.
    #[inline(always)]
    fn issue(&mut self, to: u32, place: u16, words: Words, kind: Kind) -> Result<(), Reason> {
        if self.until_stamp > 0 && self.is_here(place) && self.local.has_room_at_once() {
            self.until_stamp -= 1;
            self.local.push_at_once(&Continuation {
                words,
                stamp: 0,
                thread: to,
                place,
                kind,
            });
            self.counters.issued += 1;
            return Ok(());
        }
        let [a, b, c, d] = words;
        self.issue_otherwise(to, place, kind, a, b, c, d)
    }

    /// What is stamped, goes to another core, or into the last place of a full queue.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)] // In registers, where a structure would lie in memory.
    fn issue_otherwise(
        &mut self,
        to: u32,
        place: u16,
        kind: Kind,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
    ) -> Result<(), Reason> {
        let continuation = Continuation {
            words: [a, b, c, d],
            stamp: self.stamp(),
            thread: to,
            place,
            kind,
        };
        if !self.is_here(place) {
            return self.forward(continuation);
        }
        if !self.local.has_room() && !self.has_guaranteed_room() {
            self.counters.refused += 1;
            return Err(Reason::QueueFull);
        }
        self.local.push(continuation);
        self.counters.issued += 1;
        Ok(())
    }

    #[cold]
    fn forward(&mut self, continuation: Continuation) -> Result<(), Reason> {
        let sent = self.world.forward(continuation, self.counters.issued + 1);
        match sent {
            Ok(()) => {
                self.counters.issued += 1;
                self.counters.forwarded += 1;
            }
            Err(_) => self.counters.refused += 1,
        }
        sent
    }

    fn has_guaranteed_room(&mut self) -> bool {
        std::mem::take(&mut self.guaranteed) && self.local.len() < self.local.physical()
    }

    /// Whether the next [`issue`](Self::issue) to a thread of this place cannot fail.
    #[inline]
    fn surely_has_room(&self) -> bool {
        self.local.has_room() || (self.guaranteed && self.local.len() < self.local.physical())
    }

    #[inline]
    fn check_origin(&self, from: u32) {
        if from != self.current.thread {
            self.foreign_edge(from);
        }
    }

    #[cold]
    fn foreign_edge(&self, from: u32) -> ! {
        let owner = self
            .program
            .threads
            .get(from as usize)
            .map_or("another graph's thread", |thread| &thread.name);
        panic!(
            "thread `{}` continues by an edge that belongs to `{owner}`",
            self.program.name(self.current.thread)
        );
    }

    #[cold]
    fn refused(&self, to: u32, reason: Reason) -> ! {
        panic!(
            "thread `{}` cannot continue to `{}`: {reason} ({} queued on core {}, limit {})",
            self.program.name(self.current.thread),
            self.program.name(to),
            self.local.len(),
            self.core,
            self.local.limit()
        );
    }

    /// Continues to a thread, which will start with `value`.
    ///
    /// # Panics
    /// If the queue is full; the panic is contained and reported like any of a thread. A thread that
    /// continues more than once and can do something about a full queue uses
    /// [`try_continue_to`](Self::try_continue_to).
    #[inline]
    pub fn continue_to<T: Payload>(&mut self, edge: Edge<T>, value: T) {
        self.check_origin(edge.from);
        if let Err(reason) = self.issue(edge.to, edge.place, value.into_words(), Kind::Start) {
            self.refused(edge.to, reason);
        }
    }

    /// Continues to a thread, or gives `value` back if the queue is full.
    #[inline]
    pub fn try_continue_to<T: Payload>(&mut self, edge: Edge<T>, value: T) -> Result<(), Pushback<T>> {
        self.check_origin(edge.from);
        let words = value.into_words();
        self.issue(edge.to, edge.place, words, Kind::Start)
            .map_err(|reason| Pushback::new(reason, T::from_words(words)))
    }

    /// Continues to a thread, which starts `ticks` later at the earliest.
    pub fn continue_after<T: Payload>(
        &mut self,
        edge: Edge<T>,
        ticks: u64,
        value: T,
    ) -> Result<(), Pushback<T>> {
        self.check_origin(edge.from);
        let words = value.into_words();
        let mut continuation = Continuation {
            words,
            stamp: 0,
            thread: edge.to,
            place: edge.place,
            kind: Kind::Event,
        };
        let due = self.now() + ticks;
        let outcome = if self.is_virtual() {
            continuation.stamp = due.0;
            match self.surely_has_room() {
                true => {
                    self.local.push(continuation);
                    self.counters.issued += 1;
                    Ok(())
                }
                false => Err(Reason::QueueFull),
            }
        } else {
            self.world
                .at(due, continuation)
                .inspect(|()| self.counters.issued += 1)
        };
        outcome.map_err(|reason| Pushback::new(reason, T::from_words(words)))
    }

    /// Continues to the running thread itself because something it needs is not there yet.
    ///
    /// All others that are ready go first. There is room for one retry in each run.
    ///
    /// # Panics
    /// If `edge` does not lead from the running thread to itself, or if it is the second retry of this run
    /// and the queue is full.
    #[inline]
    pub fn retry<T: Payload>(&mut self, edge: Edge<T>, value: T) {
        self.check_origin(edge.from);
        assert!(
            edge.to == edge.from,
            "a retry is a continuation of a thread to itself"
        );
        if !self.is_here(edge.place) || !self.surely_has_room() {
            self.refused(edge.to, Reason::QueueFull);
        }
        self.guaranteed &= self.local.has_room();
        let stamp = self.stamp();
        let words = value.into_words();
        let retry = Continuation {
            words,
            stamp,
            thread: edge.to,
            place: edge.place,
            kind: Kind::Retry,
        };
        if self.is_virtual() {
            self.local.push(retry);
        } else {
            self.local.push_retry(retry);
        }
        self.counters.issued += 1;
        self.counters.retried += 1;
    }

    /// Comes to a gate: the gate's thread will start with `value`, at once or when its turn has come.
    ///
    /// A refusal says why: the gate is taken (lock-or-retry), its queue is full, or it is out of order.
    #[inline]
    pub fn enter<T: Payload>(&mut self, entry: Entry<T>, value: T) -> Result<(), Pushback<T>> {
        self.check_origin(entry.from);
        let words = value.into_words();
        if !self.surely_has_room() {
            self.counters.refused += 1;
            return Err(Pushback::new(Reason::QueueFull, T::from_words(words)));
        }
        match self.program.gates[entry.gate as usize].enter(words) {
            Ok(Admission::Start(words)) => self.start_gate(entry.to, entry.place, words),
            Ok(Admission::Waits) => {}
            Err(reason) => return Err(Pushback::new(reason, T::from_words(words))),
        }
        Ok(())
    }

    /// Starts a gate whose lock has been taken. That must not fail: if the core that the gate is bound to has
    /// no room, the continuation waits here and is sent on later.
    #[inline]
    fn start_gate(&mut self, to: u32, place: u16, words: Words) {
        if !self.is_here(place) && self.issue(to, place, words, Kind::Start).is_ok() {
            return;
        }
        self.guaranteed &= self.local.has_room();
        let stamp = self.stamp();
        self.local.push(Continuation {
            words,
            stamp,
            thread: to,
            place,
            kind: Kind::Start,
        });
        self.counters.issued += 1;
    }

    /// The running gate continues to itself with the next entry.
    pub(crate) fn continue_gate(&mut self, words: Words) {
        let Running { thread, place, .. } = self.current;
        let stamp = self.stamp();
        self.local.push(Continuation {
            words,
            stamp,
            thread,
            place,
            kind: Kind::Start,
        });
        self.counters.issued += 1;
    }

    /// Keeps the running gate taken beyond the end of its body, until a thread [`release`](Self::release)s
    /// it.
    ///
    /// # Panics
    /// If the running thread is not a gate, or holds already.
    pub fn hold(&mut self) {
        let thread = &self.program.threads[self.current.thread as usize];
        let Some(gate) = thread.gate() else {
            panic!("thread `{}` holds, but is not a gate", thread.name)
        };
        self.program.gates[gate as usize].hold();
    }

    /// Ends the hold of a gate; its next entry starts.
    ///
    /// # Panics
    /// If nobody holds the gate.
    pub fn release<T: Payload>(&mut self, release: Release<T>) {
        self.check_origin(release.from);
        match self.program.gates[release.gate as usize].release() {
            Some(Some(next)) => self.start_gate(release.to, release.place, next),
            Some(None) => {}
            None => panic!(
                "gate `{}` is released, but nobody holds it",
                self.program.name(release.to)
            ),
        }
    }

    /// Makes an activation of a join that starts after `counter` continuations to it.
    ///
    /// # Panics
    /// If `counter` is 0, or if the join is in another partition.
    #[inline]
    pub fn activate<T: Payload>(
        &mut self,
        edge: JoinEdge<T>,
        counter: u32,
    ) -> Result<Activation<T>, Pushback<()>> {
        self.check_origin(edge.from);
        assert!(counter > 0, "an activation with counter 0 would never start");
        assert!(edge.near, "a join is activated from its own partition");
        match self.program.joins[edge.join as usize].activate(counter) {
            Some((index, generation)) => Ok(Activation::new(index, generation)),
            None => Err(Pushback::new(Reason::ActivationsExhausted, ())),
        }
    }

    /// Continues to an activation: delivers its word, and starts the join if its counter reaches zero.
    ///
    /// A refusal (the queue is full, should the join start) has changed nothing.
    ///
    /// # Panics
    /// If the activation does not wait for a continuation (it has had all), or if the slot does not exist.
    #[inline]
    pub fn signal<T: Payload>(
        &mut self,
        edge: JoinEdge<T>,
        activation: Activation<T>,
        bring: Bring,
    ) -> Result<(), Pushback<()>> {
        self.check_origin(edge.from);
        if self.is_virtual() {
            let words = bring.into_words(activation.into_word());
            return self
                .issue(edge.to, edge.place, words, Kind::Signal)
                .map_err(|reason| Pushback::new(reason, ()));
        }
        if !self.surely_has_room() {
            self.counters.refused += 1;
            return Err(Pushback::new(Reason::QueueFull, ()));
        }
        match self.program.joins[edge.join as usize].signal(activation.index, activation.generation, bring) {
            Ok(None) => {}
            // Like a gate that has been locked: it must start.
            Ok(Some(words)) => self.start_gate(edge.to, edge.place, words),
            Err(_) => panic!(
                "join `{}` has had all its continuations",
                self.program.name(edge.to)
            ),
        }
        Ok(())
    }

    /// Starts a device operation. Its completion continues along `edge`, with `token` to tell it by.
    ///
    /// A refusal hands the operation back, and with it its buffer.
    ///
    /// # Panics
    /// If the operation's buffer is not the caller's to use, or if its length does not fit the buffer.
    pub fn submit(
        &mut self,
        edge: Edge<Completion>,
        operation: Operation,
        token: u64,
    ) -> Result<(), Pushback<Operation>> {
        self.check_origin(edge.from);
        let continuation = Continuation {
            words: [0; 4],
            stamp: self.now().0,
            thread: edge.to,
            place: edge.place,
            kind: Kind::Event,
        };
        self.world
            .submit(operation, token, continuation)
            .inspect(|()| self.counters.issued += 1)
            .map_err(|(reason, operation)| Pushback::new(reason, operation))
    }

    /// Takes a device buffer from the pool; `None` if all are in use or the executor has no devices.
    pub fn take_buffer(&mut self) -> Option<Buffer> {
        self.world.buffers()?.take()
    }

    /// Gives a device buffer back to the pool.
    ///
    /// # Panics
    /// If the buffer is in use or was given back already.
    pub fn return_buffer(&mut self, buffer: Buffer) {
        self.world
            .buffers()
            .expect("a buffer comes from a pool")
            .put_back(buffer);
    }

    /// The bytes of a device buffer.
    ///
    /// # Panics
    /// If the buffer is in use by an operation or another guard.
    pub fn buffer<'b>(&'b mut self, buffer: &'b mut Buffer) -> BufferGuard<'b> {
        self.world
            .buffers()
            .expect("a buffer comes from a pool")
            .lock(buffer)
    }

    /// The time now: when this thread runs, and in virtual time what it has [`spent`](Self::spend) in
    /// addition.
    pub fn now(&self) -> Time {
        match self.clockwork {
            Clockwork::Virtual { now } => now,
            Clockwork::Sampled { .. } => self.world.now(),
        }
    }

    /// In virtual time: says that the thread's work up to here took `ticks` more. On cores the work itself
    /// takes time, and this does nothing.
    pub fn spend(&mut self, ticks: u64) {
        if let Clockwork::Virtual { now } = &mut self.clockwork {
            *now = *now + ticks;
        }
    }

    /// The core that runs the thread (in virtual time: of its partition).
    pub fn core(&self) -> u16 {
        self.core
    }

    /// How many continuations are queued on this core.
    pub fn queued(&self) -> usize {
        self.local.len()
    }
}
