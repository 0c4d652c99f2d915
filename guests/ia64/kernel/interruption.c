/* What every interruption comes to that translation.S does not handle itself: page faults, system calls that need the
   whole frame, floating point that is disabled, external interrupts, and what ends a process or the machine. */

#include "kernel.h"

#include <asm/unistd.h>

static const struct {
    uint64_t vector;
    const char *name;
    enum signal_number signal; /* for the program; zero: the kernel handles it */
} kinds[] = {
    {0x0000, "VHPT translation", 0},
    {0x0400, "instruction TLB miss", 0},
    {0x0800, "data TLB miss", 0},
    {0x0c00, "alternate instruction TLB miss", 0},
    {0x1000, "alternate data TLB miss", 0},
    {0x1800, "instruction key miss", SIGSEGV},
    {0x1c00, "data key miss", SIGSEGV},
    {0x2000, "dirty bit", 0},
    {0x2400, "instruction access bit", 0},
    {0x2800, "data access bit", 0},
    {0x2c00, "break instruction", SIGILL},
    {0x3000, "external interrupt", 0},
    {0x5000, "page not present", 0},
    {0x5100, "key permission", SIGSEGV},
    {0x5200, "instruction access rights", 0},
    {0x5300, "data access rights", 0},
    {0x5400, "general exception", SIGILL},
    {0x5500, "disabled floating-point register", 0},
    {0x5600, "NaT consumption", SIGILL},
    {0x5700, "speculation", SIGILL},
    {0x5900, "debug", SIGTRAP},
    {0x5a00, "unaligned reference", SIGSEGV},
    {0x5b00, "unsupported data reference", SIGSEGV},
    {0x5c00, "floating-point fault", SIGFPE},
    {0x5d00, "floating-point trap", SIGFPE},
    {0x5e00, "lower-privilege transfer", SIGTRAP},
    {0x5f00, "taken branch", SIGTRAP},
    {0x6000, "single step", SIGTRAP},
};

#define ISR_EXECUTE (1UL << 32)
#define ISR_WRITE (1UL << 33)
#define ISR_SPECULATIVE (1UL << 36)

/* An interruption that nothing expects: everything there is to know, and the end of the machine. */
static void unexpected(const struct frame *frame, const char *name)
{
    panic("unexpected interruption: %s (vector %lx) at %lx slot %lu on CPU %u, process %lu\n"
          "        ipsr %lx isr %lx ifa %lx iim %lx iipa %lx\n"
          "        r1 %lx sp %lx tp %lx b0 %lx pfs %lx bspstore %lx",
          name, frame->vector, frame->iip, frame->ipsr >> PSR_RI_SHIFT & 3, this_cpu->number, current->identity,
          frame->ipsr, frame->isr, frame->ifa, frame->iim, frame->iipa, frame->r1, frame->r12, frame->r13, frame->b0,
          frame->pfs, frame->bspstore);
}

static int is_from_program(const struct frame *frame)
{
    return frame == user_frame(current);
}

/* The interrupted instruction: its bundle's address plus its slot. */
static uint64_t instruction_of(const struct frame *frame)
{
    return frame->iip + (frame->ipsr >> PSR_RI_SHIFT & 3);
}

/* A fault that a program deserves. Privileged code on the gate page has none of its own: what it was given is wrong, and
   the slow way says so. */
static void blame(struct frame *frame, int signal, int code, uint64_t address)
{
    if (frame->ipsr >> PSR_CPL_SHIFT & 3) {
        struct signal_information information = {
            .signal = signal, .code = code, .fault = {.address = address, .isr = frame->isr, .flags = SIGNAL_HAS_ISR},
        };
        signal_force(current, &information);
    } else {
        frame->iip = GATE_ADDRESS + ((uint64_t)gate_by_break - (uint64_t)gate_page);
        frame->ipsr &= ~(3UL << PSR_RI_SHIFT);
    }
}

/* Where an access of the kernel to a program's memory goes on if it fails: addresses of bundles plus slots (machine.h). */
extern const struct exception {
    uint64_t access, behind;
} exceptions[], exceptions_end[];

/* Whether the kernel expected that this reference might fail; it goes on where it said then. */
static int is_excepted(struct frame *frame)
{
    uint64_t behind = 0;
    if (frame->iip >= *(uint64_t *)copy_user /* its descriptor begins with its address */ && frame->iip < (uint64_t)copy_user_end)
        behind = (uint64_t)copy_user_fault;
    for (const struct exception *exception = exceptions; exception < exceptions_end && !behind; exception++)
        if (exception->access == instruction_of(frame)) {
            behind = exception->behind;
            frame->r8 = -EFAULT;
        }
    if (!behind)
        return 0;
    frame->iip = behind & -16UL;
    frame->ipsr = (frame->ipsr & ~(3UL << PSR_RI_SHIFT)) | (behind & 3) << PSR_RI_SHIFT;
    return 1;
}

