/* How a handler is called, and how it returns.

   Delivery writes what is known of a signal and the interrupted state to the program's stack, or to the one that the program
   keeps for its handlers, as struct sigframe of Linux/ia64, and lets the program go on in the gate page, which calls the handler. With
   signal-state=minimal only what a call destroys goes there: a handler preserves the preserved registers itself, like every
   function. With signal-state=full these go through memory as well: to the kernel's stack (entry.S), to the
   program's stack here, and all the way back on return; what the paper's section 5.1 compares. */

#include "signal_frame.h"

/* Bits of PSR that a program may bring back from its stack. */
#define PSR_PROGRAM (PSR_BE | PSR_UP | PSR_AC | PSR_MFL | PSR_MFH)
/* What the conventions want of a floating-point status at a handler's start. */
#define FPSR_DEFAULT 0x9804c0270033fUL

int save_preserved_state; /* for entry.S: signal-state=full */

/* ---- The frame of a handler ---- */

/* NaT bits by register of those that an entry saves, from and to their places in ar.unat. */
uint64_t frame_nats(const struct frame *frame)
{
    uint64_t bits = frame->spill_unat;
    return (rotate_right(bits, (uint64_t)&frame->r1 >> 3) & 7) << 1 | (rotate_right(bits, (uint64_t)&frame->r8 >> 3) & 0xff) << 8
           | (rotate_right(bits, (uint64_t)frame->r16 >> 3) & 0xffff) << 16;
}

static void set_frame_nats(struct frame *frame, uint64_t nats)
{
    frame->spill_unat = rotate_right(nats >> 1 & 7, -((uint64_t)&frame->r1 >> 3))
                        | rotate_right(nats >> 8 & 0xff, -((uint64_t)&frame->r8 >> 3))
                        | rotate_right(nats >> 16 & 0xffff, -((uint64_t)frame->r16 >> 3));
}

/* Writes or reads a field; `failed` collects what could not be. */
#define PUT(field, value) failed |= put_user(to + offsetof(struct signal_context, field), value)
#define PUT_ROW(field, from, count) failed |= copy_to_user(to + offsetof(struct signal_context, field), from, (count) * sizeof *(from))
#define GET(field, place) failed |= get_user(from + offsetof(struct signal_context, field), place)
#define GET_ROW(field, place, count) \
    failed |= copy_from_user(place, from + offsetof(struct signal_context, field), (count) * sizeof *(place))

static long write_information(uint64_t to, const struct signal_information *from)
{
    if (from->code < 0)
        return copy_to_user(to, from, sizeof *from);
    long failed = put_user_half(to, from->signal);
    failed |= put_user_half(to + offsetof(struct signal_information, error), from->error);
    failed |= put_user_half(to + offsetof(struct signal_information, code), from->code);
    if (from->code == SIGNAL_BY_PROCESS || from->signal == SIGCHLD) {
        failed |= put_user_half(to + offsetof(struct signal_information, sender.process), from->sender.process);
        failed |= put_user_half(to + offsetof(struct signal_information, sender.user), from->sender.user);
        if (from->signal == SIGCHLD)
            failed |= put_user_half(to + offsetof(struct signal_information, sender.status), from->sender.status);
    } else {
        failed |= put_user(to + offsetof(struct signal_information, fault.address), from->fault.address);
        failed |= put_user_half(to + offsetof(struct signal_information, fault.immediate), from->fault.immediate);
        failed |= put_user_half(to + offsetof(struct signal_information, fault.flags), from->fault.flags);
        failed |= put_user(to + offsetof(struct signal_information, fault.isr), from->fault.isr);
    }
    return failed;
}

