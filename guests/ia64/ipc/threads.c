/* Threads and their spaces: who is called what, who runs next, and who has waited long enough.

   When a deadline is over, an interrupt has the running thread's next message go the generic way, where the kernel sees to
   it; so it does when nobody can run. No program is preempted. */

#include <stddef.h>

#include "kernel.h"

struct queue {
    struct tcb *first, *last;
};

#define OFFSET(field, offset) _Static_assert(offsetof(struct tcb, field) == (offset), #field)
OFFSET(identity, TCB_IDENTITY);
OFFSET(resources, TCB_RESOURCES);
OFFSET(senders, TCB_SENDERS);
OFFSET(space, TCB_SPACE);
OFFSET(state, TCB_STATE);
OFFSET(local, TCB_LOCAL);
OFFSET(rsc, TCB_RSC);
OFFSET(tp, TCB_TP);
OFFSET(continuation, TCB_CONTINUATION);
OFFSET(utcb, TCB_UTCB);
OFFSET(from, TCB_FROM);
_Static_assert(sizeof(struct tcb) <= TCB_FLOATING_POINT, "the floating-point registers follow");
_Static_assert(offsetof(struct utcb, message) == UTCB_MESSAGE && sizeof(struct utcb) == UTCB_SIZE, "as assembly has it");

struct block {
    struct tcb tcb;
    char stacks[TCB_SIZE - sizeof(struct tcb)];
};

