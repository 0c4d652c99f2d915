//! Small parallel programs to try coscheduling on: four kernels after the public specification of the NAS Parallel
//! Benchmarks, each with its verification values, and threads that share pages in a known pattern.
//!
//! Threads wait for each other as OpenMP programs often do: they spin for a while, then offer their core to others
//! again and again, but never sleep. That is what makes a thread wait in vain when its sibling has no core.

mod conjugate_gradient;
mod embarrassingly_parallel;
mod integer_sort;
mod multigrid;
mod pattern;
mod progress;
mod random;
mod team;

pub use pattern::Pattern;
pub use progress::{PROGRESS_VARIABLE, Progress, ProgressFile};
pub use team::Barrier;

use std::time::{Duration, Instant};

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// EP: random pairs, no communication.
    EmbarrassinglyParallel,
    /// IS: bucket sort of integers, communication of all with all.
    IntegerSort,
    /// CG: conjugate gradient on a random sparse matrix, irregular communication.
    ConjugateGradient,
    /// MG: multigrid V-cycles, communication with neighbours.
    Multigrid,
}

/// The size of a kernel's problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Sample: fractions of a second.
    S,
    /// Workstation: seconds.
    W,
}

/// A kernel's result, held against the specification's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verification {
    /// Whether the result is right.
    pub is_right: bool,
    /// The value that is checked; for IS how many of its checks held.
    pub value: f64,
    /// What it should be.
    pub expected: f64,
}

impl Verification {
    fn close(value: f64, expected: f64, tolerance: f64) -> Self {
        Self {
            is_right: ((value - expected) / expected).abs() <= tolerance,
            value,
            expected,
        }
    }
}

impl Kernel {
    /// All kernels, with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("ep", Self::EmbarrassinglyParallel),
        ("is", Self::IntegerSort),
        ("cg", Self::ConjugateGradient),
        ("mg", Self::Multigrid),
    ];

    /// Runs the kernel once with a team of threads; each step of the computation is counted in `progress`.
    ///
    /// # Panics
    /// Without threads.
    pub fn run(self, class: Class, threads: usize, progress: &Progress) -> Verification {
        assert!(threads > 0, "a team has at least one thread");
        match self {
            Self::EmbarrassinglyParallel => embarrassingly_parallel::run(class, threads, progress),
            Self::IntegerSort => integer_sort::run(class, threads, progress),
            Self::ConjugateGradient => conjugate_gradient::run(class, threads, progress),
            Self::Multigrid => multigrid::run(class, threads, progress),
        }
    }
}

/// What some jobs did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// Runs that were finished, of all jobs.
    pub runs: u64,
    /// Runs whose result was wrong.
    pub wrong: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// The last result.
    pub last: Verification,
}

/// How long jobs go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Each job so many runs.
    Runs(u64),
    /// Until no job begins another run after this time; each makes at least one.
    Elapsed(Duration),
}

/// Runs independent jobs side by side, each with its own team of threads.
///
/// # Panics
/// Without jobs or threads.
pub fn run_jobs(
    kernel: Kernel,
    class: Class,
    jobs: usize,
    threads: usize,
    until: Until,
    progress: &Progress,
) -> Done {
    assert!(jobs > 0, "there is at least one job");
    let began = Instant::now();
    let job = || {
        let (mut runs, mut wrong) = (0, 0);
        loop {
            let last = kernel.run(class, threads, progress);
            runs += 1;
            wrong += u64::from(!last.is_right);
            let is_over = match until {
                Until::Runs(limit) => runs >= limit,
                Until::Elapsed(limit) => began.elapsed() >= limit,
            };
            if is_over {
                return (runs, wrong, last);
            }
        }
    };
    let results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs).map(|_| scope.spawn(job)).collect();
        let own = job();
        let mut results = vec![own];
        results.extend(
            others
                .into_iter()
                .map(|other| other.join().expect("a job does not panic")),
        );
        results
    });
    Done {
        runs: results.iter().map(|(runs, ..)| runs).sum(),
        wrong: results.iter().map(|(_, wrong, _)| wrong).sum(),
        elapsed: began.elapsed(),
        last: results[0].2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_gives_the_specified_value_with_any_number_of_threads() {
        for (name, kernel) in Kernel::ALL {
            // EP's sample is a second of work without optimisation; two teams of it are enough.
            for threads in [1, 2] {
                let result = kernel.run(Class::S, threads, &Progress::none());
                assert!(result.is_right, "{name} with {threads} threads: {result:?}");
            }
        }
        for kernel in [Kernel::IntegerSort, Kernel::ConjugateGradient, Kernel::Multigrid] {
            assert!(kernel.run(Class::S, 3, &Progress::none()).is_right);
        }
    }

    #[test]
    fn jobs_are_counted_and_make_progress() {
        let progress = Progress::none();
        let done = run_jobs(Kernel::IntegerSort, Class::S, 2, 1, Until::Runs(2), &progress);
        assert_eq!((done.runs, done.wrong), (4, 0));
        assert!(progress.steps() > 0);
    }
}
