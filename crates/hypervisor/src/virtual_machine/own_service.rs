//! A service that is no part of the monitor: what its user wants served by exit or by a sidecore, and what that costs.

use super::VirtualMachine;

/// A service works for so many cycles on a request at most.
pub(super) const OWN_CYCLES_MAX: u64 = 1 << 40;
/// A service touches so many lines for a request at most.
pub(super) const OWN_LINES_MAX: u64 = 1 << 20;

/// A service of the user's own. It may keep state from request to request; nothing else may have a part in what it
/// answers, so that the same run gives the same answers.
pub trait OwnService: Send {
    /// Serves a request with its three arguments, as the guest wrote them.
    ///
    /// # Errors
    /// What went wrong: the request is refused, and the run has failed.
    fn serve(&mut self, arguments: [u64; 3]) -> Result<OwnServed, String>;
}

/// What serving a request came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnServed {
    /// What the guest gets.
    pub answer: u64,
    /// Cycles of work, wherever it is done, up to 2<sup>40</sup>.
    pub cycles: u64,
    /// Cache lines of the guest's that are touched, up to 2<sup>20</sup>: each is near on the guest's own core, and
    /// comes over to a sidecore.
    pub lines: u64,
}

impl VirtualMachine {
    /// Has a service serve the requests of kind [`Own`](crate::sidecall::request::Kind::Own). Without one they are
    /// refused, as those of unknown kinds.
    pub fn attach_own_service(&mut self, service: Box<dyn OwnService>) {
        self.own_service = Some(service);
    }
}
