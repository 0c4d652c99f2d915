//! Registers as gdb's ia64 target numbers them.
//!
//! The numbers and sizes are those of gdb's `ia64-tdep.h`; an 8-byte value each, 16 bytes for a floating-point register
//! in its spill format. gdb computes three things itself: the program counter is `ip` with the slot from `psr.ri`;
//! r32 and above come from the backing store, which `bsp` shows with the current frame stored; single predicates and
//! NaT bits come from `pr`, `unat` and the backing store.

use sidestep_ia64::Processor;
use sidestep_ia64::float::FloatRegister;
use sidestep_ia64::registers::application;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::registers::status::psr;

/// How many registers gdb transfers.
pub const COUNT: usize = 462;

/// The first numbers of the groups.
const GENERAL: usize = 0;
const FLOATING: usize = 128;
const PREDICATE: usize = 256;
const BRANCH: usize = 320;
const VIRTUAL_FRAME_POINTER: usize = 328;
const VIRTUAL_RETURN_ADDRESS: usize = 329;
const PREDICATES: usize = 330;
/// The instruction pointer's number.
pub const INSTRUCTION_POINTER: usize = 331;
/// The processor status register's number.
pub const STATUS: usize = 332;
const FRAME_MARKER: usize = 333;
const APPLICATION: usize = 334;

/// A register by gdb's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// r0 to r127.
    General(u8),
    /// f0 to f127.
    Floating(u8),
    /// p0 to p63.
    Predicate(u8),
    /// b0 to b7.
    Branch(u8),
    /// A register that only a compiler knows.
    Virtual,
    /// All predicates, without rotation.
    Predicates,
    /// The address of the bundle.
    InstructionPointer,
    /// PSR, with the slot.
    Status,
    /// The current frame marker.
    FrameMarker,
    /// ar0 to ar127.
    Application(u8),
}

impl Register {
    /// The register of a number.
    pub fn from_number(number: usize) -> Option<Register> {
        let index = |first: usize| (number - first) as u8;
        Some(match number {
            GENERAL..FLOATING => Register::General(index(GENERAL)),
            FLOATING..PREDICATE => Register::Floating(index(FLOATING)),
            PREDICATE..BRANCH => Register::Predicate(index(PREDICATE)),
            BRANCH..VIRTUAL_FRAME_POINTER => Register::Branch(index(BRANCH)),
            VIRTUAL_FRAME_POINTER | VIRTUAL_RETURN_ADDRESS => Register::Virtual,
            PREDICATES => Register::Predicates,
            INSTRUCTION_POINTER => Register::InstructionPointer,
            STATUS => Register::Status,
            FRAME_MARKER => Register::FrameMarker,
            APPLICATION..COUNT => Register::Application(index(APPLICATION)),
            _ => return None,
        })
    }

    /// Its size in bytes.
    pub fn size(self) -> usize {
        match self {
            Register::Floating(_) => 16,
            _ => 8,
        }
    }

    /// Its name, as gdb writes it.
    pub fn name(self) -> String {
        match self {
            Register::General(index) => format!("r{index}"),
            Register::Floating(index) => format!("f{index}"),
            Register::Predicate(index) => format!("p{index}"),
            Register::Branch(index) => format!("b{index}"),
            Register::Virtual => String::new(),
            Register::Predicates => "pr".to_owned(),
            Register::InstructionPointer => "ip".to_owned(),
            Register::Status => "psr".to_owned(),
            Register::FrameMarker => "cfm".to_owned(),
            Register::Application(index) => APPLICATION_NAMES
                .iter()
                .find(|(number, _)| *number == index)
                .map_or_else(|| format!("ar{index}"), |(_, name)| (*name).to_owned()),
        }
    }

