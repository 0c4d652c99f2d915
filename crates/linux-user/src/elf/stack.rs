//! The first stack of a program: strings, auxiliary vector, environment, arguments.
//!
//! From the top downwards: the program's path, environment strings, argument strings, sixteen random bytes,
//! the auxiliary vector, `envp`, `argv`, `argc`; the stack pointer is 16 bytes lower still, since the IA-64
//! calling convention owns a scratch area there.

use super::load::Loaded;
use crate::host::Errno;
use crate::memory::Memory;
use crate::memory::gate;
use crate::memory::window::PAGE;

/// Auxiliary vector entries that `libc` does not name on x86-64.
const AT_SYSINFO: u64 = 32;
const AT_SYSINFO_EHDR: u64 = 33;
/// Ticks a second of `times`: the host's, since it counts them.
pub const CLOCK_TICKS: u64 = 100;

/// What a program is started with.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The path by which it was executed (`AT_EXECFN`).
    pub path: Vec<u8>,
    /// `argv`.
    pub arguments: Vec<Vec<u8>>,
    /// `envp`.
    pub environment: Vec<Vec<u8>>,
}

impl Arguments {
    /// Bytes that strings and pointers take on the stack.
    pub fn size(&self) -> u64 {
        let strings = self.arguments.iter().chain(&self.environment);
        strings.map(|string| string.len() as u64 + 9).sum::<u64>() + self.path.len() as u64 + 1
    }
}

/// Where things were put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The address of `argc`.
    pub top: u64,
    /// The argument strings, for `/proc/self/cmdline`.
    pub arguments: std::ops::Range<u64>,
    /// The strings of the environment, for `/proc/self/environ`.
    pub environment: std::ops::Range<u64>,
    /// The auxiliary vector as bytes, for `/proc/self/auxv`.
    pub auxiliary: Vec<u8>,
}

/// Writes the stack below `top`.
pub fn build(memory: &Memory, top: u64, arguments: &Arguments, loaded: &Loaded) -> Result<Built, Errno> {
    let mut stack = Stack { memory, at: top - 8 };
    let path = stack.push_string(&arguments.path)?;
    let environment_end = stack.at;
    let environment = stack.push_strings(&arguments.environment)?;
    let arguments_end = stack.at;
    let argument_strings = stack.push_strings(&arguments.arguments)?;
    let arguments_range = stack.at..arguments_end;
    stack.at &= !15;
    let random = stack.push(&random_bytes())?;

    let mut auxiliary = auxiliary_vector(loaded, random, path);
    auxiliary.extend([0, 0]);
    let mut words = vec![arguments.arguments.len() as u64];
    words.extend(&argument_strings);
    words.push(0);
    words.extend(&environment);
    words.push(0);
    words.extend(&auxiliary);
    stack.at -= 8 * words.len() as u64;
    stack.at &= !15;
    memory.write_bytes(stack.at, bytemuck::cast_slice(&words))?;
    let auxiliary = bytemuck::cast_slice(&auxiliary).to_vec();
    Ok(Built {
        top: stack.at,
        arguments: arguments_range,
        environment: arguments_end..environment_end,
        auxiliary,
    })
}

struct Stack<'a> {
    memory: &'a Memory,
    at: u64,
}

impl Stack<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<u64, Errno> {
        self.at = self
            .at
            .checked_sub(bytes.len() as u64)
            .ok_or(Errno(libc::E2BIG))?;
        self.memory.write_bytes(self.at, bytes)?;
        Ok(self.at)
    }

    fn push_string(&mut self, string: &[u8]) -> Result<u64, Errno> {
        self.push(&[string, b"\0"].concat())
    }

    /// Pushes strings so that they lie in ascending order; answers their addresses in order.
    fn push_strings(&mut self, strings: &[Vec<u8>]) -> Result<Vec<u64>, Errno> {
        let mut addresses: Vec<u64> = strings
            .iter()
            .rev()
            .map(|string| self.push_string(string))
            .collect::<Result<_, _>>()?;
        addresses.reverse();
        Ok(addresses)
    }
}

