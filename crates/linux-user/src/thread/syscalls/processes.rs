//! Making and ending threads and processes.
//!
//! A thread is a host thread, a forked process a forked host process. A child that borrows its parent's memory
//! until it executes a program (`vfork`, `posix_spawn`) does so on the host, too: it is a host process with the
//! same memory, on a stack of its own, while the calling thread waits. So what it writes, errors above all, is
//! seen by the parent.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::mpsc;

use sidestep_ia64::Processor;

use super::{Arguments, SystemCallResult, Unfinished, fail};
use crate::host::signals as host_signals;
use crate::host::signals::Inbox;
use crate::host::{self, Errno};
use crate::memory::window::PAGE;
use crate::thread::{Ended, Thread};

/// Stack of the host thread that runs a guest thread.
const HOST_STACK: usize = 1 << 20;
/// The scratch area below every frame.
const SCRATCH: u64 = 16;
/// Flags that a thread must share with its process.
const THREAD_FLAGS: i32 = libc::CLONE_VM | libc::CLONE_SIGHAND;
/// Flags that a new process cannot have here.
const REFUSED: i32 = libc::CLONE_SIGHAND;
/// Flags that a new process can have if the C library's `fork` need not make it.
const NOT_WITH_FORK: i32 = libc::CLONE_PARENT
    | libc::CLONE_FILES
    | libc::CLONE_FS
    | libc::CLONE_IO
    | libc::CLONE_SYSVSEM
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// What a new thread or process is to be.
#[derive(Clone, Copy, Debug)]
struct Request {
    flags: i32,
    stack: u64,
    stack_size: u64,
    parent_identifier: u64,
    child_identifier: u64,
    thread_pointer: u64,
}

impl Request {
    fn has(&self, flag: i32) -> bool {
        self.flags & flag != 0
    }

    /// The registers of the child: the parent's, behind the system call, with result 0, and on its own stacks.
    fn child_processor(&self, parent: &Thread) -> Processor {
        let mut child = parent.processor.duplicate(parent.process.memory.clone());
        self.prepare(&mut child);
        child
    }

    fn prepare(&self, child: &mut Processor) {
        if self.stack != 0 {
            child
                .general
                .set(12, self.stack.wrapping_add(self.stack_size).wrapping_sub(SCRATCH));
            child.register_stack_mut().restart(self.stack, 0);
        }
        if self.has(libc::CLONE_SETTLS) {
            child.general.set(13, self.thread_pointer);
        }
        child.general.set(8, 0);
        child.general.set(10, 0);
        child.skip_instruction();
    }
}

/// `clone2(flags, stack, stack size, parent's word, child's word, thread pointer)`.
pub fn clone2(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [
        flags,
        stack,
        stack_size,
        parent_identifier,
        child_identifier,
        thread_pointer,
    ] = *arguments;
    let flags = flags as i32;
    clone_by(
        thread,
        Request {
            flags,
            stack,
            stack_size,
            parent_identifier,
            child_identifier,
            thread_pointer,
        },
    )
}

/// `clone(flags, stack, -, parent's word, child's word, thread pointer)`: the stack is taken as it is.
pub fn clone(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let mut arguments = *arguments;
    arguments[2] = SCRATCH;
    clone2(thread, &arguments)
}

fn clone_by(thread: &mut Thread, request: Request) -> SystemCallResult {
    if request.has(libc::CLONE_THREAD) {
        if request.flags & THREAD_FLAGS != THREAD_FLAGS || request.stack == 0 {
            return fail(libc::EINVAL);
        }
        return start_thread(thread, request);
    }
    if !request.has(libc::CLONE_VM) {
        return fork(thread, request);
    }
    if request.has(libc::CLONE_VFORK) {
        borrow_memory(thread, request)
    } else {
        fail(libc::EINVAL)
    }
}

