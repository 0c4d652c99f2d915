//! Power management: the fixed registers of ACPI that an operating system needs to switch off.
//!
//! PM1 status and enable (2 bytes each), PM1 control (2 bytes at 4), the power management timer (4 bytes at 8) and
//! the reset register (1 byte at 12).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bus::Device;
use crate::machine::ending::{Ending, Request};
use crate::machine::timeline::{TICKS_PER_SECOND, Timeline};

/// Bytes of registers.
pub const SIZE: u64 = 0x1_0000;
/// Offset of PM1 status and enable.
pub const EVENT: u64 = 0;
/// Offset of PM1 enable.
const EVENT_ENABLE: u64 = 2;
/// Offset of PM1 control.
pub const CONTROL: u64 = 4;
/// Offset of the timer.
pub const TIMER: u64 = 8;
/// Offset of the reset register.
pub const RESET: u64 = 12;
/// What resets when written to the reset register.
pub const RESET_VALUE: u8 = 6;
/// The type of sleep that is power off, as the `_S5` object says.
pub const SLEEP_TYPE_OFF: u8 = 5;

const SLEEP_ENABLE: u64 = 1 << 13;
/// ACPI is on from the beginning.
const SCI_ENABLE: u64 = 1;
const TIMER_FREQUENCY: u64 = 3_579_545;

/// What machines are saved with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerState {
    enabled: u64,
    control: u64,
}

/// The registers.
pub struct Power {
    ending: Arc<Ending>,
    timeline: Arc<Timeline>,
    state: PowerState,
}

impl Power {
    /// Of a machine that ends by `ending`.
    pub fn new(ending: Arc<Ending>, timeline: Arc<Timeline>) -> Power {
        Power {
            ending,
            timeline,
            state: PowerState {
                enabled: 0,
                control: SCI_ENABLE,
            },
        }
    }

    /// Everything, to be saved.
    pub fn save(&self) -> PowerState {
        self.state.clone()
    }

    /// Goes on from what was saved.
    pub fn restore(&mut self, state: PowerState) {
        self.state = state;
    }
}

impl Device for Power {
    fn load(&mut self, offset: u64, _: u64) -> u64 {
        match offset {
            EVENT => self.state.enabled << 16,
            EVENT_ENABLE => self.state.enabled,
            CONTROL => self.state.control,
            TIMER => {
                let ticks = u128::from(self.timeline.now()) * u128::from(TIMER_FREQUENCY);
                (ticks / u128::from(TICKS_PER_SECOND)) as u64 & 0xff_ffff
            }
            _ => 0,
        }
    }

    fn store(&mut self, offset: u64, _: u64, value: u64) {
        match offset {
            EVENT_ENABLE => self.state.enabled = value & 0xffff,
            CONTROL => {
                self.state.control = value & 0xffff & !SLEEP_ENABLE | SCI_ENABLE;
                let sleep_type = value >> 10 & 7;
                if value & SLEEP_ENABLE != 0 && sleep_type == u64::from(SLEEP_TYPE_OFF) {
                    self.ending.request(Request::Exit(0));
                }
            }
            RESET if value as u8 == RESET_VALUE => self.ending.request(Request::Reset),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power() -> (Power, Arc<Ending>) {
        let ending = Arc::<Ending>::default();
        let timeline = Arc::new(Timeline::new(Arc::default()));
        (Power::new(Arc::clone(&ending), timeline), ending)
    }

    #[test]
    fn sleep_type_five_switches_off() {
        let (mut power, ending) = power();
        assert_eq!(power.load(CONTROL, 2) & SCI_ENABLE, SCI_ENABLE);
        power.store(CONTROL, 2, u64::from(SLEEP_TYPE_OFF) << 10);
        power.store(CONTROL, 2, 1 << 10 | SLEEP_ENABLE);
        assert_eq!(ending.requested(), None, "not enabled; another type");
        power.store(CONTROL, 2, u64::from(SLEEP_TYPE_OFF) << 10 | SLEEP_ENABLE);
        assert_eq!(ending.requested(), Some(Request::Exit(0)));
    }

    #[test]
    fn the_reset_register_resets() {
        let (mut power, ending) = power();
        power.store(RESET, 1, 1);
        assert_eq!(ending.requested(), None);
        power.store(RESET, 1, u64::from(RESET_VALUE));
        assert_eq!(ending.requested(), Some(Request::Reset));
    }

    #[test]
    fn any_access_of_any_size_is_answered() {
        let (mut power, _) = power();
        for offset in 0..64 {
            for size in [1, 2, 4, 8] {
                power.store(offset, size, u64::MAX);
                power.load(offset, size);
            }
        }
    }
}
