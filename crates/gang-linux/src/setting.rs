//! Settings of the kernel that are files, such as `/proc/sys/kernel/numa_balancing`.

use std::fs;
use std::path::Path;

use crate::HostError;

/// The setting that makes present pages fault again.
pub const NUMA_BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// Whether the kernel shares cores between sessions before it looks at threads' ranks.
pub const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";
/// Where the kernel counts what happens to memory, hint faults among it.
pub const MEMORY_EVENTS: &str = "/proc/vmstat";
/// Where a kernel that is not locked down shows the rates of NUMA balancing.
pub const SCAN_RATES: &str = "/sys/kernel/debug/sched/numa_balancing";

/// A setting's value, without the line's end.
///
/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> Result<String, HostError> {
    fs::read_to_string(path)
        .map(|text| text.trim_end().to_owned())
        .map_err(HostError::file("read", path))
}

/// Sets a value.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, value: &str) -> Result<(), HostError> {
    fs::write(path, value).map_err(HostError::file("write", path))
}
