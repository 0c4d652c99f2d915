//! Events, timers and task priorities.
//!
//! There are no interrupts: notifications that have become due are done when an application calls a service, once its
//! task priority lets them through. Time is the machine's.

use std::collections::BTreeMap;

use super::super::efi;
use super::guest::{Failure, Guid};

/// Task priorities.
pub mod priority {
    /// An application's.
    pub const APPLICATION: u64 = 4;
    /// Above all.
    pub const HIGH: u64 = 31;
}

/// Kinds of events (EFI 1.10, section 5.1).
pub mod kind {
    /// With a timer.
    pub const TIMER: u32 = 1 << 31;
    /// Its notification is done when somebody waits for it.
    pub const NOTIFY_WAIT: u32 = 0x100;
    /// Its notification is done when it is signalled.
    pub const NOTIFY_SIGNAL: u32 = 0x200;
    /// Signalled by ExitBootServices.
    pub const EXIT_BOOT_SERVICES: u32 = 0x201;
}

/// The group of events that ExitBootServices signals (UEFI 2.0).
pub const EXIT_GROUP: Guid = efi::guid(
    0x27ab_f055,
    0xb1b8,
    0x4c26,
    [0x80, 0x48, 0x74, 0x8f, 0x37, 0xba, 0xa2, 0xdf],
);

/// The most events.
const EVENTS_MAX: usize = 16 << 10;
/// Events are numbers that no memory has.
const FIRST_EVENT: u64 = 0xefee_1000_0000_0000;
/// Ticks of the units in which timers are set: 100 ns.
const UNIT_TICKS: u64 = 100;

/// What is to be called when an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The event.
    pub event: u64,
    /// The priority at which.
    pub priority: u64,
    /// The function's descriptor.
    pub function: u64,
    /// What it is given beside the event.
    pub context: u64,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    due: u64,
    /// If it goes on: how long until it is due again.
    period: Option<u64>,
}

#[derive(Clone, Debug)]
struct Event {
    kind: u32,
    notification: Option<Notification>,
    group: Option<Guid>,
    is_signalled: bool,
    timer: Option<Timer>,
}

/// All events.
pub struct Events {
    next: u64,
    events: BTreeMap<u64, Event>,
    /// The current task priority.
    pub priority: u64,
    /// What is to be called, in the order in which it became due.
    due: Vec<Notification>,
}

impl Events {
    /// None, at an application's priority.
    pub fn new() -> Events {
        Events {
            next: FIRST_EVENT,
            events: BTreeMap::new(),
            priority: priority::APPLICATION,
            due: Vec::new(),
        }
    }

    /// Makes an event.
    ///
    /// # Errors
    /// If its kind or its notification makes no sense.
    pub fn create(
        &mut self,
        kind: u32,
        priority: u64,
        function: u64,
        context: u64,
        group: Option<Guid>,
    ) -> Result<u64, Failure> {
        let notified = kind & (kind::NOTIFY_WAIT | kind::NOTIFY_SIGNAL);
        let is_priority = (priority::APPLICATION + 1..priority::HIGH).contains(&priority);
        if notified == kind::NOTIFY_WAIT | kind::NOTIFY_SIGNAL
            || notified != 0 && (!is_priority || function == 0)
        {
            return Err(efi::INVALID_PARAMETER);
        }
        if self.events.len() >= EVENTS_MAX {
            return Err(efi::OUT_OF_RESOURCES);
        }
        self.next += 16;
        let event = self.next;
        let notification = (notified != 0).then_some(Notification {
            event,
            priority,
            function,
            context,
        });
        self.events.insert(
            event,
            Event {
                kind,
                notification,
                group,
                is_signalled: false,
                timer: None,
            },
        );
        Ok(event)
    }

    fn event(&mut self, event: u64) -> Result<&mut Event, Failure> {
        self.events.get_mut(&event).ok_or(efi::INVALID_PARAMETER)
    }

    /// Removes an event.
    ///
    /// # Errors
    /// If there is none.
    pub fn close(&mut self, event: u64) -> Result<(), Failure> {
        self.events.remove(&event).ok_or(efi::INVALID_PARAMETER)?;
        self.due.retain(|notification| notification.event != event);
        Ok(())
    }

