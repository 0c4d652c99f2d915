//! What an interrupted thread keeps below its stack pointer.
//!
//! A function that calls no other may keep what it likes in the 128 bytes below the stack pointer, the *red zone*
//! (System V ABI for x86-64, 3.2.2), and compilers have such functions spill bounds and counts of loops there. A sample
//! tells the stack from the pointer upwards only, and by the time that it is looked at the zone holds something else.
//! So a program in the kernel copies it at the interruption, into the ring in front of the sample: some instructions of
//! BPF, written out here, as no compiler for it is to be had on every host.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use perf_event_open_sys::{bindings, ioctls};

use crate::HostError;
use crate::watch::ring::Ring;

/// How many bytes the zone has.
pub(super) const RED_ZONE_BYTES: usize = 128;

/// Where the registers of an interrupted thread, which a program is handed, have its stack pointer
/// (`struct pt_regs` of x86-64).
const STACK_POINTER_AT: i16 = 152;
/// Commands of the system call `bpf`.
const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const PROGRAM_LOAD: i32 = 5;
/// A map of performance events by core.
const MAP_OF_EVENTS: u32 = 4;
/// A program that runs when an event interrupts.
const PROGRAM_OF_EVENT: u32 = 7;
/// Helpers of the kernel's that the program calls.
const PERF_EVENT_OUTPUT: i32 = 25;
const PROBE_READ_USER: i32 = 112;
/// For [`PERF_EVENT_OUTPUT`]: the event of the core that runs.
const CURRENT_CORE: i32 = -1;
/// The helpers are for programs whose licence goes with the GPL, as MIT does; the kernel knows that by this name.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";

/// An instruction as the kernel lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    operation: u8,
    /// The destination in the lower half, the source in the upper one.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// What `bpf` is told to make a map: `union bpf_attr`, from its beginning.
#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

/// To set an element of a map.
#[repr(C)]
struct ElementAttributes {
    map: u64,
    key: u64,
    value: u64,
    flags: u64,
}

/// To load a program.
#[repr(C)]
struct ProgramAttributes {
    kind: u32,
    instructions: u32,
    first_instruction: u64,
    licence: u64,
}

/// The program, and the map of the events that it writes to. When the map's descriptor is closed the kernel takes the
/// events out of it, and nothing is written any more.
pub(super) struct RedZone {
    program: OwnedFd,
    events: OwnedFd,
    /// These, of the cores.
    outputs: Vec<OwnedFd>,
}

impl RedZone {
    /// Loads the program, to write for so many cores.
    ///
    /// # Errors
    /// When the kernel has no such programs, or forbids them.
    pub(super) fn load(cores: u32) -> io::Result<Self> {
        let attributes = MapAttributes {
            kind: MAP_OF_EVENTS,
            key_bytes: 4,
            value_bytes: 4,
            entries: cores,
        };
        let events = descriptor(bpf(MAP_CREATE, &attributes)?);
        let instructions = program(events.as_raw_fd());
        let attributes = ProgramAttributes {
            kind: PROGRAM_OF_EVENT,
            instructions: instructions.len() as u32,
            first_instruction: instructions.as_ptr() as u64,
            licence: LICENCE.as_ptr() as u64,
        };
        let program = descriptor(bpf(PROGRAM_LOAD, &attributes)?);
        Ok(Self {
            program,
            events,
            outputs: Vec::new(),
        })
    }

    /// Has the program run whenever a core's event interrupts, and write into its ring.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn attach(mut self, core: i32, ring: &Ring) -> Result<Self, HostError> {
        let failed = |call, source| HostError::Call {
            call,
            subject: "a program that reads below an interrupted thread's stack".into(),
            source,
        };
        let output = ring.open_into(&mut event(), core)?;
        let (key, value) = (core as u32, output.as_raw_fd() as u32);
        let attributes = ElementAttributes {
            map: self.events.as_raw_fd() as u64,
            key: &raw const key as u64,
            value: &raw const value as u64,
            flags: 0,
        };
        bpf(MAP_UPDATE, &attributes).map_err(|source| failed("bpf", source))?;
        // SAFETY: both descriptors are open and ours; the request takes no memory.
        let outcome = unsafe { ioctls::SET_BPF(ring.event().as_raw_fd(), self.program.as_raw_fd() as u32) };
        if outcome < 0 {
            return Err(failed(
                "ioctl(PERF_EVENT_IOC_SET_BPF)",
                io::Error::last_os_error(),
            ));
        }
        self.outputs.push(output);
        Ok(self)
    }
}

/// The event that the program writes to.
fn event() -> bindings::perf_event_attr {
    bindings::perf_event_attr {
        size: size_of::<bindings::perf_event_attr>() as u32,
        type_: bindings::PERF_TYPE_SOFTWARE,
        config: bindings::PERF_COUNT_SW_BPF_OUTPUT.into(),
        sample_type: bindings::PERF_SAMPLE_RAW.into(),
        ..Default::default()
    }
}

/// The program: copies the red zone of who was interrupted to its own stack, and from there to the core's event.
fn program(events: i32) -> [Instruction; 18] {
    let instruction = |operation: u8, to: u8, from: u8, offset: i16, immediate: i32| Instruction {
        operation,
        registers: from << 4 | to,
        offset,
        immediate,
    };
    // Operations, by the kernel's instruction-set document. The move of a half leaves the upper one zero.
    let (move_register, move_number, move_half, add_number) = (0xbf, 0xb7, 0xb4, 0x07);
    let (load, load_wide, jump_unless_equal, call, end) = (0x79, 0x18, 0x55, 0x85, 0x95);
    // What is loaded wide is a map, by its descriptor.
    let of_map = 1;
    let (frame, room) = (10, RED_ZONE_BYTES as i32);
    [
        instruction(move_register, 6, 1, 0, 0),
        instruction(load, 3, 6, STACK_POINTER_AT, 0),
        instruction(add_number, 3, 0, 0, -room),
        instruction(move_register, 1, frame, 0, 0),
        instruction(add_number, 1, 0, 0, -room),
        instruction(move_number, 2, 0, 0, room),
        instruction(call, 0, 0, 0, PROBE_READ_USER),
        // Nothing where it could not be read: on to the end.
        instruction(jump_unless_equal, 0, 0, 8, 0),
        instruction(move_register, 1, 6, 0, 0),
        instruction(load_wide, 2, of_map, 0, events),
        instruction(0, 0, 0, 0, 0),
        instruction(move_half, 3, 0, 0, CURRENT_CORE),
        instruction(move_register, 4, frame, 0, 0),
        instruction(add_number, 4, 0, 0, -room),
        instruction(move_number, 5, 0, 0, room),
        instruction(call, 0, 0, 0, PERF_EVENT_OUTPUT),
        // The sample itself is wanted, too.
        instruction(move_number, 0, 0, 0, 1),
        instruction(end, 0, 0, 0, 0),
    ]
}

/// The system call.
fn bpf<Attributes>(command: i32, attributes: &Attributes) -> io::Result<i32> {
    // SAFETY: the kernel reads so many bytes of a structure that lives as long as the call; addresses in it are of
    // structures that do, too.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<Attributes>(),
        )
    };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(outcome as i32)
}

fn descriptor(number: i32) -> OwnedFd {
    // SAFETY: the kernel has just returned this descriptor to us, and nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(number) }
}
