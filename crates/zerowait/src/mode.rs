//! The three modes of a thread, and which mode may continue to which (figure 2 of the CEFOS paper).

use std::fmt;

/// The level a thread runs at.
///
/// The mode is a property of the thread, not of the core: changing it is a continuation, never a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// An application's thread.
    User,
    /// An entry point of the kernel: the only way from user threads to kernel threads.
    KernelInterface,
    /// A thread at supervisor level.
    Kernel,
}

/// Whether the mode of the row may continue to the mode of the column.
///
/// The paper's text forbids exactly one arrow, from user to kernel, and names the two that make a system call
/// (user to kernel interface, kernel interface to kernel) and the one that answers it (kernel to user: the
/// handler thread continues to the receiver thread). The kernel interface may answer the user itself, which a
/// refused call needs, and the kernel may enter through its own interface.
const MAY_CONTINUE: [[bool; 3]; 3] = [
    //                       user  interface kernel
    /* user             */ [true, true, false],
    /* kernel interface */ [true, true, true],
    /* kernel           */ [true, true, true],
];

impl Mode {
    /// Every mode, least privileged first.
    pub const ALL: [Mode; 3] = [Mode::User, Mode::KernelInterface, Mode::Kernel];

    /// Whether a thread of this mode may continue to a thread of mode `target`.
    pub fn may_continue_to(self, target: Mode) -> bool {
        MAY_CONTINUE[self as usize][target as usize]
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::User => "user",
            Mode::KernelInterface => "kernel interface",
            Mode::Kernel => "kernel",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_user_to_kernel_is_forbidden() {
        for from in Mode::ALL {
            for to in Mode::ALL {
                assert_eq!(
                    from.may_continue_to(to),
                    (from, to) != (Mode::User, Mode::Kernel),
                    "{from} to {to}"
                );
            }
        }
    }
}
