//! The guest's program: it follows orders, one after the other, for ever.
//!
//! Assembled with the crate and copied into the guest, where it runs in 64-bit mode as for users, without stack,
//! interrupts or handlers. RBX is the order page, RSI the request page, RDI where the next sample goes, R12 the samples
//! left, R13 the requests left in this one, R14 the page of the window, R15 the sequence, R9 when the sample began, R8
//! how far the processor's own pages lie behind those of the first. A
//! hypercall changes RAX, an interrupt R10.

use std::arch::global_asm;

use crate::layout::{PAGE_BYTES, WINDOW_ADDRESS, WINDOW_PAGES, order, page, port, request};

/// How the guest reaches the monitor, or what it does instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Way {
    /// A request in memory; the sidecore serves it.
    Sidecall = 0,
    /// The same request; the guest is left, and the program serves it.
    Exit = 1,
    /// Intel's instruction for a hypercall; the kernel answers it.
    Vmcall = 2,
    /// AMD's.
    Vmmcall = 3,
    /// No call: the guest counts `frame` down to zero.
    Count = 4,
    /// A request in memory for whose answer nobody waits.
    Abandon = 5,
    /// A request in memory; the kernel tells a thread of the program, which sleeps, by eventfd.
    Notify = 6,
    /// A request in memory for whose answer the guest waits for an interrupt.
    Posted = 7,
}

