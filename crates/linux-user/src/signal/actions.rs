//! What a process does with each signal, and how the host's dispositions follow.

use bytemuck::{Pod, Zeroable};

use crate::host::signals::{
    Disposition, RAISED_BY_HOST, SIGNALS, SignalSet, is_ignored, set_disposition, set_of,
};

/// The default action of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// The process ends.
    Terminate,
    /// Nothing happens.
    Ignore,
    /// The process stops, or goes on.
    JobControl,
}

/// The default action of a signal.
pub fn default_action(signal: i32) -> DefaultAction {
    match signal {
        libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH => DefaultAction::Ignore,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU | libc::SIGCONT => {
            DefaultAction::JobControl
        }
        _ => DefaultAction::Terminate,
    }
}

/// `struct sigaction` of Linux/ia64, which has no restorer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Action {
    /// `SIG_DFL`, `SIG_IGN`, or the address of the handler's function descriptor.
    pub handler: u64,
    /// `SA_*`.
    pub flags: u64,
    /// Signals blocked while the handler runs.
    pub mask: SignalSet,
}

impl Action {
    /// Whether a flag is set.
    pub fn has(&self, flag: i32) -> bool {
        self.flags & u64::from(flag as u32) != 0
    }

    /// Whether it is the default action.
    pub fn is_default(&self) -> bool {
        self.handler == libc::SIG_DFL as u64
    }

    /// Whether the signal is ignored.
    pub fn is_ignored(&self) -> bool {
        self.handler == libc::SIG_IGN as u64
    }

    /// What the host must do.
    fn disposition(&self, signal: i32) -> Disposition {
        match signal {
            _ if RAISED_BY_HOST.contains(&signal) => Disposition::Caught,
            _ if self.is_ignored() => Disposition::Ignored,
            _ if !self.is_default() => Disposition::Caught,
            _ if default_action(signal) == DefaultAction::Terminate => Disposition::Caught,
            _ => Disposition::Default,
        }
    }
}

/// The actions for all signals.
#[derive(Clone, Debug)]
pub struct Actions {
    actions: [Action; SIGNALS as usize],
}

/// The signals that are ignored where a program begins. `SIGPIPE` is one that Rust's start-up ignores, so what it was
/// before must be told. To be asked before the host is made to catch anything.
pub fn ignored_on_entry(pipe_ignored: bool) -> SignalSet {
    let ignored = (1..=SIGNALS).filter(|&signal| match signal {
        libc::SIGPIPE => pipe_ignored,
        _ => is_ignored(signal),
    });
    ignored.fold(0, |set, signal| set | set_of(signal))
}

impl Actions {
    /// The actions of a new program: default, but for [signals that are ignored](ignored_on_entry).
    pub fn on_entry(ignored: SignalSet) -> Actions {
        let mut actions = [Action::default(); SIGNALS as usize];
        for signal in 1..=SIGNALS {
            if ignored & set_of(signal) != 0 {
                actions[signal as usize - 1].handler = libc::SIG_IGN as u64;
            }
            if !matches!(signal, libc::SIGKILL | libc::SIGSTOP) {
                let _ = set_disposition(signal, actions[signal as usize - 1].disposition(signal), 0);
            }
        }
        Actions { actions }
    }

    /// The action for a signal.
    pub fn of(&self, signal: i32) -> Action {
        self.actions[signal as usize - 1]
    }

    /// The signals that are ignored, and those that are caught.
    pub fn sets(&self) -> (SignalSet, SignalSet) {
        let set = |wanted: fn(&Action) -> bool| {
            let signals = (1..).zip(&self.actions).filter(|(_, action)| wanted(action));
            signals.fold(0, |set, (signal, _)| set | set_of(signal))
        };
        (
            set(Action::is_ignored),
            set(|action| !action.is_ignored() && !action.is_default()),
        )
    }

    /// Changes the action for a signal, on the host, too.
    pub fn set(&mut self, signal: i32, action: Action) {
        self.actions[signal as usize - 1] = action;
        let _ = set_disposition(signal, action.disposition(signal), action.flags);
    }

    /// Goes back to the default, as `SA_RESETHAND` does at delivery.
    pub fn reset(&mut self, signal: i32) {
        let action = Action {
            handler: libc::SIG_DFL as u64,
            ..self.of(signal)
        };
        self.set(signal, action);
    }

    /// Makes the host ignore what the guest ignores but the host must catch, so that a program executed next
    /// inherits it; answers whether there was anything.
    pub fn ignore_for_execution(&self) -> bool {
        let mut any = false;
        for signal in RAISED_BY_HOST {
            if self.of(signal).is_ignored() {
                any |= set_disposition(signal, Disposition::Ignored, 0).is_ok();
            }
        }
        any
    }
}
