//! What the threads of a kernel share: a barrier, a vector, a sum.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Turns that a waiting thread spins before it first offers its core to others.
const SPINS_MAX: u32 = 10_000;

/// A barrier whose waiting threads spin, then yield, and never sleep.
#[derive(Debug)]
pub struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
}

impl Barrier {
    /// A barrier for a number of threads.
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
        }
    }

    /// Waits until all threads have called this.
    pub fn wait(&self) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation
                .store(generation.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            if spins < SPINS_MAX {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// Numbers that several threads read and write; barriers say who may when.
#[derive(Debug)]
pub struct SharedVector {
    bits: Box<[AtomicU64]>,
}

impl SharedVector {
    /// Zeros.
    pub fn zeros(length: usize) -> Self {
        Self {
            bits: (0..length).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// An element.
    #[inline]
    pub fn get(&self, index: usize) -> f64 {
        f64::from_bits(self.bits[index].load(Ordering::Relaxed))
    }

    /// Sets an element.
    #[inline]
    pub fn set(&self, index: usize, value: f64) {
        self.bits[index].store(value.to_bits(), Ordering::Relaxed);
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.bits.len()
    }
}

/// The part of `length` items that one of some threads works on.
pub fn share(length: usize, thread: usize, threads: usize) -> Range<usize> {
    length * thread / threads..length * (thread + 1) / threads
}

/// Runs a function on every thread of a team; the caller is thread zero.
pub fn run_team(threads: usize, work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let work = &work;
            scope.spawn(move || work(thread));
        }
        work(0);
    });
}

/// A sum over all threads, the same for each: partial sums are added in the order of the threads.
pub struct Reduction {
    parts: SharedVector,
}

impl Reduction {
    /// For a number of threads.
    pub fn new(threads: usize) -> Self {
        Self {
            parts: SharedVector::zeros(threads),
        }
    }

    /// Adds up what all threads bring.
    pub fn sum(&self, thread: usize, part: f64, barrier: &Barrier) -> f64 {
        self.parts.set(thread, part);
        barrier.wait();
        let sum = (0..self.parts.len()).map(|thread| self.parts.get(thread)).sum();
        // Nobody may write the next part before all have read this one.
        barrier.wait();
        sum
    }
}