    /// Signals an event, and those of its group.
    ///
    /// # Errors
    /// If there is none.
    pub fn signal(&mut self, event: u64) -> Result<(), Failure> {
        match self.event(event)?.group {
            Some(group) => self.signal_group(&group),
            None => self.signal_one(event),
        }
        Ok(())
    }

    /// Signals all events of a group.
    pub fn signal_group(&mut self, group: &Guid) {
        let of_group = self
            .events
            .iter()
            .filter(|(_, event)| event.group.as_ref() == Some(group));
        let of_group: Vec<u64> = of_group.map(|(event, _)| *event).collect();
        of_group.into_iter().for_each(|event| self.signal_one(event));
    }

    /// Signals all events of a kind.
    pub fn signal_kind(&mut self, kind: u32) {
        let of_kind = self.events.iter().filter(|(_, event)| event.kind == kind);
        let of_kind: Vec<u64> = of_kind.map(|(event, _)| *event).collect();
        of_kind.into_iter().for_each(|event| self.signal_one(event));
    }

    fn signal_one(&mut self, event: u64) {
        let Some(event) = self.events.get_mut(&event) else {
            return;
        };
        if std::mem::replace(&mut event.is_signalled, true) {
            return;
        }
        if event.kind & kind::NOTIFY_SIGNAL != 0
            && let Some(notification) = event.notification
        {
            // An event with a notification is not waited for: it may be signalled again.
            event.is_signalled = false;
            if !self.due.contains(&notification) {
                self.due.push(notification);
            }
        }
    }

    /// Whether an event was signalled, which it is no more then.
    ///
    /// # Errors
    /// If there is none, or it is one that has its notification instead.
    pub fn take(&mut self, event: u64) -> Result<bool, Failure> {
        let event = self.event(event)?;
        if event.kind & kind::NOTIFY_SIGNAL != 0 {
            return Err(efi::INVALID_PARAMETER);
        }
        Ok(std::mem::take(&mut event.is_signalled))
    }

    /// What is to be called when somebody waits for an event.
    pub fn wait_notification(&self, event: u64) -> Option<Notification> {
        let event = self.events.get(&event)?;
        (event.kind & kind::NOTIFY_WAIT != 0)
            .then_some(event.notification)
            .flatten()
    }

    /// Sets an event's timer: off, again and again, or once, in units of 100 ns.
    ///
    /// # Errors
    /// If it has none.
    pub fn set_timer(&mut self, event: u64, how: u64, units: u64, now: u64) -> Result<(), Failure> {
        /// What a period of zero means: every tick of the firmware's clock.
        const CLOCK_TICKS: u64 = 1_000_000;
        let event = self.event(event)?;
        if event.kind & kind::TIMER == 0 {
            return Err(efi::INVALID_PARAMETER);
        }
        let ticks = units.saturating_mul(UNIT_TICKS);
        event.timer = match how {
            0 => None,
            1 => {
                let period = ticks.max(CLOCK_TICKS);
                let due = now.saturating_add(period);
                let period = Some(period);
                Some(Timer { due, period })
            }
            2 => Some(Timer {
                due: now.saturating_add(ticks),
                period: None,
            }),
            _ => return Err(efi::INVALID_PARAMETER),
        };
        Ok(())
    }

    /// Sets all timers off.
    pub fn stop_timers(&mut self) {
        self.events.values_mut().for_each(|event| event.timer = None);
    }

    /// Signals the events whose time has come.
    pub fn advance(&mut self, now: u64) {
        let mut happened = Vec::new();
        for (number, event) in &mut self.events {
            let Some(timer) = event.timer else {
                continue;
            };
            if timer.due <= now {
                happened.push((timer.due, *number));
                event.timer = timer.period.map(|period| Timer {
                    due: timer.due.saturating_add(period).max(now),
                    ..timer
                });
            }
        }
        happened.sort_unstable();
        happened.into_iter().for_each(|(_, event)| self.signal_one(event));
    }

    /// When the next timer is due.
    pub fn next_due(&self) -> Option<u64> {
        self.events
            .values()
            .filter_map(|event| Some(event.timer?.due))
            .min()
    }

    /// What is to be called now, the highest priority first.
    pub fn take_due(&mut self) -> Option<Notification> {
        let highest = self.due.iter().map(|notification| notification.priority).max()?;
        if highest <= self.priority {
            return None;
        }
        let index = self
            .due
            .iter()
            .position(|notification| notification.priority == highest)?;
        Some(self.due.remove(index))
    }
}