/* What a call destroys, and of a system call only what it leaves; the gate page's code adds f6 to f15 and ar.bsp. */
static long write_context(uint64_t to, struct frame *frame, const struct preserved *preserved)
{
    long failed = 0;
    uint64_t flags = 0;
    if (frame->in_system_call)
        flags |= CONTEXT_IN_SYSTEM_CALL;
    floating_high_flush(current);
    if (current->floating_high_valid) {
        flags |= CONTEXT_FLOATING_HIGH;
        PUT_ROW(floating[32], current->floating_high, 96);
    }
    PUT(flags, flags);
    PUT(nats, frame_nats(frame));
    PUT(mask, current->blocked_signals);
    PUT(stack_start, current->signal_stack.start);
    PUT(stack_flags, signal_stack_state(frame->r12));
    PUT(stack_size, current->signal_stack.size);
    PUT(loaded, 0);
    PUT(frame_marker, frame->ifs & 0x3fffffffff);
    PUT(user_mask, frame->ipsr & PSR_PROGRAM);
    PUT(rsc, frame->rsc);
    PUT(unat, frame->unat);
    PUT(fpsr, frame->fpsr);
    PUT(pfs, frame->pfs);
    PUT(predicates, frame->pr);
    PUT(branch[0], frame->b0);
    PUT(branch[6], frame->b6);
    PUT_ROW(general[1], &frame->r1, 1);
    PUT_ROW(general[8], &frame->r8, 4);
    PUT_ROW(general[12], &frame->r12, 2);
    PUT_ROW(general[15], &frame->r15, 1);
    PUT(ip, frame->iip + (frame->ipsr >> PSR_RI_SHIFT & 3));
    if (!frame->in_system_call) {
        PUT(ccv, frame->ccv);
        PUT(branch[7], frame->b7);
        PUT(general[14], frame->r14);
        PUT(csd, frame->csd);
        PUT_ROW(general[2], &frame->r2, 2);
        PUT_ROW(general[16], frame->r16, 16);
    }
    if (preserved) {
        PUT(lc, preserved->lc);
        PUT_ROW(general[4], preserved->r4, 4);
        PUT_ROW(branch[1], preserved->b1, 5);
        PUT_ROW(floating[2], &preserved->f2[0], 4);
        PUT_ROW(floating[16], &preserved->f2[8], 16);
        /* Their NaT bits stay with the kernel's copy of the spilled values. */
    }
    return failed;
}

static long read_context(uint64_t from, struct frame *frame, struct preserved *preserved)
{
    long failed = 0;
    uint64_t flags, nats, ip, marker, mask, rsc;
    GET(flags, &flags);
    GET(nats, &nats);
    GET(ip, &ip);
    GET(frame_marker, &marker);
    GET(user_mask, &mask);
    GET(rsc, &rsc);
    GET(unat, &frame->unat);
    GET(fpsr, &frame->fpsr);
    GET(pfs, &frame->pfs);
    GET(predicates, &frame->pr);
    GET(branch[0], &frame->b0);
    GET(branch[6], &frame->b6);
    GET_ROW(general[1], &frame->r1, 1);
    GET_ROW(general[8], &frame->r8, 4);
    GET_ROW(general[12], &frame->r12, 2);
    GET_ROW(general[15], &frame->r15, 1);
    frame->in_system_call = (flags & CONTEXT_IN_SYSTEM_CALL) != 0;
    if (!frame->in_system_call) {
        GET(ccv, &frame->ccv);
        GET(branch[7], &frame->b7);
        GET(general[14], &frame->r14);
        GET(csd, &frame->csd);
        GET_ROW(general[2], &frame->r2, 2);
        GET_ROW(general[16], frame->r16, 16);
    }
    /* What the program brings back must not be the kernel's. */
    frame->ifs = (marker & 0x3fffffffff) | 1UL << 63;
    frame->rsc = (rsc & 0x1f) | 3UL << 2;
    frame->pfs |= 3UL << 62;
    frame->iip = ip & -16UL;
    frame->ipsr = (frame->ipsr & ~(PSR_PROGRAM | 3UL << PSR_RI_SHIFT)) | (mask & PSR_PROGRAM) | (ip & 3) << PSR_RI_SHIFT;
    set_frame_nats(frame, nats);
    if (flags & CONTEXT_FLOATING_HIGH) {
        GET_ROW(floating[32], current->floating_high, 96);
        floating_high_drop(current);
    }
    if (preserved) {
        GET(lc, &preserved->lc);
        GET_ROW(general[4], preserved->r4, 4);
        GET_ROW(branch[1], preserved->b1, 5);
        GET_ROW(floating[2], &preserved->f2[0], 4);
        GET_ROW(floating[16], &preserved->f2[8], 16);
    }
    return failed;
}