struct block tcbs[TCBS] __attribute__((aligned(TCB_SIZE)));
struct space spaces[TCBS];
static struct utcb utcbs[TCBS][UTCBS] __attribute__((aligned(PAGE_SIZE)));
static char stacks[TCBS][PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static struct queue ready[PRIORITIES];
static struct tcb *timed; /* by deadline */

extern char text_page[], return_to_program[];

/* ---- Names ---- */

/* The thread that `name` is for `asker`: a global one, or the address of a control block in its space. */
struct tcb *thread_of(const struct tcb *asker, uint64_t name)
{
    if (LIKELY(name & LOCAL_BITS)) {
        uint64_t number = name >> NUMBER_SHIFT;
        struct tcb *thread = &tcbs[number % TCBS].tcb;
        return thread->identity == name ? thread : 0;
    }
    uint64_t place = (name - UTCBS_ADDRESS) >> UTCB_SHIFT;
    struct tcb *thread = place < UTCBS ? asker->space->threads[place] : 0;
    return thread && thread->local == name ? thread : 0;
}

/* ---- Who runs next ---- */

void make_ready(struct tcb *thread)
{
    struct queue *queue = &ready[thread->priority];
    thread->state = STATE_RUNNING;
    thread->next = 0;
    if (queue->first)
        queue->last->next = thread;
    else
        queue->first = thread;
    queue->last = thread;
}

/* The first of the most urgent; if there is none, time passes until there is. */
struct tcb *next_ready(void)
{
    for (;;) {
        for (int priority = PRIORITIES - 1; priority >= 0; priority--) {
            struct tcb *thread = ready[priority].first;
            if (thread) {
                ready[priority].first = thread->next;
                return thread;
            }
        }
        if (!timed)
            hypercall(HYPERCALL_EXIT, END_NOBODY, 0);
        __asm__ volatile("mov cr.itm = %0;; srlz.d" : : "r"(-1UL)); /* nobody needs the alarm */
        while (timed->deadline > now())
            ;
        expire_deadlines();
    }
}

/* Lets whoever is ready and more urgent than `current` run. */
void yield(struct tcb *current)
{
    for (int priority = PRIORITIES - 1; priority > (int)current->priority; priority--)
        if (ready[priority].first) {
            make_ready(current);
            return switch_to(current, next_ready());
        }
}

/* Goes on with `next`, and returns when somebody goes on with `current`. */
void switch_to(struct tcb *current, struct tcb *next)
{
    if (UNLIKELY(current->resources & RESOURCE_FLOATING_POINT))
        save_floating_point(current);
    if (UNLIKELY(next->resources & RESOURCE_FLOATING_POINT))
        load_floating_point(next);
    switch_context(next);
}

/* ---- Time ---- */

uint64_t now(void)
{
    uint64_t cycles;
    __asm__ volatile("mov %0 = ar.itc" : "=r"(cycles));
    return cycles;
}

/* Has the processor interrupt when the next deadline is over; very soon, if it is. */
static void set_alarm(void)
{
    uint64_t soon = now() + CYCLES_PER_MICROSECOND;
    __asm__ volatile("mov cr.itm = %0;; srlz.d" : : "r"(timed->deadline > soon ? timed->deadline : soon));
}

/* When a timeout is over, in microseconds. */
static uint64_t over_at(uint64_t timeout, uint64_t clock)
{
    uint64_t mantissa = timeout & ((1 << TIMEOUT_MANTISSA_BITS) - 1);
    if (!(timeout & TIMEOUT_POINT))
        return clock + (mantissa << (timeout >> TIMEOUT_MANTISSA_BITS));
    /* The next moment at which the clock's low bits are the mantissa, and the bit above is the one given. */
    unsigned exponent = timeout >> (TIMEOUT_MANTISSA_BITS + 1) & 0xf, shift = exponent + TIMEOUT_MANTISSA_BITS;
    uint64_t above = (clock >> shift) + (((clock >> shift) ^ (timeout >> TIMEOUT_MANTISSA_BITS)) & 1);
    return (above << shift) + (mantissa << exponent);
}

void set_deadline(struct tcb *thread, uint64_t timeout)
{
    struct tcb **place = &timed;
    thread->deadline = over_at(timeout, now() / CYCLES_PER_MICROSECOND) * CYCLES_PER_MICROSECOND | 1;
    while (*place && (*place)->deadline <= thread->deadline)
        place = &(*place)->next_timed;
    thread->next_timed = *place;
    *place = thread;
    set_alarm();
}

void cancel_deadline(struct tcb *thread)
{
    if (LIKELY(!thread->deadline))
        return;
    struct tcb **place = &timed;
    while (*place != thread)
        place = &(*place)->next_timed;
    *place = thread->next_timed;
    thread->deadline = 0;
}

/* Those who have waited long enough go on with an error. */
void expire_deadlines(void)
{
    while (UNLIKELY(timed && timed->deadline <= now())) {
        struct tcb *thread = timed;
        int sends = thread->state == STATE_SENDING;
        cancel_deadline(thread);
        if (sends)
            stop_sending(thread);
        fail(thread, ERROR_TIMEOUT, sends ? PHASE_SEND : PHASE_RECEIVE);
        make_ready(thread);
    }
    if (timed)
        set_alarm();
}

/* ---- Creation ---- */

static uint64_t page(const void *kernel, uint64_t attributes)
{
    return ((uint64_t)kernel - KERNEL_BASE) | attributes;
}

/* The global name of a thread: there is one version of each. */
uint64_t name_of(unsigned number)
{
    return (uint64_t)number << NUMBER_SHIFT | 1;
}

/* A thread of `space`, which is made when it is used first: runs from `entry` in the programs' text, with `arguments` where its
   stack pointer is. It is not ready yet. */
struct tcb *create_thread(unsigned number, unsigned space, uint64_t entry, const uint64_t *arguments, unsigned count)
{
    struct tcb *tcb = &tcbs[number].tcb;
    struct space *home = &spaces[space];
    uint64_t stack = STACKS_ADDRESS + number * PAGE_SIZE, status;
    __asm__("mov %0 = psr" : "=r"(status));
    struct utcb *utcb = &utcbs[space][number];
    for (unsigned i = 0; i < TEXT_PAGES; i++)
        home->table[TEXT_ADDRESS / PAGE_SIZE + i] = page(text_page + i * PAGE_SIZE, PTE_TEXT);
    home->table[UTCBS_ADDRESS / PAGE_SIZE] = page(utcbs[space], PTE_DATA);
    home->table[stack / PAGE_SIZE] = page(stacks[number], PTE_DATA);
    home->region = (uint64_t)(REGION_FIRST + space) << 8 | PAGE_SHIFT << 2;
    home->threads[number] = tcb;
    uint64_t *top = (uint64_t *)(stacks[number] + PAGE_SIZE) - count - 2; /* two words above the stack pointer are a callee's */
    top -= (uint64_t)top / 8 % 2;
    for (unsigned i = 0; i < count; i++)
        top[2 + i] = arguments[i];
    *tcb = (struct tcb){
        .identity = name_of(number),
        .space = home,
        .state = STATE_RUNNING,
        .region = home->region,
        .local = UTCBS_ADDRESS + number * UTCB_SIZE,
        .rsc = RSC_PROGRAM,
        .pfs = 3UL << 62,
        .psr = status,
        .bspstore = stack,
        .sp = stack + ((uint64_t)top - (uint64_t)stacks[number]),
        .rp = entry,
        .continuation = (uint64_t)return_to_program,
        .utcb = utcb,
        .priority = PRIORITY_USUAL,
    };
    utcb->identity = tcb->identity;
    return tcb;
}
