//! What is known at a place of the emitted code of the ways from addresses to the windows that they lie in.

use std::collections::BTreeMap;

use cranelift_codegen::ir::Value;

/// By address, the bits in which it differs from the host's in the window of its region.
#[derive(Clone, Debug, Default)]
pub struct Windows(BTreeMap<Value, Value>);

impl Windows {
    /// What takes an address to its window, if that was looked for.
    pub fn difference(&self, address: Value) -> Option<Value> {
        self.0.get(&address).copied()
    }

    /// Notes what takes an address to its window.
    pub fn note(&mut self, address: Value, difference: Value) {
        self.0.insert(address, difference);
    }

    /// Notes an address that is less than a window away from another one: if both are in windows, these are one. If
    /// one is in none, its way takes the other beyond all addresses of the host.
    pub fn note_near(&mut self, address: Value, near: Value) {
        if let Some(difference) = self.difference(address) {
            self.note(near, difference);
        }
    }

    /// Forgets what is not known at another place as well.
    pub fn meet(&mut self, other: &Windows) {
        self.0
            .retain(|&address, &mut difference| other.difference(address) == Some(difference));
    }
}