/* ---- Delivery and return ---- */

/* The program's stack or its frame there cannot be used. */
static void stack_fault(uint64_t address)
{
    struct signal_information information = {.signal = SIGSEGV, .code = SIGNAL_BY_KERNEL, .fault = {.address = address}};
    current->actions[SIGSEGV].handler = SIGNAL_DEFAULT;
    signal_force(current, &information);
}

/* Whether this address is on the stack that the program keeps for its handlers. */
static int is_on_signal_stack(uint64_t address)
{
    return address - current->signal_stack.start < current->signal_stack.size;
}

unsigned signal_stack_state(uint64_t sp)
{
    return !current->signal_stack.size ? STACK_DISABLED : is_on_signal_stack(sp) ? STACK_IN_USE : 0;
}

long signal_stack_set(uint64_t start, uint64_t size)
{
    if (size && size < STACK_LEAST)
        return -ENOMEM;
    if (size && !user_range(start, size))
        return -EFAULT;
    current->signal_stack.start = size ? start : 0;
    current->signal_stack.size = size;
    return 0;
}

int signal_call_handler(struct frame *frame, struct preserved *preserved, const struct signal_information *information,
                        const struct signal_action *action)
{
    unsigned signal = information->signal;
    uint64_t top = frame->r12, backing_store = 0;
    if (action->flags & ACTION_OWN_STACK && signal_stack_state(top) == 0) {
        top = current->signal_stack.start + current->signal_stack.size;
        /* The register stack may be there already, or still be where it always was; the gate page's code switches it. */
        if (!is_on_signal_stack(frame->bspstore))
            backing_store = (current->signal_stack.start + 15) & -16UL;
    }
    uint64_t at = (top - sizeof(struct signal_frame)) & -16UL;
    if (!user_range(at, sizeof(struct signal_frame))) {
        stack_fault(at);
        return 0;
    }
    uint64_t where = at + offsetof(struct signal_frame, information), context = at + offsetof(struct signal_frame, context);
    long failed = put_user(at + offsetof(struct signal_frame, arguments[0]), signal);
    failed |= put_user(at + offsetof(struct signal_frame, arguments[1]), where);
    failed |= put_user(at + offsetof(struct signal_frame, arguments[2]), context);
    failed |= put_user(at + offsetof(struct signal_frame, handler), action->handler);
    failed |= put_user(context + offsetof(struct signal_context, backing_store_base), backing_store);
    failed |= write_information(where, information);
    failed |= write_context(context, frame, preserved);
    if (failed) {
        stack_fault(at);
        return 0;
    }
    frame->r12 = at - 16;
    frame->fpsr = FPSR_DEFAULT;
    frame->iip = GATE_ADDRESS + ((uint64_t)gate_signal - (uint64_t)gate_page);
    frame->ipsr = (frame->ipsr & ~(PSR_BE | 3UL << PSR_RI_SHIFT)) | 3UL << PSR_CPL_SHIFT;
    frame->ifs = 1UL << 63; /* an empty frame above the one that was interrupted */
    frame->spill_unat = 0;
    signals_block(current->blocked_signals | action->mask | (action->flags & ACTION_NO_DEFER ? 0 : SIGNAL_BIT(signal)));
    return 1;
}

/* rt_sigreturn: the state comes back from the program's stack, but for what is the kernel's. */
void signal_return(struct frame *frame, struct preserved *preserved)
{
    uint64_t context = frame->r12 + 16 + offsetof(struct signal_frame, context), blocked;
    work_remove(current, WORK_SIGNAL_RETURN);
    if (context & 15 || !user_range(context, sizeof(struct signal_context))
        || get_user(context + offsetof(struct signal_context, mask), &blocked) || read_context(context, frame, preserved)) {
        stack_fault(context);
        return;
    }
    signals_block(blocked);
    uint64_t start, size;
    if (get_user(context + offsetof(struct signal_context, stack_start), &start)
        || get_user(context + offsetof(struct signal_context, stack_size), &size))
        stack_fault(context);
    else if (signal_stack_state(frame->r12) != STACK_IN_USE)
        signal_stack_set(start, size); /* as it was when the signal came */
}
