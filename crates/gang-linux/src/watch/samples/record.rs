//! What the kernel reports of an interruption.

use perf_event_open_sys::bindings;

use super::red_zone::RED_ZONE_BYTES;
use crate::watch::ahead::Registers;

/// A register of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    /// An integer register, by its number in instructions.
    General(usize),
    Instruction,
    Flags,
}

/// The registers of a sample in the kernel's order, which is that of the bits of [`REGISTERS`] from the least.
const ORDER: [Reported; 18] = [
    Reported::General(0),
    Reported::General(3),
    Reported::General(1),
    Reported::General(2),
    Reported::General(6),
    Reported::General(7),
    Reported::General(5),
    Reported::General(4),
    Reported::Instruction,
    Reported::Flags,
    Reported::General(8),
    Reported::General(9),
    Reported::General(10),
    Reported::General(11),
    Reported::General(12),
    Reported::General(13),
    Reported::General(14),
    Reported::General(15),
];
/// `ax bx cx dx si di bp sp ip flags`, and `r8` to `r15`.
const REGISTERS: u64 = 0x00ff_03ff;
/// How much of a thread's stack the kernel tells: a multiple of eight, less than 64 kB.
const STACK_BYTES: u32 = 1024;
/// Where a sample has its registers, behind its header, names, and of how many bits a thread is.
const REGISTERS_AT: usize = 24;
/// Where it has its stack.
const STACK_AT: usize = REGISTERS_AT + 8 * ORDER.len();
/// Where a sample of a program's has what that wrote, behind its header and how many bytes it is.
const WRITTEN_AT: usize = 12;
/// The kernel says that a thread is one of 64 bits.
const ABI_64: u64 = bindings::PERF_SAMPLE_REGS_ABI_64 as u64;

/// An interrupted thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interrupted<'a> {
    pub(super) process: i32,
    pub(super) thread: i32,
    pub(super) registers: Registers,
    /// What is on its stack from the stack pointer on.
    pub(super) stack: &'a [u8],
}

/// A record of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Interrupted(Interrupted<'a>),
    /// What the thread that is interrupted in the next record keeps below its stack pointer.
    RedZone([u8; RED_ZONE_BYTES]),
    /// The kernel keeps further samples back for a while.
    Throttled,
    /// Others, and samples of code that is not of 64 bits.
    Other,
}

/// Has an event tell with each interruption what is read here.
pub(super) fn ask(event: &mut bindings::perf_event_attr) {
    event.sample_type = u64::from(
        bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_REGS_USER | bindings::PERF_SAMPLE_STACK_USER,
    );
    event.sample_regs_user = REGISTERS;
    event.sample_stack_user = STACK_BYTES;
}

impl<'a> Record<'a> {
    /// Of its bytes, header included.
    pub(super) fn parse(bytes: &'a [u8]) -> Self {
        let kind = bytes.first_chunk().map(|kind| u32::from_ne_bytes(*kind));
        let read = match kind {
            Some(bindings::PERF_RECORD_THROTTLE) => return Self::Throttled,
            // The program's are shorter than any other.
            Some(bindings::PERF_RECORD_SAMPLE) if bytes.len() < STACK_AT => {
                let written = bytes.get(WRITTEN_AT..).and_then(<[u8]>::first_chunk);
                written.map(|zone| Self::RedZone(*zone))
            }
            Some(bindings::PERF_RECORD_SAMPLE) => interrupted(bytes).map(Self::Interrupted),
            _ => None,
        };
        read.unwrap_or(Self::Other)
    }
}

fn interrupted(bytes: &[u8]) -> Option<Interrupted<'_>> {
    let long = |offset: usize| {
        bytes
            .get(offset..)?
            .first_chunk()
            .map(|long| u64::from_ne_bytes(*long))
    };
    if long(REGISTERS_AT - 8)? != ABI_64 {
        return None;
    }
    let mut registers = Registers::default();
    for (place, reported) in ORDER.iter().enumerate() {
        let value = long(REGISTERS_AT + 8 * place)?;
        match *reported {
            Reported::General(number) => registers.general[number] = value,
            Reported::Instruction => registers.instruction = value,
            Reported::Flags => registers.flags = value,
        }
    }
    // Room for so many bytes, these, and how many of them are filled in.
    let (room, from) = (long(STACK_AT)? as usize, STACK_AT + 8);
    let filled = match room {
        0 => 0,
        _ => long(from.checked_add(room)?)? as usize,
    };
    let name = long(8)?;
    Some(Interrupted {
        process: name as u32 as i32,
        thread: (name >> 32) as u32 as i32,
        registers,
        stack: bytes.get(from..from + filled.min(room))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A sample in which each register has its place in the kernel's order.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![9, 0, 0, 0, 2, 0, 200, 0];
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(8_u32.to_ne_bytes());
        bytes.extend(ABI_64.to_ne_bytes());
        (0..18_u64).for_each(|place| bytes.extend(place.to_ne_bytes()));
        bytes.extend(16_u64.to_ne_bytes());
        bytes.extend(*b"on its stack, 16");
        bytes.extend(12_u64.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_sample_is_read_as_the_kernel_lays_it_out() {
        let sample = sample();
        let Record::Interrupted(read) = Record::parse(&sample) else {
            panic!("{:?}", Record::parse(&sample));
        };
        assert_eq!((read.process, read.thread, read.registers.instruction), (7, 8, 8));
        let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, .., r15] = read.registers.general;
        assert_eq!([rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!([read.registers.flags, r8, r15], [9, 10, 17]);
        assert_eq!(ORDER.len(), REGISTERS.count_ones() as usize);
        assert_eq!(read.stack, b"on its stack");
        for length in STACK_AT..sample.len() {
            assert_eq!(Record::parse(&sample[..length]), Record::Other);
        }
    }

    #[test]
    fn records_are_told_apart() {
        let mut throttled = vec![5, 0, 0, 0, 0, 0, 32, 0];
        throttled.resize(32, 0);
        assert_eq!(Record::parse(&throttled), Record::Throttled);
        let mut written = vec![9, 0, 0, 0, 2, 0, 144, 0, 132, 0, 0, 0];
        written.extend([7; RED_ZONE_BYTES]);
        assert_eq!(Record::parse(&written[..100]), Record::Other);
        written.extend([0; 4]);
        assert_eq!(Record::parse(&written), Record::RedZone([7; RED_ZONE_BYTES]));
        assert_eq!(Record::parse(&[]), Record::Other);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Record::parse(&bytes);
        }

        #[test]
        fn any_sample_is_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut sample = sample();
            sample.truncate(16);
            sample.extend(bytes);
            let _ = Record::parse(&sample);
        }
    }
}