/* A reference that the TLB refused. The kernel's own references to a program's memory come here too. */
static void reference(struct frame *frame, const char *name)
{
    int signal = SIGSEGV;
    if (frame->ifa < REGION_BASE(USER_REGIONS) && current->directory)
        signal = page_fault(current, frame->ifa, (frame->isr & ISR_WRITE) != 0, (frame->isr & ISR_EXECUTE) != 0);
    if (!signal)
        return;
    if (frame->isr & ISR_SPECULATIVE)
        frame->ipsr |= 1UL << PSR_ED_BIT; /* let the speculative load give a NaT */
    else if (is_from_program(frame))
        blame(frame, signal, area_is_there(current, frame->ifa) ? SEGV_ACCESS : SEGV_NO_MEMORY, frame->ifa);
    else if (!is_excepted(frame))
        unexpected(frame, name);
}

/* A `break` that break_instruction left to C. */
static void break_instruction_of(struct frame *frame)
{
    if (!is_from_program(frame))
        unexpected(frame, "break instruction");
    if (frame->iim != BREAK_SYSTEM_CALL) {
        struct signal_information information = {
            .signal = SIGILL, .code = ILL_BREAK, .fault = {.address = instruction_of(frame), .immediate = frame->iim},
        };
        signal_force(current, &information);
        return;
    }
    uint64_t slot = frame->ipsr >> PSR_RI_SHIFT & 3;
    frame->iip += slot == 2 ? 16 : 0;
    slot = slot == 2 ? 0 : slot + 1;
    frame->ipsr = (frame->ipsr & ~(3UL << PSR_RI_SHIFT)) | slot << PSR_RI_SHIFT | 3UL << PSR_CPL_SHIFT;
    frame->in_system_call = SYSTEM_CALL;
    if (frame->r15 == __NR_rt_sigreturn) {
        work_add(current, WORK_SIGNAL_RETURN);
        return;
    }
    long answer = process_fork(frame);
    frame->r8 = answer < 0 ? -answer : answer;
    frame->r10 = answer < 0 ? -1 : 0;
}

void interruption(struct frame *frame)
{
    frame->in_system_call = 0;
    const char *name = "reserved vector";
    enum signal_number signal = 0;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].vector == frame->vector)
            name = kinds[i].name, signal = kinds[i].signal;
    switch (frame->vector) {
    case 0x3000:
        external_interrupts();
        return;
    case 0x2c00:
        break_instruction_of(frame);
        return;
    case 0x5500:
        if (is_from_program(frame))
            floating_point_wanted(current, frame);
        else
            unexpected(frame, name);
        return;
    case 0x0000: case 0x0400: case 0x0800: case 0x0c00: case 0x1000: case 0x2000: case 0x2400: case 0x2800:
    case 0x5000: case 0x5200: case 0x5300:
        reference(frame, name);
        return;
    default:
        if (signal && is_from_program(frame))
            blame(frame, signal, SIGNAL_OF_A_FAULT, instruction_of(frame));
        else
            unexpected(frame, name);
    }
}

/* Before a task returns to its program with a bit set in its work word. Comes and goes with interrupts off. */
void work_before_return(struct frame *frame, struct preserved *preserved)
{
    while (current->work & WORK_BEFORE_RETURN) {
        if (current->work & WORK_SIGNAL_RETURN)
            signal_return(frame, preserved);
        if (current->work & (WORK_SIGNAL | WORK_RESTART))
            signals_deliver(frame, preserved);
        if (current->work & WORK_RESCHEDULE)
            yield();
    }
}

/* For work_entry: f2 to f31 hold the current program's values from here on, and count as changed. */
void floating_low_to_current(void)
{
    struct frame *frame = user_frame(current);
    if (frame->ipsr & PSR_DFL) {
        uint64_t isr = frame->isr;
        frame->isr = 1;
        floating_point_wanted(current, frame);
        frame->isr = isr;
    }
    frame->ipsr |= PSR_MFL;
}

/* A system call that returns with work to do needs the frame of an interruption: what a call destroys is zero in it. */
void complete_system_call_frame(struct frame *frame, uint64_t r8, uint64_t r10)
{
    frame->r2 = frame->r3 = frame->r9 = frame->r14 = frame->b7 = frame->ccv = frame->csd = 0;
    for (int i = 0; i < 16; i++)
        frame->r16[i] = 0;
    for (int i = 0; i < 6; i++)
        frame->f6[i] = (struct floating){{0, 0}};
    int is_interrupted = r10 && r8 == ERESTART;
    frame->r8 = is_interrupted ? EINTR : r8;
    frame->r10 = r10;
    frame->in_system_call = is_interrupted ? SYSTEM_CALL_INTERRUPTED : SYSTEM_CALL;
    /* Of the NaT bits only those of r1 and r11 to r13 were saved. */
    frame->spill_unat &= rotate_right(1, -((uint64_t)&frame->r1 >> 3)) | rotate_right(7, -((uint64_t)&frame->r11 >> 3));
}
