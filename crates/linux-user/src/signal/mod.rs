//! Signals of the guest: what it does with them ([`actions`]), how faults become signals ([`faults`]), the frame
//! a handler finds ([`context`]), and delivery ([`deliver`]).

pub mod actions;
pub mod context;
pub mod deliver;
pub mod faults;
