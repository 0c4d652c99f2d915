//! What runs inside the machines, as data: images for IA-64, and the sources of the FUCE kernel and its programs.
//!
//! The images are built from the sources beside them (`ia64/build`); nothing but Rust is needed to use them. An image
//! that no program names is not linked into it.
//!
#![doc = include_str!("../README.md")]

/// Images for IA-64: ELF files.
pub mod ia64 {
    /// The kernel of `ia64/kernel`, compiled for one processor and for two.
    pub const KERNELS: [&[u8]; 2] = [
        include_bytes!("../ia64/bin/kernel-1"),
        include_bytes!("../ia64/bin/kernel-2"),
    ];
    /// The same, asking a monitor through memory for what its parameters say.
    pub const KERNELS_WITH_SIDECALLS: [&[u8]; 2] = [
        include_bytes!("../ia64/bin/kernel-1-sidecalls"),
        include_bytes!("../ia64/bin/kernel-2-sidecalls"),
    ];
    /// Two threads that pass each other messages, of `ia64/ipc`.
    pub const MESSAGES: &[u8] = include_bytes!("../ia64/bin/ipc");
    /// The source of its fast path as one first writes it, with what it asserts for a scheduler.
    pub const MESSAGES_FIRST: &str = include_str!("../ia64/ipc/first.S");
    /// The guest of the monitor that makes every request, of `ia64/sidecore`.
    pub const REQUESTS: &[u8] = include_bytes!("../ia64/bin/sidecore-requests");
    /// The guest of the monitor that asks a service of one's own, of `ia64/sidecore`.
    pub const SERVICE: &[u8] = include_bytes!("../ia64/bin/sidecore-service");
    /// A kernel whose virtio network driver breaks every rule, of `ia64/driver`.
    pub const HOSTILE_DRIVER: &[u8] = include_bytes!("../ia64/bin/driver-hostile");
    /// The guest of the monitor that shows what requests leave of its caches, and updates page tables by several
    /// processors, of `ia64/sidecore`.
    pub const MEMORY: &[u8] = include_bytes!("../ia64/bin/sidecore-memory");
    /// The guest of the monitor that sends and receives packets, of `ia64/sidecore`.
    pub const PACKETS: &[u8] = include_bytes!("../ia64/bin/sidecore-packets");
    /// The NAS Parallel Benchmarks as a guest without a kernel, of `npb`. Its parameters say which, on how many
    /// processors.
    pub const BENCHMARKS: &[u8] = include_bytes!("../ia64/bin/machine-npb");
    /// The guest of the monitor whose processors share memory in pairs, of `ia64/sidecore`.
    pub const SHARING: &[u8] = include_bytes!("../ia64/bin/sidecore-sharing");
    /// A bare machine's guest that programs the performance monitor, of `ia64/machine`.
    pub const PERFORMANCE_MONITOR: &[u8] = include_bytes!("../ia64/bin/machine-monitor");
}

/// The kernel of zero-wait threads for FUCE.
pub mod cefos {
    macro_rules! sources {
        ($($name:literal),* $(,)?) => {
            /// The sources by the names under which they include each other.
            pub const SOURCES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../cefos/", $name)))),*];
        };
    }

    sources!(
        "cefos.s",
        "kernel/boot.s",
        "kernel/calls.s",
        "kernel/exclusive.s",
        "kernel/fault.s",
        "kernel/gate.s",
        "kernel/layout.s",
        "kernel/request.s",
        "kernel/user.s",
        "programs/calls.s",
        "programs/overload.s",
    );
}