/// Starts a thread of the same process.
// Not inlined: a processor on the stack would make `fork` touch its pages, too, which are copied one by one then.
#[inline(never)]
fn start_thread(thread: &mut Thread, request: Request) -> SystemCallResult {
    let process = thread.process.clone();
    let processor = request.child_processor(thread);
    let (blocked, unaligned) = (thread.blocked, thread.unaligned);
    process.memory.share();
    let (started, wait) = mpsc::sync_channel(1);
    let body = {
        let process = process.clone();
        move || {
            let mut child = Thread::new(process, processor);
            child.blocked = blocked;
            child.unaligned = unaligned;
            tell_identifier(&mut child, &request);
            let _ = started.send(child.identifier);
            drop(started);
            let ended = child.run();
            child.end(ended);
            if child.process.is_kept_by_this_thread() {
                // This thread forked, and this is the child, of which it is the first thread.
                child.process.conclude();
            }
        }
    };
    host_signals::block_all();
    let spawned = std::thread::Builder::new().stack_size(HOST_STACK).spawn(body);
    let identifier = match spawned {
        Ok(_) => wait.recv().map_err(|_| Errno(libc::EAGAIN)),
        Err(_) => Err(Errno(libc::EAGAIN)),
    };
    host_signals::set_mask(thread.blocked);
    Ok(identifier? as u64)
}

/// Writes the identifier of a new thread where parent and child want it.
fn tell_identifier(child: &mut Thread, request: &Request) {
    let memory = &child.process.memory;
    if request.has(libc::CLONE_PARENT_SETTID) {
        let _ = memory.write(request.parent_identifier, &child.identifier);
    }
    if request.has(libc::CLONE_CHILD_SETTID) {
        let _ = memory.write(request.child_identifier, &child.identifier);
    }
    if request.has(libc::CLONE_CHILD_CLEARTID) {
        child.clear_identifier = request.child_identifier;
    }
}

/// Whether signals wait that must be delivered before a process may be copied.
fn settled(thread: &Thread) -> Result<(), Unfinished> {
    host_signals::block_all();
    if thread.inbox.is_empty() {
        Ok(())
    } else {
        host_signals::set_mask(thread.blocked);
        Err(Unfinished::RestartAlways)
    }
}

/// Makes a process with a copy of the memory.
fn fork(thread: &mut Thread, request: Request) -> SystemCallResult {
    let special = request.flags & NOT_WITH_FORK;
    let is_plain = special == 0 && request.flags & 0xff == libc::SIGCHLD;
    // Only the C library's `fork` copies locks of its own that other threads may hold.
    let process = thread.process.clone();
    if request.flags & REFUSED != 0 || !is_plain && process.threads() > 1 {
        return fail(libc::EINVAL);
    }
    settled(thread)?;
    thread.flush_trace();
    if special & libc::CLONE_FILES != 0 {
        process.files.share();
    }
    if !is_plain {
        process.be_alone();
    }
    // Every lock of this process is held, so that the child finds none of them taken by a thread it does not have.
    // The order is that of all other code: the program break, the world, the rest.
    let heap = process.memory.heap();
    let child = process.memory.world.fork(&thread.member, || {
        let _mappings = process.memory.mappings_mut();
        let _actions = process.actions();
        let _limits = process.limits();
        let _peers = process.peers();
        let _progress = process.progress.lock();
        let child = if is_plain {
            // SAFETY: the child runs on as this thread does; no other thread is inside the guest, and the C
            // library's own locks are its `fork`'s business.
            unsafe { libc::fork() }
        } else {
            // SAFETY: as above; there is no other thread, and the child has a copy of this stack.
            unsafe { libc::syscall(libc::SYS_clone, special | request.flags & 0xff, 0, 0, 0, 0) as i32 }
        };
        (child == 0, child)
    });
    let error = Errno::last();
    drop(heap);
    if child == 0 {
        thread.become_forked_child();
        tell_identifier(
            thread,
            &Request {
                flags: request.flags & !libc::CLONE_PARENT_SETTID,
                ..request
            },
        );
        host_signals::set_mask(thread.blocked);
        request.prepare(&mut thread.processor);
        return Err(Unfinished::Resumed);
    }
    host_signals::set_mask(thread.blocked);
    if child < 0 {
        return Err(error.into());
    }
    if request.has(libc::CLONE_PARENT_SETTID) {
        let _ = process.memory.write(request.parent_identifier, &child);
    }
    if request.has(libc::CLONE_PIDFD) {
        let descriptor = thread.host(libc::SYS_pidfd_open, [child as u64, 0, 0, 0, 0, 0])?;
        let _ = process
            .memory
            .write(request.parent_identifier, &(descriptor as i32));
    }
    Ok(child as u64)
}

