//! The performance monitoring unit: what happens on the processor, counted under its documented names.
//!
//! - [`event`]: the events and their codes; [`unit_masks`]: events that are sums of others; [`stall`]: why a cycle
//!   issued nothing, as a tree; [`counters`]: the counts of all of them at one moment.
//! - [`registers`]: the unit as guest code programs it; [`event_address_registers`]: those that keep single events,
//!   with the branch trace buffer; [`tagging`]: which instructions and references count.
//! - [`event_address`]: single events with what is known of each, and which are wanted; [`selection`] and [`sampling`]:
//!   samples for the host.

pub mod counters;
pub mod event;
pub mod event_address;
pub mod event_address_registers;
pub mod registers;
pub mod sampling;
pub mod selection;
pub mod stall;
pub mod tagging;
pub mod unit_masks;
