//! How long a processor has been waiting in a loop of `hint @pause`, as hosts notice it of their guests.

/// Instructions between two pauses of one loop, at most.
const GAP: u64 = 64;
/// Pauses in a row after which a loop is long. With a few instructions each that is about what hardware takes for long
/// by its own measure, a pause-loop exit's window of 4,096 cycles.
const LONG: u32 = 128;

/// The pauses that a processor has executed in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pauses {
    /// How many instructions had retired at the last one.
    last: u64,
    in_a_row: u32,
}

impl Pauses {
    /// Notes a pause, after `retired` instructions; answers whether it is time to let others go on, which begins the
    /// count anew.
    pub fn is_long(&mut self, retired: u64) -> bool {
        self.in_a_row = match retired.wrapping_sub(self.last) <= GAP {
            true => self.in_a_row + 1,
            false => 0,
        };
        self.last = retired;
        let is_long = self.in_a_row >= LONG;
        if is_long {
            self.in_a_row = 0;
        }
        is_long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_long_after_so_many_pauses_close_together() {
        let mut pauses = Pauses::default();
        let mut long = |step: u64| (1..=1000).filter(|&at| pauses.is_long(at * step)).count();
        assert_eq!(long(4), 7, "1000 pauses are seven times 128 and some");
        assert_eq!(long(GAP + 1), 0, "pauses far apart are no loop");
    }
}
