//! The sharing matrix: how many communication events each pair of tasks had.
//!
//! Symmetric, the diagonal is zero. Counts saturate instead of wrapping. [`SharingMatrix::decay`] lets old events
//! fade so that the matrix follows a program's phases; [`SharingMatrix::reset`] forgets everything (the paper resets
//! after a benchmark has started, so that initialisation and shared libraries do not count).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::identity::TaskId;

/// The most tasks a matrix holds: the exact arithmetic of dependency values relies on it.
pub const TASKS_MAX: usize = 1 << 16;

/// Communication events of every pair of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingMatrix {
    tasks: usize,
    /// The lower triangle by rows: pair (row, column) with column < row is at row * (row - 1) / 2 + column.
    events: Vec<u64>,
}

/// Why a table of numbers is not a sharing matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// More tasks than the arithmetic allows.
    #[error("{tasks} tasks: a sharing matrix holds at most {TASKS_MAX}")]
    TooManyTasks {
        /// How many there are.
        tasks: usize,
    },
    /// A row's length is not the number of rows.
    #[error("row {row} has {columns} columns, expected {tasks} as there are {tasks} rows")]
    NotSquare {
        /// The row, from zero.
        row: usize,
        /// Its length.
        columns: usize,
        /// The number of rows.
        tasks: usize,
    },
    /// Two cells that name the same pair differ.
    #[error(
        "row {row}, column {column} is {count} but row {column}, column {row} is {mirrored}; they name one pair"
    )]
    NotSymmetric {
        /// The row, from zero.
        row: usize,
        /// The column, from zero.
        column: usize,
        /// The cell's count.
        count: u64,
        /// The count across the diagonal.
        mirrored: u64,
    },
    /// A task communicates with itself.
    #[error("row {task}, column {task} is {count}: a task has no communication with itself, expected 0")]
    Diagonal {
        /// The task.
        task: usize,
        /// The cell's count.
        count: u64,
    },
}

impl SharingMatrix {
    /// A matrix without events.
    ///
    /// # Panics
    /// Beyond [`TASKS_MAX`] tasks.
    pub fn new(tasks: usize) -> Self {
        assert!(
            tasks <= TASKS_MAX,
            "a sharing matrix holds at most {TASKS_MAX} tasks"
        );
        Self {
            tasks,
            events: vec![0; tasks * tasks.saturating_sub(1) / 2],
        }
    }

    /// The matrix with these rows.
    ///
    /// # Errors
    /// When the rows are not square, symmetric and zero on the diagonal.
    pub fn from_rows(rows: &[Vec<u64>]) -> Result<Self, MatrixError> {
        let tasks = rows.len();
        if tasks > TASKS_MAX {
            return Err(MatrixError::TooManyTasks { tasks });
        }
        if let Some((row, cells)) = rows.iter().enumerate().find(|(_, cells)| cells.len() != tasks) {
            return Err(MatrixError::NotSquare {
                row,
                columns: cells.len(),
                tasks,
            });
        }
        let mut matrix = Self::new(tasks);
        for (row, cells) in rows.iter().enumerate() {
            if cells[row] != 0 {
                return Err(MatrixError::Diagonal {
                    task: row,
                    count: cells[row],
                });
            }
            for column in 0..row {
                let (count, mirrored) = (cells[column], rows[column][row]);
                if count != mirrored {
                    return Err(MatrixError::NotSymmetric {
                        row,
                        column,
                        count,
                        mirrored,
                    });
                }
                matrix.record(TaskId::new(row), TaskId::new(column), count);
            }
        }
        Ok(matrix)
    }

