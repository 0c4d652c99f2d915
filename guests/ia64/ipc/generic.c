/* Message passing in general: any thread to any thread, which may be waiting or not, and who runs next. And the start:
   two threads in two spaces that send each other eight words.

       ipc generic|first|scheduled|measured COUNT           (the last two words of the machine's parameters)

   Marks for the host: 1 and 2 around twice COUNT rounds of a thread's loop without a message; 3 and 4 around COUNT rounds with
   one message there and one back. */

#include <stddef.h>
#include <stdint.h>

#include "layout.h"

struct tcb {
    uint64_t identity, state, partner, pending, space, region, reserved[2];
    uint64_t sp, rp, pfs, bspstore, rnat, gp, reserved_too[2];
    uint64_t tag, words[WORDS_MAX], waits_for;
    struct tcb *next; /* among the ready */
};

_Static_assert(offsetof(struct tcb, region) == TCB_REGION && offsetof(struct tcb, sp) == TCB_SP, "layout.h");
_Static_assert(offsetof(struct tcb, gp) == TCB_GP && offsetof(struct tcb, words) == TCB_WORDS, "layout.h");

struct block {
    struct tcb tcb;
    char stacks[TCB_SIZE - sizeof(struct tcb)];
};

struct block tcbs[TCBS] __attribute__((aligned(TCB_SIZE)));
static uint64_t spaces[TCBS][SPACE_PAGES];
static char stacks[TCBS][PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static struct tcb *ready;

extern char gate_page[], ipc_generic[], ipc_first[], ipc_scheduled[], ipc_measured[], gate_hypercall[];
extern char text_page[], sender[], receiver[];
uint64_t hypercall(uint64_t function, uint64_t first, uint64_t second);
void resume_thread(struct tcb *thread) __attribute__((noreturn));

static struct tcb *find(uint64_t identity)
{
    uint64_t number = identity >> TCB_SHIFT;
    return number < TCBS && tcbs[number].tcb.identity == identity ? &tcbs[number].tcb : 0;
}

static void make_ready(struct tcb *thread)
{
    struct tcb **end = &ready;
    while (*end)
        end = &(*end)->next;
    thread->state = STATE_READY;
    thread->next = 0;
    *end = thread;
}

static struct tcb *next_ready(void)
{
    struct tcb *thread = ready;
    if (!thread)
        hypercall(HYPERCALL_EXIT, 2, 0); /* nobody will ever run */
    ready = thread->next;
    return thread;
}

static int is_waiting_for(const struct tcb *thread, const struct tcb *partner)
{
    return thread->state == STATE_WAITING && (thread->partner == (uint64_t)ANYBODY || thread->partner == partner->identity);
}

static void transfer(struct tcb *from, struct tcb *to)
{
    uint64_t words = from->tag & 0x3f;
    for (uint64_t i = 0; i < words && i < WORDS_MAX; i++)
        to->words[i] = from->words[i];
    to->tag = from->tag & 0xfff;
    to->partner = from->identity;
}

static struct tcb *fail(struct tcb *thread, uint64_t error)
{
    thread->tag = error << 32;
    return thread;
}

/* Sends to `to` and waits for a message from `from`; answers the thread that runs next. */
struct tcb *ipc(struct tcb *current, uint64_t to, uint64_t from, uint64_t timeout)
{
    struct tcb *receiver = find(to);
    if (!receiver || receiver == current || (from != (uint64_t)ANYBODY && !find(from)))
        return fail(current, ERROR_NO_PARTNER);
    if (!is_waiting_for(receiver, current)) {
        if (timeout)
            return fail(current, ERROR_NO_PARTNER);
        current->state = STATE_SENDING;
        current->partner = to;
        current->waits_for = from;
        return next_ready();
    }
    transfer(current, receiver);
    current->state = STATE_WAITING;
    current->partner = from;
    receiver->state = STATE_READY;
    /* Whoever wanted to send to this thread all along. */
    for (unsigned i = 0; i < TCBS; i++) {
        struct tcb *other = &tcbs[i].tcb;
        if (other->state == STATE_SENDING && other->partner == current->identity && is_waiting_for(current, other)) {
            transfer(other, current);
            other->state = STATE_WAITING;
            other->partner = other->waits_for;
            make_ready(current);
            break;
        }
    }
    return receiver;
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
        .sp = STACK_ADDRESS + PAGE_SIZE - 64,
        .rp = TEXT_ADDRESS + (uint64_t)(entry - text_page),
        .pfs = 3UL << 62,
        .bspstore = STACK_ADDRESS,
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
    resume_thread(first);
}
