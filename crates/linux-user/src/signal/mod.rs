//! Signals of the guest: what it does with them ([`actions`]), and the frame that a handler finds ([`context`]). How
//! they reach it is written with the [thread](crate::thread).

pub mod actions;
pub mod context;
