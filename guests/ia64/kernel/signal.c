/* Signals: sending, delivering to a handler, and returning from it.

   Delivery writes the interruption's frame to the program's stack and lets the program go on in the gate page, which calls the
   handler. With signal-state=minimal that is all: a handler preserves the preserved registers itself, like every
   function. With signal-state=full they go through memory as well: to the kernel's stack (entry.S), to the
   program's stack here, and all the way back on return; what the paper's section 5.1 compares. */

#include "kernel.h"
#include "text.h"

/* On the program's stack, above 16 bytes of scratch area. */
struct saved_signal {
    uint64_t signal, blocked;
    struct frame frame;
    struct preserved preserved;
};

#define SIGNAL_IGNORE 1
/* Bits of PSR that a program may bring back from its stack. */
#define PSR_PROGRAM (PSR_UP | PSR_AC | PSR_MFL | PSR_MFH | 3UL << PSR_RI_SHIFT)

int save_preserved_state; /* for entry.S: signal-state=full */

static int ends_process(unsigned signal)
{
    return signal != SIGCHLD;
}

long signal_send(struct task *task, unsigned signal)
{
    if (signal >= SIGNALS_MAX)
        return -EINVAL;
    if (signal == 0)
        return 0;
    uint64_t saved = acquire(&scheduler);
    task->pending_signals |= 1UL << signal;
    if (!(task->blocked_signals >> signal & 1)) {
        task->work |= WORK_SIGNAL;
        if (task->state == TASK_SLEEPING)
            interrupt_sleep(task);
        else if (task != current && task->processor != this_cpu->number)
            interrupt_processor(task->processor, VECTOR_RESCHEDULE);
    }
    release(&scheduler, saved);
    return 0;
}

/* A signal that the program cannot put off: its own fault. */
void signal_force(struct task *task, unsigned signal)
{
    task->blocked_signals &= ~(1UL << signal);
    task->pending_signals |= 1UL << signal;
    task->work |= WORK_SIGNAL;
}

static void deliver(struct frame *frame, struct preserved *preserved, unsigned signal)
{
    struct signal_action *action = &current->actions[signal];
    if (action->handler == SIGNAL_IGNORE || (!action->handler && !ends_process(signal)))
        return;
    if (!action->handler) {
        if (current->identity == 1)
            print("kernel: signal %u ends the first process at %lx, address %lx\n", signal, frame->iip, frame->ifa);
        process_end(signal);
    }
    struct saved_signal state = {.signal = signal, .blocked = current->blocked_signals};
    size_t bytes = offsetof(struct saved_signal, preserved);
    state.frame = *frame;
    if (preserved) {
        state.preserved = *preserved;
        bytes = sizeof state;
    }
    uint64_t at = (frame->r12 - sizeof state) & -16UL;
    if (copy_to_user(at, &state, bytes))
        process_end(SIGSEGV);
    current->blocked_signals |= action->mask | 1UL << signal;
    frame->r2 = signal;
    frame->r3 = action->handler;
    frame->r12 = at - 16;
    frame->iip = GATE_ADDRESS + ((uint64_t)gate_signal - (uint64_t)gate_page);
    frame->ipsr = (frame->ipsr & ~(3UL << PSR_RI_SHIFT)) | 3UL << PSR_CPL_SHIFT;
    frame->ifs = 1UL << 63; /* an empty frame above the one that was interrupted */
    frame->spill_unat = 0;
}

void signals_deliver(struct frame *frame, struct preserved *preserved)
{
    for (;;) {
        uint64_t saved = acquire(&scheduler), waiting = current->pending_signals & ~current->blocked_signals;
        unsigned signal = waiting ? __builtin_ctzl(waiting) : 0;
        current->pending_signals &= ~(1UL << signal);
        if (!waiting)
            current->work &= ~WORK_SIGNAL;
        release(&scheduler, saved);
        if (!waiting)
            return;
        deliver(frame, preserved, signal);
    }
}

/* rt_sigreturn: the frame comes back from the program's stack, but for what is the kernel's. */
void signal_return(struct frame *frame, struct preserved *preserved)
{
    struct saved_signal state;
    size_t bytes = preserved ? sizeof state : offsetof(struct saved_signal, preserved);
    current->work &= ~WORK_SIGNAL_RETURN;
    if (copy_from_user(&state, frame->r12 + 16, bytes))
        process_end(SIGSEGV);
    struct frame *from = &state.frame;
    uint64_t ipsr = (frame->ipsr & ~PSR_PROGRAM) | (from->ipsr & PSR_PROGRAM);
    from->ipsr = ipsr;
    from->ifs = (from->ifs & 0x3fffffffff) | 1UL << 63;
    from->pfs = (from->pfs & ~(3UL << 62)) | 3UL << 62;
    from->rsc = frame->rsc;
    from->rnat = frame->rnat;
    from->bspstore = frame->bspstore;
    from->vector = frame->vector;
    from->loaded = frame->loaded;
    *frame = *from;
    if (preserved) {
        *preserved = state.preserved;
    }
    current->blocked_signals = state.blocked & ~(1UL << SIGKILL);
    if (current->pending_signals & ~current->blocked_signals)
        current->work |= WORK_SIGNAL;
}