global_asm!(
    ".pushsection .rodata",
    ".globl sidecall_guest, sidecall_guest_interrupt, sidecall_guest_end",
    ".hidden sidecall_guest, sidecall_guest_interrupt, sidecall_guest_end",
    "sidecall_guest:",
    "lea ebx, [r8 + {order}]",
    "lea esi, [r8 + {request}]",
    "lea edi, [r8 + {samples}]",
    "mov r15, [rbx + 8 * {SEQUENCE}]",
    "mov r14, [rbx + 8 * {PAGE}]",
    "mov r12, [rbx + 8 * {SAMPLES}]",
    // A sample.
    "20:",
    "mov r13, [rbx + 8 * {BATCH}]",
    "lfence",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov r9, rax",
    // A call.
    "21:",
    "mov rbp, [rbx + 8 * {WAY}]",
    "cmp ebp, {VMCALL}",
    "je 31f",
    "cmp ebp, {VMMCALL}",
    "je 32f",
    "cmp ebp, {COUNT}",
    "je 34f",
    "inc r15",
    "mov rax, [rbx + 8 * {OPERATION}]",
    "mov [rsi + 8 * {REQUEST_OPERATION}], rax",
    "mov [rsi + 8 * {REQUEST_PAGE}], r14",
    "mov rax, [rbx + 8 * {FRAME}]",
    "mov [rsi + 8 * {REQUEST_FRAME}], rax",
    "cmp ebp, {EXIT}",
    "je 35f",
    // The exchange orders the request before the look whether the sidecore sleeps.
    "xor r10d, r10d",
    "mov rax, r15",
    "xchg [rsi + 8 * {REQUEST_SEQUENCE}], rax",
    "cmp ebp, {ABANDON}",
    "je 40f",
    "cmp ebp, {NOTIFY}",
    "jne 24f",
    "mov dx, {notify}",
    "out dx, al",
    "24:",
    "cmp ebp, {POSTED}",
    "jne 27f",
    "26:",
    "pause",
    "test r10d, r10d",
    "jz 26b",
    "27:",
    "cmp qword ptr [rsi + 8 * {ASLEEP}], 0",
    "je 22f",
    "mov dx, {wake}",
    "out dx, al",
    "22:",
    "mov ecx, 1000",
    "23:",
    "cmp [rsi + 8 * {ANSWERED}], r15",
    "je 39f",
    "dec ecx",
    "jnz 23b",
    "pause",
    "jmp 22b",
    // The other ways. Hypercalls are for privileged code: the kernel refuses this one, which is a null call.
    "31:",
    "mov eax, 1",
    "vmcall",
    "jmp 40f",
    "32:",
    "mov eax, 1",
    "vmmcall",
    "jmp 40f",
    "34:",
    "mov rcx, [rbx + 8 * {FRAME}]",
    "25:",
    "dec rcx",
    "jnz 25b",
    "jmp 40f",
    "35:",
    // Not announced in memory, where the sidecore would serve it too.
    "mov dx, {serve}",
    "out dx, al",
    // The answer.
    "39:",
    "mov rax, [rsi + 8 * {REQUEST_VALUE}]",
    "mov [rbx + 8 * {VALUE}], rax",
    "mov rax, [rsi + 8 * {REQUEST_STATUS}]",
    "mov [rbx + 8 * {STATUS}], rax",
    "test rax, rax",
    "jz 40f",
    "inc qword ptr [rbx + 8 * {REFUSED}]",
    "40:",
    "mov rbp, [rbx + 8 * {AFTER}]",
    "test ebp, {TOUCH}",
    "jz 43f",
    "mov rax, r14",
    "and eax, {window_mask}",
    "shl rax, 12",
    "mov rax, [rax + {window}]",
    "mov [rbx + 8 * {TOUCHED}], rax",
    "43:",
    "add r14, [rbx + 8 * {STEP}]",
    "dec r13",
    "jnz 21b",
    "lfence",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, r9",
    "mov [rdi], rax",
    "add rdi, 8",
    "dec r12",
    "jnz 20b",
    "mov [rbx + 8 * {SEQUENCE}], r15",
    "mov dx, {done}",
    "out dx, al",
    "jmp sidecall_guest",
    "sidecall_guest_interrupt:",
    "mov r10d, 1",
    "iretq",
    "sidecall_guest_end:",
    ".popsection",
    order = const page::ORDER * PAGE_BYTES,
    request = const page::REQUEST * PAGE_BYTES,
    samples = const page::SAMPLES * PAGE_BYTES,
    window = const WINDOW_ADDRESS,
    window_mask = const WINDOW_PAGES - 1,
    WAY = const order::WAY,
    OPERATION = const order::OPERATION,
    PAGE = const order::PAGE,
    FRAME = const order::FRAME,
    STEP = const order::STEP,
    BATCH = const order::BATCH,
    SAMPLES = const order::SAMPLES,
    AFTER = const order::AFTER,
    STATUS = const order::STATUS,
    VALUE = const order::VALUE,
    TOUCHED = const order::TOUCHED,
    REFUSED = const order::REFUSED,
    SEQUENCE = const order::SEQUENCE,
    TOUCH = const order::TOUCH,
    REQUEST_SEQUENCE = const request::SEQUENCE,
    REQUEST_OPERATION = const request::OPERATION,
    REQUEST_PAGE = const request::PAGE,
    REQUEST_FRAME = const request::FRAME,
    ANSWERED = const request::ANSWERED,
    REQUEST_STATUS = const request::STATUS,
    REQUEST_VALUE = const request::VALUE,
    ASLEEP = const request::ASLEEP,
    EXIT = const Way::Exit as u64,
    VMCALL = const Way::Vmcall as u64,
    VMMCALL = const Way::Vmmcall as u64,
    COUNT = const Way::Count as u64,
    ABANDON = const Way::Abandon as u64,
    POSTED = const Way::Posted as u64,
    NOTIFY = const Way::Notify as u64,
    notify = const port::NOTIFY,
    wake = const port::WAKE,
    serve = const port::SERVE,
    done = const port::DONE,
);

unsafe extern "C" {
    static sidecall_guest: u8;
    static sidecall_guest_interrupt: u8;
    static sidecall_guest_end: u8;
}

/// How far from the program's beginning its handler of interrupts is.
pub(crate) fn handler() -> usize {
    let (start, handler) = (&raw const sidecall_guest, &raw const sidecall_guest_interrupt);
    handler as usize - start as usize
}

/// The program's bytes.
pub(crate) fn program() -> &'static [u8] {
    let (start, end) = (&raw const sidecall_guest, &raw const sidecall_guest_end);
    // SAFETY: both labels stand in one read-only section of this program, the second after the first, and every byte
    // between them was put there by the assembler.
    unsafe { std::slice::from_raw_parts(start, end as usize - start as usize) }
}