/// The entries of Linux 6.1 on ia64, in its order, without the terminator.
fn auxiliary_vector(loaded: &Loaded, random: u64, path: u64) -> Vec<u64> {
    // SAFETY: these calls touch no memory.
    let (user, effective_user, group, effective_group) =
        unsafe { (libc::getuid(), libc::geteuid(), libc::getgid(), libc::getegid()) };
    let secure = user != effective_user || group != effective_group;
    let entries = [
        (AT_SYSINFO, gate::SYSTEM_CALL),
        (AT_SYSINFO_EHDR, gate::ADDRESS),
        (libc::AT_HWCAP, 0),
        (libc::AT_PAGESZ, PAGE),
        (libc::AT_CLKTCK, CLOCK_TICKS),
        (libc::AT_PHDR, loaded.headers_address()),
        (libc::AT_PHENT, 56),
        (libc::AT_PHNUM, u64::from(loaded.image.headers_count)),
        (libc::AT_BASE, loaded.interpreter_base),
        (libc::AT_FLAGS, 0),
        (libc::AT_ENTRY, loaded.entry()),
        (libc::AT_UID, u64::from(user)),
        (libc::AT_EUID, u64::from(effective_user)),
        (libc::AT_GID, u64::from(group)),
        (libc::AT_EGID, u64::from(effective_group)),
        (libc::AT_SECURE, u64::from(secure)),
        (libc::AT_RANDOM, random),
        (libc::AT_EXECFN, path),
    ];
    entries
        .into_iter()
        .flat_map(|(kind, value)| [kind, value])
        .collect()
}

fn random_bytes() -> [u8; 16] {
    let mut bytes = [0u8; 16];
    // SAFETY: the kernel writes at most sixteen bytes.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::image::{Image, Load};

    #[test]
    fn a_program_finds_its_arguments_environment_and_vector() {
        let memory = Memory::new().expect("an address space");
        let stacks = memory.map_stacks(8 << 20, u64::MAX, false).expect("stacks");
        let load = Load {
            address: 0x4000_0000_0000_0000,
            offset: 0,
            file_size: 512,
            memory_size: 512,
            protection: 5,
        };
        let image = Image {
            relocatable: false,
            entry: 0x4000_0000_0000_0100,
            loads: vec![load],
            interpreter: None,
            headers_offset: 64,
            headers_count: 3,
            executable_stack: false,
        };
        let loaded = Loaded {
            image,
            bias: 0,
            interpreter_base: 0,
            start: 0x4000_0000_0000_0100,
        };
        let arguments = Arguments {
            path: b"/bin/prog".to_vec(),
            arguments: vec![b"prog".to_vec(), b"one".to_vec()],
            environment: vec![b"A=b".to_vec()],
        };
        let built = build(&memory, stacks.memory_top, &arguments, &loaded).expect("a stack");
        assert_eq!(built.top % 16, 0);
        let words: Vec<u64> = memory.read_array(built.top, 6 + 38).expect("mapped");
        assert_eq!((words[0], words[3], words[5]), (2, 0, 0));
        assert_eq!(memory.read_string(words[2]).expect("a string"), b"one");
        assert_eq!(memory.read_string(words[4]).expect("a string"), b"A=b");
        let entry = |kind: u64| {
            words[6..]
                .chunks(2)
                .find(|pair| pair[0] == kind)
                .map(|pair| pair[1])
        };
        assert_eq!(entry(libc::AT_PHDR), Some(0x4000_0000_0000_0040));
        assert_eq!(entry(libc::AT_PAGESZ), Some(16384));
        assert_eq!(entry(AT_SYSINFO_EHDR), Some(gate::ADDRESS));
        let path = entry(libc::AT_EXECFN).expect("the path's address");
        assert_eq!(memory.read_string(path).expect("a string"), b"/bin/prog");
        assert_eq!(
            memory.read_string(built.arguments.start).expect("a string"),
            b"prog"
        );
    }
}
