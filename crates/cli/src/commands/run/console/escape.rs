//! Keys for the command among those for the guest, as QEMU has them: Ctrl-a, and then `x` to quit, `c` for the prompt
//! and back, Ctrl-a for itself, `h` for help.

const ESCAPE: u8 = 0x01;

/// What is shown for Ctrl-a h.
pub const HELP: &str = "\r\nCtrl-a h  this help\r\nCtrl-a x  quit\r\nCtrl-a c  the prompt, and back to the console\r\n\
                        Ctrl-a Ctrl-a  sends Ctrl-a\r\n";

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// It is for the guest, or for a line at the prompt.
    Byte(u8),
    /// Quit.
    Quit,
    /// Change between console and prompt.
    Prompt,
    /// Show the keys.
    Help,
}

/// Which keys were pressed before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keys {
    is_escaped: bool,
}

impl Keys {
    /// What the next byte means, if it means something by itself. An unknown key behind Ctrl-a is dropped with it.
    pub fn take(&mut self, byte: u8) -> Option<Key> {
        if !std::mem::take(&mut self.is_escaped) {
            self.is_escaped = byte == ESCAPE;
            return (byte != ESCAPE).then_some(Key::Byte(byte));
        }
        match byte {
            ESCAPE => Some(Key::Byte(ESCAPE)),
            b'x' => Some(Key::Quit),
            b'c' => Some(Key::Prompt),
            b'h' | b'?' => Some(Key::Help),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_a_makes_the_next_key_one_of_the_commands() {
        let mut keys = Keys::default();
        let mut taken = |bytes: &[u8]| {
            bytes
                .iter()
                .filter_map(|&byte| keys.take(byte))
                .collect::<Vec<_>>()
        };
        assert_eq!(taken(b"ax"), [Key::Byte(b'a'), Key::Byte(b'x')]);
        assert_eq!(taken(b"\x01x"), [Key::Quit]);
        assert_eq!(taken(b"\x01"), []);
        assert_eq!(
            taken(b"cc"),
            [Key::Prompt, Key::Byte(b'c')],
            "the next one is for the guest again"
        );
        assert_eq!(taken(b"\x01\x01c"), [Key::Byte(1), Key::Byte(b'c')]);
        assert_eq!(taken(b"\x01q\x01h"), [Key::Help]);
    }
}
