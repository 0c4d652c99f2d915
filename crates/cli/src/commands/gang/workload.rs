//! `sidestep gang workload`: small parallel programs to try coscheduling on.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use clap::{Args, ValueEnum};
use sidestep_gang_linux::memory::{PAGE, SharedMemory};
use sidestep_gang_linux::watch::userfault::{GuestRegion, Offer};
use sidestep_gang_linux::workload::{self, Class, Kernel, Pattern, Progress, Until};

use super::seconds;
use crate::commands::{Outcome, print};

/// Run a small parallel program: a kernel after the NAS Parallel Benchmarks, or threads that share pages in a pattern.
#[derive(Args)]
pub struct Workload {
    /// What to run
    #[arg(value_enum)]
    what: What,
    /// Threads of each job
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Independent jobs side by side, each with threads of its own
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Threads that only sleep, like idle vCPUs
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=256))]
    idle: u16,
    /// The size of a kernel's problem
    #[arg(long, value_enum, default_value_t = Size::S)]
    class: Size,
    /// How often each job runs its kernel
    #[arg(long, default_value_t = 1, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// How long: a kernel begins no run after it, a pattern ends
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    seconds: Option<Duration>,
    /// Pages that each pair of a pattern shares
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pages: u32,
    /// Stand for a VMM: offer a pattern's memory on this socket, for `gang watch --userfaultfd`
    #[arg(long, value_name = "SOCKET")]
    offer: Option<PathBuf>,
    /// A file that holds a pattern's memory, which processes with the same file share
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Random pairs, no communication
    Ep,
    /// Integer sort, all with all
    Is,
    /// Conjugate gradient, irregular
    Cg,
    /// Multigrid, neighbours
    Mg,
    /// Threads that share pages two by two
    Pairs,
    /// Threads that share pages with the next
    Ring,
    /// Threads that all share pages
    All,
    /// Threads that share nothing
    Nobody,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// Fractions of a second
    S,
    /// Seconds
    W,
}

impl Workload {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let threads = usize::from(self.threads);
        for _ in 0..self.idle {
            // They end with the process.
            std::thread::spawn(|| {
                loop {
                    std::thread::park();
                }
            });
        }
        let kernel = match self.what {
            What::Ep => Kernel::EmbarrassinglyParallel,
            What::Is => Kernel::IntegerSort,
            What::Cg => Kernel::ConjugateGradient,
            What::Mg => Kernel::Multigrid,
            What::Pairs => return self.share(Pattern::Pairs),
            What::Ring => return self.share(Pattern::Ring),
            What::All => return self.share(Pattern::All),
            What::Nobody => return self.share(Pattern::Nobody),
        };
        if self.offer.is_some() || self.memory.is_some() {
            let reason = "only patterns have memory to share; expected pairs, ring, all or nobody";
            return Err(format!("{reason} with --offer or --memory").into());
        }
        let progress = progress()?;
        let class = match self.class {
            Size::S => Class::S,
            Size::W => Class::W,
        };
        let until = self.seconds.map_or(Until::Runs(self.runs), Until::Elapsed);
        let done = workload::run_jobs(kernel, class, self.jobs.into(), threads, until, &progress);
        let summary = format!(
            "{} runs in {:.3} s, {} steps, {} (value {:.12e}, specified {:.12e})\n",
            done.runs,
            done.elapsed.as_secs_f64(),
            progress.steps(),
            if done.wrong == 0 {
                "verified".to_owned()
            } else {
                format!("{} WRONG", done.wrong)
            },
            done.last.value,
            done.last.expected
        );
        print(summary.as_bytes())?;
        Ok(if done.wrong == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn share(&self, pattern: Pattern) -> Outcome {
        let time = self.seconds.unwrap_or(Duration::from_secs(10));
        let (threads, pages) = (usize::from(self.threads), self.pages as usize);
        let (bytes, progress) = (pattern.bytes(threads, pages), progress()?);
        if self.offer.is_none() && self.memory.is_none() {
            // One page more, so that the part that is used can begin at a page's start.
            let words = (bytes + PAGE) / size_of::<AtomicU64>();
            let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(1)).collect();
            let to_page = memory
                .as_ptr()
                .align_offset(PAGE)
                .min(PAGE / size_of::<AtomicU64>());
            pattern.run(threads, pages, &memory[to_page..], time, &progress);
            return Ok(ExitCode::SUCCESS);
        }
        let memory = match &self.memory {
            Some(path) => SharedMemory::open(path, bytes)?,
            None => SharedMemory::new(bytes)?,
        };
        let region = GuestRegion {
            address: memory.address(),
            size: memory.bytes(),
            page_size: PAGE as u64,
        };
        // SAFETY: the offer is dropped before the memory, which stays mapped until then.
        let offer = |path: &PathBuf| unsafe { Offer::new(path, vec![region]) };
        let _offer = self.offer.as_ref().map(offer).transpose()?;
        pattern.run(threads, pages, memory.words(), time, &progress);
        Ok(ExitCode::SUCCESS)
    }
}

/// Where steps are counted.
fn progress() -> Result<Progress, String> {
    Progress::from_environment().map_err(|error| {
        format!(
            "cannot open the file named by {}: {error}",
            workload::PROGRESS_VARIABLE
        )
    })
}