/// What a child that borrows memory is started with, and where its parent finds what to free.
struct Borrower {
    request: Request,
    processor: Option<Processor>,
    process: Arc<crate::process::Process>,
    blocked: u64,
    thread: Option<Thread>,
}

/// Runs a child in this memory until it executes a program or ends; the calling thread waits.
#[inline(never)]
fn borrow_memory(thread: &mut Thread, request: Request) -> SystemCallResult {
    const STACK: usize = 64 * PAGE as usize;
    let shared = libc::CLONE_FILES | libc::CLONE_FS;
    if request.flags & (REFUSED | NOT_WITH_FORK & !shared) != 0 {
        return fail(libc::EINVAL);
    }
    if request.has(libc::CLONE_FILES) {
        thread.process.files.share();
    }
    settled(thread)?;
    thread.flush_trace();
    let mut borrower = Borrower {
        request,
        processor: Some(request.child_processor(thread)),
        process: Arc::new(thread.process.borrowing_child()),
        blocked: thread.blocked,
        thread: None,
    };
    let mut stack = vec![0u128; STACK / size_of::<u128>()];
    let top = stack.as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | request.flags & (0xff | shared);
    // SAFETY: the child runs on a stack of its own; this thread, whose thread-local data it uses, sleeps until
    // the child has executed a program or ended; `borrower` and `stack` live until then.
    let child = unsafe { libc::clone(run_borrower, top.cast(), flags, (&raw mut borrower).cast()) };
    let error = Errno::last();
    Inbox::attach(Arc::as_ptr(&thread.inbox));
    if let Some(ended) = borrower.thread.take() {
        thread.process.memory.world.part(&ended.member);
    }
    host_signals::set_mask(thread.blocked);
    if child < 0 {
        return Err(error.into());
    }
    if request.has(libc::CLONE_PARENT_SETTID) {
        let _ = thread.process.memory.write(request.parent_identifier, &child);
    }
    Ok(child as u64)
}

extern "C" fn run_borrower(argument: *mut c_void) -> i32 {
    // SAFETY: `borrow_memory` passes its `Borrower` and sleeps.
    let borrower = unsafe { &mut *argument.cast::<Borrower>() };
    let Some(processor) = borrower.processor.take() else {
        return 127;
    };
    let thread = borrower
        .thread
        .insert(Thread::new(borrower.process.clone(), processor));
    thread.blocked = borrower.blocked;
    let request = Request {
        flags: borrower.request.flags & !libc::CLONE_PARENT_SETTID,
        ..borrower.request
    };
    tell_identifier(thread, &request);
    let ended = thread.run();
    super::threads::at_end(thread);
    match ended {
        Ended::Thread(status) => host::exit_group(status),
        Ended::Process(ending) => ending.leave(),
    }
}

/// `exit(status)`: the calling thread ends.
pub fn exit(_thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    Err(Unfinished::ThreadEnd(arguments[0] as i32 & 0xff))
}

/// `exit_group(status)`: the process ends.
pub fn exit_group(_thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    Err(Unfinished::ProcessEnd(arguments[0] as i32 & 0xff))
}
