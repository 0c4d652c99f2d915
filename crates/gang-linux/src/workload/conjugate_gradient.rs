//! CG: the largest eigenvalue of a random sparse matrix by inverse iteration, each step a conjugate-gradient solution.
//!
//! The matrix is a weighted sum of outer products of random sparse vectors, as the specification describes it.

use std::collections::BTreeMap;

use super::random::Stream;
use super::team::{Reduction, SharedVector, run_team, share};
use super::{Barrier, Class, Progress, Verification};

const SEED: u64 = 314_159_265;
const CONDITION: f64 = 0.1;
const INNER_ITERATIONS: usize = 25;

struct Problem {
    order: usize,
    nonzeros: usize,
    iterations: usize,
    shift: f64,
    eigenvalue: f64,
}

fn problem(class: Class) -> Problem {
    match class {
        Class::S => Problem {
            order: 1400,
            nonzeros: 7,
            iterations: 15,
            shift: 10.0,
            eigenvalue: 8.597_177_507_864_8,
        },
        Class::W => Problem {
            order: 7000,
            nonzeros: 8,
            iterations: 15,
            shift: 12.0,
            eigenvalue: 10.362_595_087_124,
        },
    }
}

/// A sparse matrix by rows.
struct Sparse {
    /// Where each row begins among the elements; one more than there are rows.
    starts: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
}

impl Sparse {
    fn generate(problem: &Problem) -> Self {
        let order = problem.order;
        let mut numbers = Stream::new(SEED);
        // The specification draws one number before the matrix.
        numbers.next();
        let mut rows: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); order];
        let ratio = CONDITION.powf(1.0 / order as f64);
        let mut size = 1.0;
        for row in 0..order {
            let mut vector = random_vector(&mut numbers, order, problem.nonzeros);
            match vector.iter_mut().find(|(place, _)| *place == row) {
                Some((_, value)) => *value = 0.5,
                None => vector.push((row, 0.5)),
            }
            for &(column, factor) in &vector {
                for &(place, value) in &vector {
                    *rows[place].entry(column).or_insert(0.0) += value * factor * size;
                }
            }
            size *= ratio;
        }
        let mut matrix = Self {
            starts: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
        };
        for (row, mut elements) in rows.into_iter().enumerate() {
            *elements.entry(row).or_insert(0.0) += CONDITION - problem.shift;
            matrix.columns.extend(elements.keys());
            matrix.values.extend(elements.values());
            matrix.starts.push(matrix.values.len());
        }
        matrix
    }

    fn row_times(&self, row: usize, vector: &SharedVector) -> f64 {
        let range = self.starts[row]..self.starts[row + 1];
        range
            .map(|element| self.values[element] * vector.get(self.columns[element]))
            .sum()
    }
}

/// Distinct places below `order` with random values.
fn random_vector(numbers: &mut Stream, order: usize, nonzeros: usize) -> Vec<(usize, f64)> {
    let power = order.next_power_of_two() as f64;
    let mut vector: Vec<(usize, f64)> = Vec::with_capacity(nonzeros + 1);
    while vector.len() < nonzeros {
        let value = numbers.next();
        let place = (power * numbers.next()) as usize;
        if place < order && vector.iter().all(|&(other, _)| other != place) {
            vector.push((place, value));
        }
    }
    vector
}

/// The vectors of the method, named as in the specification.
struct Vectors {
    x: SharedVector,
    z: SharedVector,
    p: SharedVector,
    q: SharedVector,
    r: SharedVector,
}

/// Runs CG. The eigenvalue is specified to an error of 1e-10.
pub fn run(class: Class, threads: usize, progress: &Progress) -> Verification {
    let problem = problem(class);
    let matrix = Sparse::generate(&problem);
    let zeros = || SharedVector::zeros(problem.order);
    let vectors = Vectors {
        x: zeros(),
        z: zeros(),
        p: zeros(),
        q: zeros(),
        r: zeros(),
    };
    let (barrier, sums) = (Barrier::new(threads), Reduction::new(threads));
    let eigenvalue = SharedVector::zeros(1);
    run_team(threads, |thread| {
        let rows = share(problem.order, thread, threads);
        for row in rows.clone() {
            vectors.x.set(row, 1.0);
        }
        barrier.wait();
        for _ in 0..problem.iterations {
            let dot = |left: &SharedVector, right: &SharedVector| {
                let part = rows.clone().map(|row| left.get(row) * right.get(row)).sum();
                sums.sum(thread, part, &barrier)
            };
            solve(&matrix, &vectors, rows.clone(), &barrier, dot, || {
                if thread == 0 {
                    progress.step();
                }
            });
            let (xz, zz) = (dot(&vectors.x, &vectors.z), dot(&vectors.z, &vectors.z));
            for row in rows.clone() {
                vectors.x.set(row, vectors.z.get(row) / zz.sqrt());
            }
            if thread == 0 {
                eigenvalue.set(0, problem.shift + 1.0 / xz);
            }
            barrier.wait();
        }
    });
    Verification::close(eigenvalue.get(0), problem.eigenvalue, 1e-10)
}

/// Solves A z = x approximately, by a fixed number of steps.
fn solve(
    matrix: &Sparse,
    Vectors { x, z, p, q, r }: &Vectors,
    rows: std::ops::Range<usize>,
    barrier: &Barrier,
    dot: impl Fn(&SharedVector, &SharedVector) -> f64,
    step: impl Fn(),
) {
    for row in rows.clone() {
        z.set(row, 0.0);
        r.set(row, x.get(row));
        p.set(row, x.get(row));
    }
    let mut rho = dot(r, r);
    for _ in 0..INNER_ITERATIONS {
        for row in rows.clone() {
            q.set(row, matrix.row_times(row, p));
        }
        let alpha = rho / dot(p, q);
        for row in rows.clone() {
            z.set(row, z.get(row) + alpha * p.get(row));
            r.set(row, r.get(row) - alpha * q.get(row));
        }
        let before = rho;
        rho = dot(r, r);
        for row in rows.clone() {
            p.set(row, r.get(row) + rho / before * p.get(row));
        }
        barrier.wait();
        step();
    }
}
