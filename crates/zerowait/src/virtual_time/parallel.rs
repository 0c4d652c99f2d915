//! Several host threads, one result.
//!
//! Time is cut into windows of one lookahead, each beginning at the earliest event of all partitions. Within
//! a window the partitions know nothing of each other: what one sends to another is due in a later window.
//! Between windows every partition takes in what was sent to it, in the order of the senders' numbers, so the
//! sequence numbers it gives do not depend on which host thread ran whom, nor when.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Barrier, Mutex};

use super::Config;
use super::partition::{Message, Partition};
use crate::program::Program;
use crate::time::Time;

/// The time of an event that never happens.
const NEVER: u64 = u64::MAX;

/// What the host threads share.
struct Exchange {
    /// What partition `s` sent to partition `d` in this window, at `s * partitions + d`.
    mail: Vec<Mutex<Vec<Message>>>,
    /// When each partition's next event happens.
    next: Vec<AtomicU64>,
    /// Where host threads meet, if there are several: even alone, a barrier costs a system call.
    barrier: Option<Barrier>,
}

impl Exchange {
    fn meet(&self) {
        if let Some(barrier) = &self.barrier {
            barrier.wait();
        }
    }
}

/// Runs all partitions up to and including `last`.
pub(super) fn run(program: &Program, partitions: &mut [Partition], config: &Config, last: Time) {
    let count = partitions.len();
    let per_thread = count.div_ceil(config.host_threads.min(count));
    let threads = count.div_ceil(per_thread);
    let exchange = Exchange {
        mail: (0..count * count).map(|_| Mutex::default()).collect(),
        next: partitions
            .iter()
            .map(|partition| AtomicU64::new(next_time(partition)))
            .collect(),
        barrier: (threads > 1).then(|| Barrier::new(threads)),
    };
    std::thread::scope(|scope| {
        let mut shares = partitions.chunks_mut(per_thread);
        let own = shares.next().expect("there is a partition");
        for share in shares {
            let exchange = &exchange;
            scope.spawn(move || run_share(program, share, exchange, config, last));
        }
        run_share(program, own, &exchange, config, last);
    });
}

fn next_time(partition: &Partition) -> u64 {
    partition.next_time().map_or(NEVER, |time| time.0)
}

fn run_share(program: &Program, share: &mut [Partition], exchange: &Exchange, config: &Config, last: Time) {
    let count = exchange.next.len();
    loop {
        // Every host thread computes the same window: `next` changes only between the two barriers.
        let begin = exchange
            .next
            .iter()
            .map(|next| next.load(Relaxed))
            .min()
            .unwrap_or(NEVER);
        if begin == NEVER || begin > last.0 {
            return;
        }
        let window = if count == 1 {
            last
        } else {
            Time(begin + (config.lookahead - 1)).min(last)
        };
        let end = window + 1;
        for partition in &mut *share {
            partition.run_window(program, end);
            for destination in 0..count {
                let mail = &exchange.mail[partition.index() as usize * count + destination];
                partition.hand_over(destination, &mut mail.lock().expect("no panic holds it"));
            }
        }
        exchange.meet();
        for partition in &mut *share {
            for source in 0..count {
                let mail = &exchange.mail[source * count + partition.index() as usize];
                partition.take_in(program, &mut mail.lock().expect("no panic holds it"));
            }
            exchange.next[partition.index() as usize].store(next_time(partition), Relaxed);
        }
        exchange.meet();
    }
}