    /// Its value; the second word is zero but for floating-point registers.
    pub fn read(self, processor: &Processor) -> [u64; 2] {
        let value = match self {
            Register::General(index) if u32::from(index) < 32 + processor.frame.size => {
                processor.general.value(index)
            }
            Register::General(_) | Register::Virtual => 0,
            Register::Floating(index) => return processor.floating(index).to_spill(),
            Register::Predicate(index) => u64::from(processor.predicate(index)),
            Register::Branch(index) => processor.branch[usize::from(index)],
            Register::Predicates => processor.unrotated_predicates(),
            Register::InstructionPointer => processor.instruction_pointer().0,
            Register::Status => {
                let slot = u64::from(processor.instruction_pointer().1);
                processor.status & !psr::RI | slot << psr::RI_SHIFT
            }
            Register::FrameMarker => processor.frame.bits(),
            Register::Application(application::BSP) => processor.backing_store_end(),
            Register::Application(application::ITC) => {
                let counter = processor.application(application::ITC);
                counter.wrapping_add(processor.instructions_retired())
            }
            Register::Application(index) => processor.application(index),
        };
        [value, 0]
    }

    /// Changes it. False if it cannot be changed: constants, what depends on the frame, what does not exist.
    pub fn write(self, processor: &mut Processor, [value, high]: [u64; 2]) -> bool {
        match self {
            Register::General(index @ 1..) if u32::from(index) < 32 + processor.frame.size => {
                processor.general.set(index, value);
            }
            Register::Floating(index @ 2..) => {
                processor.set_floating(index, FloatRegister::from_spill([value, high]));
            }
            Register::Predicate(index) => processor.set_predicate(index, value != 0),
            Register::Branch(index) => processor.branch[usize::from(index)] = value,
            Register::Predicates => processor.set_unrotated_predicates(value),
            Register::InstructionPointer => {
                let (_, slot) = processor.instruction_pointer();
                processor.set_instruction_pointer(value, slot);
            }
            Register::Status => {
                let (ip, _) = processor.instruction_pointer();
                processor.set_instruction_pointer(ip, (value >> psr::RI_SHIFT & 3) as u8);
                processor.set_status(value & !psr::RI);
            }
            Register::FrameMarker => {
                let marker = FrameMarker::from_bits(value);
                if marker != processor.frame {
                    return false;
                }
            }
            Register::Application(application::BSP) => {
                return value == processor.backing_store_end();
            }
            Register::Application(application::ITC) => {
                let counter = value.wrapping_sub(processor.instructions_retired());
                processor.set_application(application::ITC, counter);
            }
            Register::Application(index) => processor.set_application(index, value),
            Register::General(_) | Register::Floating(_) | Register::Virtual => return false,
        }
        true
    }
}

/// The application registers that have names.
const APPLICATION_NAMES: &[(u8, &str)] = &[
    (0, "kr0"),
    (1, "kr1"),
    (2, "kr2"),
    (3, "kr3"),
    (4, "kr4"),
    (5, "kr5"),
    (6, "kr6"),
    (7, "kr7"),
    (application::RSC, "rsc"),
    (application::BSP, "bsp"),
    (application::BSPSTORE, "bspstore"),
    (application::RNAT, "rnat"),
    (21, "fcr"),
    (24, "eflag"),
    (application::CSD, "csd"),
    (application::SSD, "ssd"),
    (27, "cflg"),
    (28, "fsr"),
    (29, "fir"),
    (30, "fdr"),
    (application::CCV, "ccv"),
    (application::UNAT, "unat"),
    (application::FPSR, "fpsr"),
    (application::ITC, "itc"),
    (application::PFS, "pfs"),
    (application::LC, "lc"),
    (application::EC, "ec"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_count_is_a_register() {
        let sizes: usize = (0..COUNT)
            .map(|number| Register::from_number(number).expect("a register").size())
            .sum();
        assert_eq!(sizes, 4720, "the bytes of gdb's packet with all registers");
        assert_eq!(Register::from_number(COUNT), None);
        let name = |number| Register::from_number(number).expect("a register").name();
        assert_eq!(
            [12, 130, 256, 320, 331, 332, 350, 351, 374, 398].map(name),
            ["r12", "f2", "p0", "b0", "ip", "psr", "rsc", "bsp", "fpsr", "pfs"].map(str::to_owned)
        );
    }
}
