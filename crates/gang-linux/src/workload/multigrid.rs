//! MG: V-cycles of a multigrid solver for the Poisson equation on a periodic cube; the norm of the residual is checked.
//!
//! The four operators weigh the 27 points around a point by their distance: itself, six faces, twelve edges, eight
//! corners. A coarse point lies at the odd fine points, as in the specification.

use super::random::Stream;
use super::team::{Reduction, SharedVector, run_team, share};
use super::{Barrier, Class, Progress, Verification};

const SEED: u64 = 314_159_265;
const CHARGES: usize = 10;

/// Weights by distance: the point, faces, edges, corners.
type Weights = [f64; 4];
const RESIDUAL: Weights = [-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0];
const SMOOTHER: Weights = [-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0];
const RESTRICTION: Weights = [0.5, 0.25, 0.125, 0.0625];

/// A cube of points, periodic in each direction; its side is a power of two.
struct Grid {
    side: usize,
    points: SharedVector,
}

impl Grid {
    fn zeros(side: usize) -> Self {
        Self {
            side,
            points: SharedVector::zeros(side * side * side),
        }
    }

    #[inline]
    fn index(&self, x: usize, y: usize, z: usize) -> usize {
        let mask = self.side - 1;
        ((z & mask) * self.side + (y & mask)) * self.side + (x & mask)
    }

    #[inline]
    fn get(&self, x: usize, y: usize, z: usize) -> f64 {
        self.points.get(self.index(x, y, z))
    }

    /// The weighted sum of the points around one. Neighbours before zero wrap around.
    fn weighted(&self, weights: &Weights, x: usize, y: usize, z: usize) -> f64 {
        let mut sums = [0.0; 4];
        for (dz, far_z) in [(self.side - 1, 1), (0, 0), (1, 1)] {
            for (dy, far_y) in [(self.side - 1, 1), (0, 0), (1, 1)] {
                for (dx, far_x) in [(self.side - 1, 1), (0, 0), (1, 1)] {
                    sums[far_x + far_y + far_z] += self.get(x + dx, y + dy, z + dz);
                }
            }
        }
        sums.iter().zip(weights).map(|(sum, weight)| sum * weight).sum()
    }
}

/// One thread's view of the team: which planes it works on, and how it waits.
struct Worker<'a> {
    thread: usize,
    threads: usize,
    barrier: &'a Barrier,
}

impl Worker<'_> {
    /// Calls a function for each point of this thread's planes, then waits for all.
    fn each_point(&self, side: usize, mut work: impl FnMut(usize, usize, usize)) {
        for z in share(side, self.thread, self.threads) {
            for y in 0..side {
                for x in 0..side {
                    work(x, y, z);
                }
            }
        }
        self.barrier.wait();
    }

    /// `residual = right - A solution`.
    fn residual(&self, solution: &Grid, right: &Grid, residual: &Grid) {
        self.each_point(solution.side, |x, y, z| {
            let value = right.get(x, y, z) - solution.weighted(&RESIDUAL, x, y, z);
            residual.points.set(residual.index(x, y, z), value);
        });
    }

    /// `solution += S residual`.
    fn smooth(&self, residual: &Grid, solution: &Grid) {
        self.each_point(solution.side, |x, y, z| {
            let value = solution.get(x, y, z) + residual.weighted(&SMOOTHER, x, y, z);
            solution.points.set(solution.index(x, y, z), value);
        });
    }

    fn restrict(&self, fine: &Grid, coarse: &Grid) {
        self.each_point(coarse.side, |x, y, z| {
            let value = fine.weighted(&RESTRICTION, 2 * x + 1, 2 * y + 1, 2 * z + 1);
            coarse.points.set(coarse.index(x, y, z), value);
        });
    }

    /// Adds the coarse grid to the fine one, between its points the mean of those around.
    fn prolong(&self, coarse: &Grid, fine: &Grid) {
        self.each_point(fine.side, |x, y, z| {
            // Fine point 2c + 1 is coarse point c; fine point 2c + 2 is between c and c + 1.
            let around = |fine: usize| {
                let below = (fine + coarse.side * 2 - 1) / 2;
                (below, below + usize::from(fine.is_multiple_of(2)))
            };
            let ((x0, x1), (y0, y1), (z0, z1)) = (around(x), around(y), around(z));
            let mut sum = 0.0;
            for z in [z0, z1] {
                for y in [y0, y1] {
                    sum += coarse.get(x0, y, z) + coarse.get(x1, y, z);
                }
            }
            fine.points
                .set(fine.index(x, y, z), fine.get(x, y, z) + sum / 8.0);
        });
    }

    fn clear(&self, grid: &Grid) {
        self.each_point(grid.side, |x, y, z| grid.points.set(grid.index(x, y, z), 0.0));
    }
}

