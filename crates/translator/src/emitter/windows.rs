//! What is known at a place of the emitted code of the ways from addresses to the windows that they lie in.

use std::collections::BTreeMap;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::{VirtualAddress, layout};

use super::Emitter;

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

impl Emitter<'_, '_> {
    /// What takes an address to the window of its region.
    pub fn window_difference(&mut self, address: Value) -> Value {
        if let Some(known) = self.known.windows.difference(address) {
            return known;
        }
        let region = self
            .ins()
            .ushr_imm_u(address, i64::from(VirtualAddress::REGION_SHIFT));
        let offset = self.ins().ishl_imm_u(region, 3);
        let processor = self.processor();
        let place = self.ins().iadd(processor, offset);
        let (flags, table) = (self.state_memory(), layout::WINDOW_DIFFERENCES);
        let difference = self.ins().load(I64, flags, place, table as i32);
        self.known.windows.note(address, difference);
        difference
    }
}
