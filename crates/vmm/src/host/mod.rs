//! The modelled host: cores with roles, and what transitions cost on it.
//!
//! [`HostCosts`] is one table of costs in core cycles, each with its source; [`preset`](HostCosts::preset) names the
//! machines that ship, and [`calibration`] measures the one that this program runs on. Nothing in a table may be chosen to make a result come out:
//! whoever doubts an entry replaces it in a file of their own and runs the experiment again.

pub mod calibration;
mod costs;

pub use costs::{Cost, CostsError, HostCosts, PRESETS};

/// What a core is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs virtual processors only.
    Guest,
    /// Serves sidecalls only.
    Sidecore,
    /// Either, as the monitor decides from the load.
    Both,
}