/// Runs MG. The norm is specified to a relative error of 1e-8.
pub fn run(class: Class, threads: usize, progress: &Progress) -> Verification {
    let (levels, iterations, expected) = match class {
        Class::S => (5, 4, 0.530_770_700_573_4e-4),
        Class::W => (7, 4, 0.646_732_937_533_9e-5),
    };
    let grids = || {
        (1..=levels)
            .map(|level| Grid::zeros(1 << level))
            .collect::<Vec<_>>()
    };
    let (solutions, residuals) = (grids(), grids());
    let right = charges(1 << levels);
    let (barrier, sums) = (Barrier::new(threads), Reduction::new(threads));
    let norm = SharedVector::zeros(1);
    run_team(threads, |thread| {
        let worker = Worker {
            thread,
            threads,
            barrier: &barrier,
        };
        let (solution, residual) = (&solutions[levels - 1], &residuals[levels - 1]);
        worker.residual(solution, &right, residual);
        for _ in 0..iterations {
            cycle(&worker, &solutions, &residuals, &right, || {
                if thread == 0 {
                    progress.step();
                }
            });
            worker.residual(solution, &right, residual);
        }
        let square: f64 = share(residual.points.len(), thread, threads)
            .map(|index| residual.points.get(index).powi(2))
            .sum();
        let square = sums.sum(thread, square, &barrier);
        if thread == 0 {
            norm.set(0, (square / residual.points.len() as f64).sqrt());
        }
    });
    Verification::close(norm.get(0), expected, 1e-8)
}

/// One V-cycle: down to the coarsest grid by restriction, up again with a correction on each level.
fn cycle(worker: &Worker<'_>, solutions: &[Grid], residuals: &[Grid], right: &Grid, step: impl Fn()) {
    let top = solutions.len() - 1;
    for level in (0..top).rev() {
        worker.restrict(&residuals[level + 1], &residuals[level]);
    }
    worker.clear(&solutions[0]);
    worker.smooth(&residuals[0], &solutions[0]);
    step();
    for level in 1..=top {
        if level < top {
            worker.clear(&solutions[level]);
        }
        worker.prolong(&solutions[level - 1], &solutions[level]);
        let right = if level < top { &residuals[level] } else { right };
        worker.residual(&solutions[level], right, &residuals[level]);
        worker.smooth(&residuals[level], &solutions[level]);
        step();
    }
}

/// The right-hand side: +1 at the places of the ten largest random numbers, -1 at those of the ten smallest.
fn charges(side: usize) -> Grid {
    let grid = Grid::zeros(side);
    let mut numbers = Stream::new(SEED);
    let mut places: Vec<(f64, usize)> = (0..grid.points.len())
        .map(|place| (numbers.next(), place))
        .collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0));
    for &(_, place) in &places[..CHARGES] {
        grid.points.set(place, -1.0);
    }
    for &(_, place) in &places[places.len() - CHARGES..] {
        grid.points.set(place, 1.0);
    }
    grid
}
