//! EP: pairs of Gaussian deviates from uniform random numbers; the sums of both coordinates are checked.

use super::random::Stream;
use super::team::{Reduction, run_team, share};
use super::{Barrier, Class, Progress, Verification};

const SEED: u64 = 271_828_183;
/// Pairs in a batch, the unit of work that threads take.
const BATCH: u64 = 1 << 16;

/// Runs EP. Sums are specified to a relative error of 1e-8.
pub fn run(class: Class, threads: usize, progress: &Progress) -> Verification {
    let (pairs, expected_x, expected_y) = match class {
        Class::S => (1_u64 << 24, -3.247_834_652_034_74e3, -6.958_407_078_382_297e3),
        Class::W => (1_u64 << 25, -2.863_319_731_645_753e3, -6.320_053_679_109_499e3),
    };
    let batches = (pairs / BATCH) as usize;
    let (barrier, sums) = (Barrier::new(threads), Reduction::new(threads));
    let result = std::sync::Mutex::new((0.0, 0.0));
    run_team(threads, |thread| {
        let (mut x, mut y) = (0.0, 0.0);
        for batch in share(batches, thread, threads) {
            let (batch_x, batch_y) = sum_of_batch(batch as u64);
            x += batch_x;
            y += batch_y;
            progress.step();
        }
        let x = sums.sum(thread, x, &barrier);
        let y = sums.sum(thread, y, &barrier);
        if thread == 0 {
            *result.lock().expect("no thread panics") = (x, y);
        }
    });
    let (x, y) = result.into_inner().expect("no thread panics");
    let (by_x, by_y) = (
        Verification::close(x, expected_x, 1e-8),
        Verification::close(y, expected_y, 1e-8),
    );
    Verification {
        is_right: by_x.is_right && by_y.is_right,
        ..by_x
    }
}

fn sum_of_batch(batch: u64) -> (f64, f64) {
    let mut numbers = Stream::new(SEED).skip(2 * BATCH * batch);
    let (mut sum_x, mut sum_y) = (0.0, 0.0);
    for _ in 0..BATCH {
        let (x, y) = (2.0 * numbers.next() - 1.0, 2.0 * numbers.next() - 1.0);
        let square = x * x + y * y;
        if square <= 1.0 {
            let factor = (-2.0 * square.ln() / square).sqrt();
            sum_x += x * factor;
            sum_y += y * factor;
        }
    }
    (sum_x, sum_y)
}
