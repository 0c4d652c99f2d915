/* Message passing in general: any thread to any thread, which may be waiting or not, and who runs next. And the start:
   two threads in two spaces that send each other eight words.

       ipc generic|first|scheduled|measured COUNT           (the last two words of the machine's parameters)

   Marks for the host: 1 and 2 around twice COUNT rounds of a thread's loop without a message; 3 and 4 around COUNT rounds with
   one message there and one back.

   A call is a send phase, a receive phase, or both. A thread that has to wait does so here, on its own kernel stack: `switch_to`
   returns when somebody has given it what it waits for. (The fast paths may answer such a thread as well: they return to its
   program, and what is on its kernel stack is forgotten.) */

#include <stddef.h>
#include <stdint.h>

#include "layout.h"

#define PRIORITIES 4
#define PRIORITY_USUAL 1

struct queue {
    struct tcb *first, *last;
};

struct tcb {
    uint64_t identity, state, partner, pending;
    struct tcb *senders; /* who waits to send to this thread, first come, first served */
    uint64_t space, region, priority;
    uint64_t rsc, gp, pfs, bspstore, rnat, unat, predicates, user_mask, sp, rp, tp;
    uint64_t continuation, kernel_sp;
    uint64_t tag, words[WORDS_MAX];
    struct tcb *next; /* among the ready, or among the senders to one thread */
};

#define OFFSET(field, offset) _Static_assert(offsetof(struct tcb, field) == (offset), #field)
OFFSET(identity, TCB_IDENTITY);
OFFSET(senders, TCB_SENDERS);
OFFSET(region, TCB_REGION);
OFFSET(rsc, TCB_RSC);
OFFSET(tp, TCB_TP);
OFFSET(continuation, TCB_CONTINUATION);
OFFSET(kernel_sp, TCB_KERNEL_SP);
OFFSET(tag, TCB_TAG);
OFFSET(words, TCB_WORDS);

struct block {
    struct tcb tcb;
    char stacks[TCB_SIZE - sizeof(struct tcb)];
};

