//! Services on events: making them, and waiting for them (EFI 1.10, section 5.1).

use super::super::efi;
use super::events::{self, Notification};
use super::guest::{Failure, Guest};
use super::services::Service;
use super::{Boot, Flow, IDLE_TICKS, Pending};

impl Boot {
    pub(super) fn serve_events(
        &mut self,
        guest: &mut Guest<'_, '_>,
        service: Service,
    ) -> Result<(), Failure> {
        let [first, second, third, fourth, fifth, sixth] = guest.arguments();
        match service {
            Service::CreateEvent => {
                let event = self.events.create(first as u32, second, third, fourth, None)?;
                guest.set_word(fifth, event)
            }
            Service::CreateEventEx => {
                let group = match fifth {
                    0 => None,
                    at => Some(guest.guid(at)?),
                };
                let event = self.events.create(first as u32, second, third, fourth, group)?;
                guest.set_word(sixth, event)
            }
            Service::SetTimer => self.events.set_timer(first, second, third, guest.now()),
            Service::SignalEvent => self.events.signal(first),
            _ => self.events.close(first),
        }
    }

    /// Whether an event has happened, which is then over.
    pub(super) fn has_happened(&mut self, event: u64) -> Result<bool, Failure> {
        match event == self.wait_for_key {
            true => Ok(self.console.has_key()),
            false => self.events.take(event),
        }
    }

    /// When it is worth looking at events again.
    pub(super) fn next_look(&self, guest: &Guest<'_, '_>) -> u64 {
        let idle = guest.now() + IDLE_TICKS;
        self.events.next_due().map_or(idle, |due| due.min(idle))
    }

    /// Count, events, where the number of the one that has happened is to be written; so many were asked already.
    pub(super) fn wait_for_event(&mut self, guest: &mut Guest<'_, '_>, asked: u64) -> Result<Flow, Failure> {
        let [count, events, index] = guest.arguments();
        const COUNT_MAX: u64 = 4096;
        if count == 0 || count > COUNT_MAX {
            return Err(efi::INVALID_PARAMETER);
        }
        if self.events.priority != events::priority::APPLICATION {
            return Err(efi::UNSUPPORTED);
        }
        for number in 0..count {
            let event = guest.word(events.wrapping_add(8 * number))?;
            let happened = self.has_happened(event).inspect_err(|_| {
                // The event that is wrong is named; whether that can be written changes nothing.
                let _ = guest.set_word(index, number);
            })?;
            if happened {
                guest.set_word(index, number)?;
                return Ok(Flow::Return(0));
            }
        }
        // Those with a notification for this are asked before the next look.
        for number in asked..count {
            let event = guest.word(events.wrapping_add(8 * number))?;
            if let Some(due) = self.ask(event) {
                let asked = number + 1;
                return Ok(self.notify(due, |priority| Pending::Asked { asked, priority }));
            }
        }
        Ok(Flow::Wait {
            until: self.next_look(guest),
            then: Pending::Events,
        })
    }

    /// What asks an event whether it has happened, if there is such a function.
    fn ask(&self, event: u64) -> Option<Notification> {
        let notification = self.events.wait_notification(event);
        notification.filter(|_| event != self.wait_for_key)
    }

    pub(super) fn check_event(&mut self, guest: &Guest<'_, '_>, event: u64) -> Result<Flow, Failure> {
        if self.has_happened(event)? {
            return Ok(Flow::Return(0));
        }
        Ok(match self.ask(event) {
            Some(due) => self.notify(due, |priority| Pending::Checked { event, priority }),
            None => Flow::Wait {
                until: self.next_look(guest),
                then: Pending::Return(efi::NOT_READY),
            },
        })
    }
}