    /// All rows, the diagonal included.
    pub fn rows(&self) -> Vec<Vec<u64>> {
        let cell = |row, column| self.events(TaskId::new(row), TaskId::new(column));
        (0..self.tasks)
            .map(|row| (0..self.tasks).map(|column| cell(row, column)).collect())
            .collect()
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// The events of a pair; zero for a task with itself.
    pub fn events(&self, left: TaskId, right: TaskId) -> u64 {
        self.cell(left, right).map_or(0, |cell| self.events[cell])
    }

    /// Counts further events of a pair; a task with itself counts nothing.
    pub fn record(&mut self, left: TaskId, right: TaskId, events: u64) {
        if let Some(cell) = self.cell(left, right) {
            self.events[cell] = self.events[cell].saturating_add(events);
        }
    }

    /// All events of all pairs.
    pub fn total(&self) -> u128 {
        self.events.iter().map(|&count| u128::from(count)).sum()
    }

    /// Makes room for more tasks; those already there keep their events.
    pub fn grow(&mut self, tasks: usize) {
        assert!(
            tasks <= TASKS_MAX,
            "a sharing matrix holds at most {TASKS_MAX} tasks"
        );
        if tasks > self.tasks {
            self.tasks = tasks;
            self.events.resize(tasks * (tasks - 1) / 2, 0);
        }
    }

    /// Forgets one task's events: its number may now name another task.
    pub fn forget(&mut self, task: TaskId) {
        for other in 0..self.tasks {
            if let Some(cell) = self.cell(task, TaskId::new(other)) {
                self.events[cell] = 0;
            }
        }
    }

    /// Forgets every event.
    pub fn reset(&mut self) {
        self.events.fill(0);
    }

    /// Scales every count by `keep / of`, rounded down, so that a count that is not renewed reaches zero.
    ///
    /// # Panics
    /// When `keep > of` or `of` is zero.
    pub fn decay(&mut self, keep: u32, of: u32) {
        assert!(keep <= of && of > 0, "decay keeps a part of the whole");
        for count in &mut self.events {
            *count = (u128::from(*count) * u128::from(keep) / u128::from(of)) as u64;
        }
    }

    /// Takes `lose / of` of every count away, rounded down, so that a small count stays until others outweigh it.
    ///
    /// # Panics
    /// When `lose > of` or `of` is zero.
    pub fn fade(&mut self, lose: u32, of: u32) {
        assert!(lose <= of && of > 0, "a part of the whole fades");
        for count in &mut self.events {
            *count -= (u128::from(*count) * u128::from(lose) / u128::from(of)) as u64;
        }
    }

    /// The matrix of some of the tasks, renumbered in the given order.
    pub fn restricted_to(&self, tasks: &[TaskId]) -> Self {
        let mut part = Self::new(tasks.len());
        for (row, &left) in tasks.iter().enumerate() {
            for (column, &right) in tasks[..row].iter().enumerate() {
                part.record(TaskId::new(row), TaskId::new(column), self.events(left, right));
            }
        }
        part
    }

    fn cell(&self, left: TaskId, right: TaskId) -> Option<usize> {
        let (row, column) = (left.index().max(right.index()), left.index().min(right.index()));
        assert!(row < self.tasks, "task {row} of a matrix of {} tasks", self.tasks);
        (row != column).then(|| row * (row - 1) / 2 + column)
    }
}

impl Serialize for SharingMatrix {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.rows().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharingMatrix {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rows = Vec::<Vec<u64>>::deserialize(deserializer)?;
        Self::from_rows(&rows).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for SharingMatrix {
    /// A table with the task numbers at the top and on the left; the diagonal is blank.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = self.events.iter().max().copied().unwrap_or(0).to_string().len();
        let width = largest.max(self.tasks.saturating_sub(1).to_string().len()) + 1;
        write!(formatter, "{:width$}", "")?;
        for column in 0..self.tasks {
            write!(formatter, " {column:>width$}")?;
        }
        for row in 0..self.tasks {
            write!(formatter, "\n{row:>width$}")?;
            for column in 0..self.tasks {
                if row == column {
                    write!(formatter, " {:>width$}", "")?;
                } else {
                    write!(
                        formatter,
                        " {:>width$}",
                        self.events(TaskId::new(row), TaskId::new(column))
                    )?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pair_is_one_cell_whichever_way_it_is_named() {
        let mut matrix = SharingMatrix::new(3);
        matrix.record(TaskId(0), TaskId(2), 4);
        matrix.record(TaskId(2), TaskId(0), 1);
        matrix.record(TaskId(1), TaskId(1), 9);
        assert_eq!(matrix.events(TaskId(2), TaskId(0)), 5);
        assert_eq!(matrix.total(), 5);
        matrix.grow(5);
        assert_eq!(matrix.events(TaskId(0), TaskId(2)), 5);
        matrix.forget(TaskId(0));
        assert_eq!(matrix.total(), 0);
    }

    #[test]
    fn decay_reaches_zero_and_counts_saturate() {
        let mut matrix = SharingMatrix::new(2);
        matrix.record(TaskId(0), TaskId(1), u64::MAX);
        matrix.record(TaskId(0), TaskId(1), 1);
        assert_eq!(matrix.events(TaskId(0), TaskId(1)), u64::MAX);
        for _ in 0..64 {
            matrix.decay(1, 2);
        }
        assert_eq!(matrix.total(), 0);
    }

    #[test]
    fn what_fades_keeps_small_counts() {
        let mut matrix = SharingMatrix::new(3);
        matrix.record(TaskId(0), TaskId(1), 99);
        matrix.record(TaskId(1), TaskId(2), 250);
        for _ in 0..1000 {
            matrix.fade(10, 1000);
        }
        assert_eq!(matrix.events(TaskId(0), TaskId(1)), 99);
        assert_eq!(matrix.events(TaskId(1), TaskId(2)), 99);
    }

    #[test]
    fn malformed_rows_are_named() {
        let error = |rows: &[Vec<u64>]| SharingMatrix::from_rows(rows).expect_err("an error");
        assert!(matches!(
            error(&[vec![0, 1]]),
            MatrixError::NotSquare {
                row: 0,
                columns: 2,
                tasks: 1
            }
        ));
        assert!(matches!(
            error(&[vec![0, 1], vec![2, 0]]),
            MatrixError::NotSymmetric {
                row: 1,
                column: 0,
                ..
            }
        ));
        assert!(matches!(
            error(&[vec![3]]),
            MatrixError::Diagonal { task: 0, count: 3 }
        ));
    }

    proptest! {
        #[test]
        fn rows_round_trip(events in proptest::collection::vec(0_u64.., 10)) {
            let mut matrix = SharingMatrix::new(5);
            matrix.events = events;
            prop_assert_eq!(SharingMatrix::from_rows(&matrix.rows()), Ok(matrix));
        }
    }
}
