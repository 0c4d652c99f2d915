//! What the monitor does for a guest: the same function for a request by exit and by sidecall.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sidestep_sidecall::line::{Answer, Line, Request};
use sidestep_sidecall::sidecore::Service;

use crate::devices::{Devices, Transfer};
use crate::layout::{FRAMES, PAGE_BYTES, WINDOW_PAGES, page};
use crate::memory::GuestMemory;
use crate::operation::{Operation, Status};

/// What identification returns.
pub const IDENTIFICATION: u64 = u64::from_le_bytes(*b"Sidestep");

/// Present, writable, for users: an entry of the window.
const ENTRY_FLAGS: u64 = 0b111;

/// What serves one processor of a guest.
pub struct GuestService {
    memory: Arc<GuestMemory>,
    processor: usize,
    devices: Option<Arc<Devices>>,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    interrupt: Option<vmm_sys_util::eventfd::EventFd>,
}

impl GuestService {
    /// What serves the processor of this number.
    pub fn new(memory: &Arc<GuestMemory>, processor: usize) -> Self {
        let memory = Arc::clone(memory);
        Self {
            memory,
            processor,
            devices: None,
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            interrupt: None,
        }
    }

    /// Serves requests for these devices as well, and waits for them: not for a [sidecore], which waits for nobody.
    /// [`ZeroWaitSidecore`](crate::program::ZeroWaitSidecore) is one that need not.
    ///
    /// [sidecore]: sidestep_sidecall::sidecore::Sidecore
    pub fn with_devices(self, devices: &Arc<Devices>) -> Self {
        Self {
            devices: Some(Arc::clone(devices)),
            ..self
        }
    }

    /// Signals `interrupt` with each answer: see [`Guest::interrupt`](crate::machine::Guest::interrupt).
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub fn interrupting(self, interrupt: vmm_sys_util::eventfd::EventFd) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }
}

impl Service for GuestService {
    #[inline]
    fn line(&self) -> Line<'_> {
        self.memory.line(self.processor)
    }

    #[inline]
    fn serve(&mut self, request: &Request) -> Answer {
        let answer = serve(request, &self.memory, self.devices.as_deref());
        // The guest that it interrupts looks for the answer, which is there in a moment.
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if let Some(interrupt) = &self.interrupt {
            // It fails where its count is full only, and then the guest has not taken the last one.
            let _ = interrupt.write(1);
        }
        answer
    }
}

/// Serves a request that was copied out of the guest's memory, and waits for the device if it is for one.
#[inline]
pub fn serve(request: &Request, memory: &GuestMemory, devices: Option<&Devices>) -> Answer {
    answer(ask(request, memory, devices).and_then(|asked| match asked {
        Asked::Monitor(value) => Ok(value),
        Asked::Device(devices, transfer) => devices.perform(memory, transfer),
    }))
}

/// How a request went, in the words of its line.
#[inline]
pub(crate) fn answer(result: Result<u64, Status>) -> Answer {
    match result {
        Ok(value) => Answer { status: 0, value },
        Err(status) => Answer {
            status: status as u64,
            value: 0,
        },
    }
}

/// Who has a request.
pub(crate) enum Asked<'a> {
    /// The monitor, which has done it.
    Monitor(u64),
    /// A device, which shall do this.
    Device(&'a Devices, Transfer),
}

/// Checks a request; does what the monitor is asked for.
#[inline]
pub(crate) fn ask<'a>(
    request: &Request,
    memory: &GuestMemory,
    devices: Option<&'a Devices>,
) -> Result<Asked<'a>, Status> {
    let operation = Operation::of(request.operation).ok_or(Status::NoOperation)?;
    match operation {
        Operation::Null => Ok(Asked::Monitor(0)),
        Operation::Identify => Ok(Asked::Monitor(IDENTIFICATION)),
        Operation::Map | Operation::Change | Operation::Unmap => {
            update(operation, request, memory).map(Asked::Monitor)
        }
        Operation::Read | Operation::Send => {
            let devices = devices.ok_or(Status::NoDevice)?;
            let transfer = devices.transfer(operation, request.first, request.second)?;
            Ok(Asked::Device(devices, transfer))
        }
    }
}

/// Alters an entry of the window; its value.
#[inline]
fn update(operation: Operation, request: &Request, memory: &GuestMemory) -> Result<u64, Status> {
    let index = usize::try_from(request.first)
        .ok()
        .filter(|index| *index < WINDOW_PAGES);
    let entry = memory.word(page::WINDOW, index.ok_or(Status::NoPage)?);
    let before = entry.load(Ordering::Relaxed);
    let is_mapped = before & 1 != 0;
    let value = match operation {
        Operation::Map if is_mapped => return Err(Status::Mapped),
        Operation::Change | Operation::Unmap if !is_mapped => return Err(Status::NotMapped),
        Operation::Unmap => 0,
        _ => frame_address(request.second)? | ENTRY_FLAGS,
    };
    entry.store(value, Ordering::Release);
    if is_mapped {
        // The guest may have written there whatever it likes; only a page that the window may show is flushed.
        let frame = before as usize / PAGE_BYTES;
        if FRAMES.contains(&frame) {
            memory.flush(frame).map_err(|_| Status::NotFlushed)?;
        }
    }
    Ok(value)
}

/// Where the frame lies. Only pages that are nothing else may be shown.
fn frame_address(frame: u64) -> Result<u64, Status> {
    let frame = usize::try_from(frame).ok().filter(|frame| FRAMES.contains(frame));
    frame
        .map(|frame| (frame * PAGE_BYTES) as u64)
        .ok_or(Status::NoFrame)
}