struct block tcbs[TCBS] __attribute__((aligned(TCB_SIZE)));
static uint64_t spaces[TCBS][SPACE_PAGES];
static char stacks[TCBS][PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static struct queue ready[PRIORITIES];

extern char gate_page[], ipc_generic[], ipc_first[], ipc_scheduled[], ipc_measured[], gate_hypercall[], return_to_program[];
extern char text_page[], sender[], receiver[];
uint64_t hypercall(uint64_t function, uint64_t first, uint64_t second);
void switch_to(struct tcb *next);
void begin_with(struct tcb *first) __attribute__((noreturn));

static struct tcb *find(uint64_t identity)
{
    uint64_t number = identity >> TCB_SHIFT;
    return number < TCBS && tcbs[number].tcb.identity == identity ? &tcbs[number].tcb : 0;
}

static void make_ready(struct tcb *thread)
{
    struct queue *queue = &ready[thread->priority];
    thread->state = STATE_READY;
    thread->next = 0;
    if (queue->first)
        queue->last->next = thread;
    else
        queue->first = thread;
    queue->last = thread;
}

/* The first of the most urgent. */
static struct tcb *next_ready(void)
{
    for (int priority = PRIORITIES - 1; priority >= 0; priority--) {
        struct tcb *thread = ready[priority].first;
        if (thread) {
            ready[priority].first = thread->next;
            return thread;
        }
    }
    hypercall(HYPERCALL_EXIT, 2, 0); /* nobody will ever run */
    __builtin_unreachable();
}

/* `thread`, unless somebody who is ready is more urgent. */
static struct tcb *or_more_urgent(struct tcb *thread)
{
    for (int priority = PRIORITIES - 1; priority > (int)thread->priority; priority--)
        if (ready[priority].first) {
            make_ready(thread);
            return next_ready();
        }
    return thread;
}

static int is_waiting_for(const struct tcb *thread, const struct tcb *partner)
{
    return thread->state == STATE_WAITING && !thread->pending
        && (thread->partner == (uint64_t)ANYBODY || thread->partner == partner->identity);
}

static void wait_to_send(struct tcb *thread, struct tcb *receiver)
{
    struct tcb **end = &receiver->senders;
    while (*end)
        end = &(*end)->next;
    thread->state = STATE_SENDING;
    thread->partner = receiver->identity;
    thread->next = 0;
    *end = thread;
}

/* Takes from those who wait to send to `thread` the one it asks for, or the first. */
static struct tcb *take_sender(struct tcb *thread, uint64_t from)
{
    for (struct tcb **place = &thread->senders; *place; place = &(*place)->next)
        if (from == (uint64_t)ANYBODY || (*place)->identity == from) {
            struct tcb *found = *place;
            *place = found->next;
            return found;
        }
    return 0;
}

static void transfer(const struct tcb *from, struct tcb *to)
{
    uint64_t words = from->tag & WORDS_MASK;
    for (uint64_t i = 0; i < words && i < WORDS_MAX; i++)
        to->words[i] = from->words[i];
    to->tag = from->tag & 0xffffffff;
    to->partner = from->identity;
}

static void fail(struct tcb *thread, uint64_t error)
{
    thread->tag = error << 32;
}

static int is_over(uint64_t timeout)
{
    return (timeout & ((1 << TIMEOUT_BITS) - 1)) != 0;
}

/* Sends what is in the control block to `to`, then waits for a message from `from`; either may be nobody. */
void ipc(struct tcb *current, uint64_t to, uint64_t from, uint64_t timeouts)
{
    struct tcb *receiver = 0;
    if (from != NOBODY && from != (uint64_t)ANYBODY && !find(from))
        return fail(current, ERROR_NO_PARTNER);
    if (to != NOBODY) {
        receiver = find(to);
        if (!receiver || receiver == current)
            return fail(current, ERROR_NO_PARTNER);
        if (is_waiting_for(receiver, current)) {
            transfer(current, receiver);
            receiver->state = STATE_READY;
        } else if (is_over(timeouts >> TIMEOUT_BITS)) {
            return fail(current, ERROR_TIMEOUT);
        } else {
            wait_to_send(current, receiver);
            switch_to(next_ready()); /* until the receiver has taken it */
            receiver = 0;
        }
    }
    struct tcb *waiting = from == NOBODY ? 0 : take_sender(current, from);
    if (waiting) {
        transfer(waiting, current);
        make_ready(waiting);
    } else if (from != NOBODY && !is_over(timeouts)) {
        current->state = STATE_WAITING;
        current->partner = from;
        switch_to(receiver ? or_more_urgent(receiver) : next_ready()); /* until somebody has sent it something */
        return;
    } else {
        fail(current, from == NOBODY ? 0 : ERROR_TIMEOUT);
    }
    /* This thread goes on: the receiver runs later, or now if it is more urgent. */
    if (receiver && receiver->priority > current->priority) {
        make_ready(current);
        switch_to(receiver);
    } else if (receiver) {
        make_ready(receiver);
    }
}

static struct tcb *thread(unsigned number, const char *entry, uint64_t state)
{
    struct tcb *tcb = &tcbs[number].tcb;
    uint64_t *space = spaces[number];
    space[TEXT_ADDRESS >> PAGE_SHIFT] = ((uint64_t)text_page - KERNEL_BASE) | PTE_TEXT;
    space[STACK_ADDRESS >> PAGE_SHIFT] = ((uint64_t)stacks[number] - KERNEL_BASE) | PTE_STACK;
    *tcb = (struct tcb){
        .identity = (uint64_t)number << TCB_SHIFT | VERSION,
        .state = state,
        .partner = (uint64_t)ANYBODY,
        .space = (uint64_t)space,
        .region = (uint64_t)(16 + number) << 8 | PAGE_SHIFT << 2,
        .priority = PRIORITY_USUAL,
        .rsc = RSC_PROGRAM,
        .pfs = 3UL << 62,
        .bspstore = STACK_ADDRESS,
        .sp = STACK_ADDRESS + PAGE_SIZE - 64,
        .rp = TEXT_ADDRESS + (uint64_t)(entry - text_page),
        .continuation = (uint64_t)return_to_program,
    };
    return tcb;
}

/* The argument of a thread, where its stack pointer will be. */
static void argument(unsigned number, unsigned index, uint64_t value)
{
    ((uint64_t *)(stacks[number] + PAGE_SIZE - 64))[index] = value;
}

static uint64_t on_gate(const char *code)
{
    return GATE_ADDRESS + (uint64_t)(code - gate_page);
}

/* The word that ends at `end`; moves `end` to the blank in front of it. */
static const char *word_before(const char *start, char **end)
{
    char *at = *end;
    *at = 0;
    while (at > start && at[-1] != ' ')
        at--;
    *end = at > start ? at - 1 : at;
    return at;
}

static int equal(const char *left, const char *right)
{
    while (*left && *left == *right)
        left++, right++;
    return *left == *right;
}

void start(void)
{
    static char words[512];
    static const struct {
        const char *name, *code;
    } versions[] = {{"generic", ipc_generic}, {"first", ipc_first}, {"scheduled", ipc_scheduled}, {"measured", ipc_measured}};
    uint64_t length = hypercall(HYPERCALL_PARAMETERS, (uint64_t)words - KERNEL_BASE, sizeof words - 1), rounds = 0;
    char *end = words + length;
    for (const char *digit = word_before(words, &end); *digit >= '0' && *digit <= '9'; digit++)
        rounds = rounds * 10 + (uint64_t)(*digit - '0');
    const char *name = word_before(words, &end), *code = 0;
    for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++)
        if (equal(name, versions[i].name))
            code = versions[i].code;
    if (!code || !rounds)
        hypercall(HYPERCALL_EXIT, 64, 0);
    struct tcb *first = thread(1, sender, STATE_READY), *second = thread(2, receiver, STATE_WAITING);
    argument(1, 0, on_gate(code));
    argument(1, 1, second->identity);
    argument(1, 3, rounds);
    argument(1, 4, on_gate(gate_hypercall));
    argument(2, 0, on_gate(code));
    argument(2, 1, first->identity);
    begin_with(first);
}
