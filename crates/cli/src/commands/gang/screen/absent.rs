//! In the place of the view, where the program is built without it.

use std::io;

use sidestep_gang::DependencyTree;
use sidestep_gang_linux::watch::{Snapshot, Way};

use super::Key;

/// There is none.
pub enum Screen {}

impl Screen {
    /// This program has no view.
    pub const IS_BUILT: bool = false;

    /// Refused.
    pub fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Nobody asks.
    pub fn key(&mut self) -> io::Result<Option<Key>> {
        match *self {}
    }

    /// Nothing is shown.
    pub fn draw(&mut self, _: &Snapshot, _: &DependencyTree, _: &Way) -> io::Result<()> {
        match *self {}
    }
}
