//! The one table of what an application can call: boot services in the order of their table, then the functions of
//! protocols in the order of theirs.

/// The hypercall function of the first service; the one before it belongs to the code that they share.
pub const FIRST_FUNCTION: u64 = 0x201;

/// Declares services, the boot services first.
macro_rules! services {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A service, by the name that the specification has for it.
        #[allow(missing_docs, reason = "the names are the specification's")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Service { $($(#[$doc])* $name,)* }

        const ALL: &[Service] = &[$(Service::$name,)*];
    };
}

services! {
    /// Begins the boot: what the first processor executes.
    Boot,
    // EFI 1.10, chapter 5, in the order of the boot services table.
    RaiseTpl,
    RestoreTpl,
    AllocatePages,
    FreePages,
    GetMemoryMap,
    AllocatePool,
    FreePool,
    CreateEvent,
    SetTimer,
    WaitForEvent,
    SignalEvent,
    CloseEvent,
    CheckEvent,
    InstallProtocolInterface,
    ReinstallProtocolInterface,
    UninstallProtocolInterface,
    HandleProtocol,
    Reserved,
    RegisterProtocolNotify,
    LocateHandle,
    LocateDevicePath,
    InstallConfigurationTable,
    LoadImage,
    StartImage,
    Exit,
    UnloadImage,
    ExitBootServices,
    GetNextMonotonicCount,
    Stall,
    SetWatchdogTimer,
    ConnectController,
    DisconnectController,
    OpenProtocol,
    CloseProtocol,
    OpenProtocolInformation,
    ProtocolsPerHandle,
    LocateHandleBuffer,
    LocateProtocol,
    InstallMultipleProtocolInterfaces,
    UninstallMultipleProtocolInterfaces,
    CalculateCrc32,
    CopyMem,
    SetMem,
    /// Of EFI 2.0, where the table goes on.
    CreateEventEx,
    // Simple Text Input.
    ResetInput,
    ReadKeyStroke,
    // Simple Text Output.
    ResetOutput,
    OutputString,
    TestString,
    QueryMode,
    SetMode,
    SetAttribute,
    ClearScreen,
    SetCursorPosition,
    EnableCursor,
    // Block I/O.
    ResetBlocks,
    ReadBlocks,
    WriteBlocks,
    FlushBlocks,
    // Disk I/O.
    ReadDisk,
    WriteDisk,
    // Simple File System.
    OpenVolume,
    // File.
    OpenFile,
    CloseFile,
    DeleteFile,
    ReadFile,
    WriteFile,
    GetPosition,
    SetPosition,
    GetInfo,
    SetInfo,
    FlushFile,
}

impl Service {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Service> {
        ALL.iter().copied()
    }

    /// Those of the boot services table, in its order.
    pub fn of_table() -> impl Iterator<Item = Service> {
        let is_in_table = |service: &Service| {
            (Service::RaiseTpl as u16..=Service::CreateEventEx as u16).contains(&(*service as u16))
        };
        Service::all().filter(is_in_table)
    }

    /// Its place in the list.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The hypercall function that serves it.
    pub fn function(self) -> u64 {
        FIRST_FUNCTION + u64::from(self.number())
    }

    /// The service of a hypercall function.
    pub fn of_function(function: u64) -> Option<Service> {
        let number = usize::try_from(function.checked_sub(FIRST_FUNCTION)?).ok()?;
        ALL.get(number).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_has_its_function_and_the_table_is_in_its_order() {
        for service in Service::all() {
            assert_eq!(Service::of_function(service.function()), Some(service));
        }
        assert_eq!(Service::of_function(FIRST_FUNCTION - 1), None);
        assert_eq!(Service::of_function(u64::MAX), None);
        let table: Vec<Service> = Service::of_table().collect();
        // EFI 1.10, section 4.4: places that never changed.
        for (place, service) in [
            (0, Service::RaiseTpl),
            (16, Service::HandleProtocol),
            (22, Service::LoadImage),
            (26, Service::ExitBootServices),
            (37, Service::LocateProtocol),
            (42, Service::SetMem),
        ] {
            assert_eq!(table[place], service);
        }
    }
}
