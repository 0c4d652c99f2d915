//! Leaving a guest and entering it again, under the kernel's own monitor.
//!
//! Calls of the monitor are made by the guest of the real sidecalls, in 64-bit mode as for users, where every KVM lets
//! a guest run by itself, and timed by that guest. What is for privileged code is measured in another guest: a loop in
//! real mode with one instruction; what the same loop takes without it is subtracted. It counts down in ESI and halts
//! at zero.

use std::error::Error;
use std::time::Duration;

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};

use sidestep_sidecall_kvm::guest::Way;
use sidestep_sidecall_kvm::kind::{Kind, picoseconds};
use sidestep_sidecall_kvm::machine::{self as sidecall_kvm, GuestError, Order};
use sidestep_sidecall_kvm::operation::Operation;

use super::core::PAGE;
use super::sample::{Interval, sampled, timed_by};
use super::{Options, Unavailable, refused};

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
                    Ok(exit) => {
                        let stopped = format!("the guest stopped for another reason than expected: {exit:?}");
                        return Err(Unavailable::Guest(stopped));
                    }
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

/// What a call of the monitor takes that does nothing.
fn call(options: &Options, way: impl FnOnce(&Kind) -> Way) -> Result<Interval, Unavailable> {
    let mut guest = sidecall_kvm::Guest::new().map_err(unavailable)?;
    let kind = Kind::of(&mut guest).map_err(unavailable)?;
    let order = Order::one(way(&kind), Operation::Null);
    timed_by(options.samples, |batch| {
        let outcome = guest.run(Order { batch, ..order }).map_err(unavailable)?;
        let time_ps = picoseconds(outcome.ticks[0], kind.tick_ps);
        Ok(Duration::from_nanos(time_ps / 1000))
    })
}

fn unavailable(error: GuestError) -> Unavailable {
    let cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
    Unavailable::Guest(format!("{error}{cause}"))
}

/// An exit that the kernel handles: a hypercall, which it refuses, as the guest is not privileged.
pub fn to_kernel(options: &Options) -> Result<Interval, Unavailable> {
    call(options, |kind| kind.hypercall)
}

/// An exit that the program handles: a port that nobody in the kernel knows.
pub fn to_program(options: &Options) -> Result<Interval, Unavailable> {
    call(options, |_| Way::Exit)
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
