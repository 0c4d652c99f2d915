//! Leaving a guest and entering it again, under the kernel's own monitor.
//!
//! The guest is a loop in real mode with one instruction that is measured; what the same loop takes without it is
//! subtracted. It counts down in ESI, because CPUID changes the other registers, and halts at zero.

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};

use super::core::PAGE;
use super::sample::{Interval, sampled};
use super::{Options, Unavailable, refused};

/// CPUID: the kernel answers it.
const CPUID: &[u8] = &[0x0f, 0xa2];
/// OUT to port 0x80: nobody in the kernel is there, so that the program is asked.
const OUT: &[u8] = &[0xe6, 0x80];
/// MOV EAX, CR2: privileged, and where there is hardware for virtual machines, done by it.
const READ_CR2: &[u8] = &[0x0f, 0x20, 0xd0];
/// DEC ESI with the prefix for 32 bits.
const COUNT_DOWN: &[u8] = &[0x66, 0x4e];
/// JNZ with a distance of a byte.
const JUMP: u8 = 0x75;
/// HLT.
const HALT: u8 = 0xf4;

/// Where the guest's only page is.
const START: u64 = 0x1000;

#[repr(align(4096))]
struct Page([u8; PAGE]);

/// A virtual machine with a page of code.
struct Guest {
    processor: VcpuFd,
    _machine: VmFd,
    // Unmapped after the machine that has it.
    _page: Box<Page>,
}

fn failed(what: &'static str) -> impl FnOnce(kvm_ioctls::Error) -> Unavailable {
    move |error| refused(what)(std::io::Error::from_raw_os_error(error.errno()))
}

impl Guest {
    /// A guest that executes `instruction` as often as it is told to.
    fn new(instruction: &[u8]) -> Result<Guest, Unavailable> {
        let kvm = Kvm::new().map_err(failed("opening /dev/kvm"))?;
        let machine = kvm.create_vm().map_err(failed("creating a virtual machine"))?;
        let mut page = Box::new(Page([HALT; PAGE]));
        let mut code = [instruction, COUNT_DOWN, &[JUMP, 0]].concat();
        let distance = code.len() as u8;
        *code.last_mut().expect("it ends with the distance") = distance.wrapping_neg();
        page.0[..code.len()].copy_from_slice(&code);
        let region = kvm_userspace_memory_region {
            slot: 0,
            guest_phys_addr: START,
            memory_size: PAGE as u64,
            userspace_addr: page.0.as_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the page is the guest's alone while the machine lives, and outlives it.
        unsafe { machine.set_user_memory_region(region) }.map_err(failed("giving a guest memory"))?;
        let processor = machine
            .create_vcpu(0)
            .map_err(failed("creating a virtual processor"))?;
        let mut system = processor.get_sregs().map_err(failed("reading registers"))?;
        (system.cs.base, system.cs.selector) = (0, 0);
        processor
            .set_sregs(&system)
            .map_err(failed("writing registers"))?;
        Ok(Guest {
            processor,
            _machine: machine,
            _page: page,
        })
    }

    /// Goes round the loop so many times.
    fn run(&mut self, rounds: u64) -> Result<(), Unavailable> {
        let mut left = rounds;
        while left > 0 {
            let now = left.min(u64::from(u32::MAX));
            left -= now;
            let mut registers = self.processor.get_regs().map_err(failed("reading registers"))?;
            (registers.rip, registers.rsi, registers.rflags) = (START, now, 2);
            self.processor
                .set_regs(&registers)
                .map_err(failed("writing registers"))?;
            loop {
                match self.processor.run() {
                    Ok(VcpuExit::Hlt) => break,
                    Ok(VcpuExit::IoOut(..)) => {}
                    Ok(exit) => return Err(Unavailable::Guest(format!("{exit:?}"))),
                    Err(error) if error.errno() == libc::EINTR => {}
                    Err(error) => return Err(failed("running a guest")(error)),
                }
            }
        }
        Ok(())
    }
}

/// What one `instruction` of a guest takes beyond the loop that it is in.
fn measure(options: &Options, instruction: &[u8]) -> Result<Interval, Unavailable> {
    let mut empty = Guest::new(&[])?;
    let overhead = sampled(options.samples, |operations| empty.run(operations))?;
    let mut guest = Guest::new(instruction)?;
    let with = sampled(options.samples, |operations| guest.run(operations))?;
    Ok(with.without(overhead))
}

/// An exit that the kernel handles.
pub fn to_kernel(options: &Options) -> Result<Interval, Unavailable> {
    measure(options, CPUID)
}

/// An exit that the program handles.
pub fn to_program(options: &Options) -> Result<Interval, Unavailable> {
    measure(options, OUT)
}

/// A guest that halts at once, again and again.
pub fn halt(options: &Options) -> Result<Interval, Unavailable> {
    let mut guest = Guest::new(&[])?;
    sampled(options.samples, |operations| {
        (0..operations).try_for_each(|_| guest.run(1))
    })
}

/// A privileged instruction that hardware virtualises; where software does, it is an exit as well.
pub fn privileged(options: &Options) -> Result<Interval, Unavailable> {
    measure(options, READ_CR2)
}
