//! Guest memory as the processor asks for it.

use sidestep_ia64::{Access, AddressSpace, HostPage, Refusal, VirtualAddress, Windows};

use super::{Denial, Memory, NAT_PAGE, Need};

// SAFETY: host pages stay valid while they are mapped; what takes a page away runs inside
// `World::exclusively`, after which every thread flushes its processor's translations before it goes on. The
// windows themselves live as long as the memory.
unsafe impl AddressSpace for Memory {
    fn resolve(&self, address: VirtualAddress, access: Access) -> Result<HostPage, Refusal> {
        let need = Need {
            read: access.reads(),
            write: access.writes(),
            execute: access == Access::Execute,
        };
        let view = self.view(address.0, need).map_err(|denial| match denial {
            Denial::NotMapped | Denial::BeyondFile if NAT_PAGE.contains(&address.0) => Refusal::AccessRights,
            Denial::NotMapped | Denial::BeyondFile | Denial::Absent => Refusal::NotPresent,
            Denial::NotAllowed => Refusal::AccessRights,
        })?;
        Ok(HostPage {
            start: VirtualAddress(view.start),
            size_log2: view.size_log2,
            host: view.host,
            readable: view.protection.reads(),
            writable: view.protection.writes(),
            executable: view.protection.executes(),
        })
    }

    fn instructions_changed(&self, _address: VirtualAddress) {
        self.world.tell_code_change();
    }

    fn windows(&self) -> Option<Windows> {
        self.windows.of_processors().filter(|_| self.has_plain_windows())
    }

    fn is_shared(&self) -> bool {
        self.is_shared_now()
    }
}
