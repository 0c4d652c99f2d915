//! The live view of `sidestep gang watch` on a terminal: matrix, tree and sets.

#[cfg(feature = "live")]
mod live;
#[cfg(feature = "live")]
pub use live::Screen;

#[cfg(not(feature = "live"))]
mod absent;
#[cfg(not(feature = "live"))]
pub use absent::Screen;

/// What the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "live"),
    allow(dead_code, reason = "nobody asks where there is no view")
)]
pub enum Key {
    /// Stop watching.
    Quit,
    /// Forget what was shared so far.
    Reset,
    /// The terminal's size changed.
    Redraw,
}
