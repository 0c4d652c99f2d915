/* Signals: delivery with what Linux puts into siginfo and sigcontext, and the return into the interrupted code. */

#include "tour.h"

#include <asm/unistd.h>

enum {
    SIGILL = 4,
    SIGFPE = 8,
    SIGUSR1 = 10,
    SIGSEGV = 11,
    SIG_BLOCK = 0,
    SIG_UNBLOCK = 1,
    SA_SIGINFO = 4,
    SA_ONSTACK = 0x08000000,
    SEGV_MAPERR = 1,
    SEGV_ACCERR = 2,
    ILL_ILLOPN = 2,
    FPE_INTDIV = 1,
    ALTERNATE_BYTES = 256 * 1024,
    PAGE_BYTES = 65536, /* a multiple of every page size that kernels are built with */
};

/* The beginning of siginfo_t; `address` is si_addr for faults, and the sender's process and user otherwise. */
struct information {
    int number, error, code, padding;
    uint64_t address;
};

struct alternate_stack {
    void *base;
    int flags;
    size_t bytes;
};

/* The beginning of Linux/ia64's `struct sigcontext`. */
struct context {
    uint64_t flags, nat;
    struct alternate_stack stack;
    uint64_t ip; /* the low two bits are the slot */
};

typedef void handler(int signal, struct information *information, struct context *context);

struct action {
    handler *handler;
    uint64_t flags, mask;
};

static volatile struct {
    int count, signal, code;
    uint64_t address, stack;
    long recursion;
} seen;

static char *alternate;

static void note(int signal, const struct information *information)
{
    seen.count++;
    seen.signal = signal;
    seen.code = information->code;
    seen.address = information->address;
    seen.stack = (uintptr_t)__builtin_frame_address(0);
    seen.recursion = pyramid(20); /* the interrupted frames must survive the handler's use of the register stack */
}

static void remember(int signal, struct information *information, struct context *context)
{
    (void)context;
    note(signal, information);
}

/* Maps the page that was missing, so that the load succeeds when it is restarted. */
static void repair(int signal, struct information *information, struct context *context)
{
    (void)context;
    note(signal, information);
    uint64_t page = information->address & -(uint64_t)PAGE_BYTES;
    system_call(__NR_mmap, page, (long)PAGE_BYTES, 3L, 0x32L /* private, anonymous, fixed */, -1L, 0L);
    *(uint64_t *)information->address = 0x5eed;
}

/* Goes on behind the instruction. */
static void step_over(int signal, struct information *information, struct context *context)
{
    note(signal, information);
    context->ip += (context->ip & 3) == 2 ? 14 : 1;
}

static void install(int signal, handler *handler, uint64_t flags)
{
    struct action action = {handler, SA_SIGINFO | flags, 0};
    check(system_call(__NR_rt_sigaction, (long)signal, &action, 0L, 8L) == 0, "rt_sigaction");
    seen.count = 0;
}

static int was(int signal, int code)
{
    return seen.count == 1 && seen.signal == signal && seen.code == code && seen.recursion == 840;
}

static int on_alternate_stack(void)
{
    return seen.stack - (uintptr_t)alternate < ALTERNATE_BYTES;
}

static void send_to_self(void)
{
    system_call(__NR_kill, system_call(__NR_getpid), (long)SIGUSR1);
}

static void sent(void)
{
    install(SIGUSR1, remember, 0);
    send_to_self();
    check(was(SIGUSR1, 0) && !on_alternate_stack(), "a signal from itself");
    check((int)seen.address == system_call(__NR_getpid), "who sent it");

    uint64_t mask = 1 << (SIGUSR1 - 1);
    install(SIGUSR1, remember, SA_ONSTACK);
    system_call(__NR_rt_sigprocmask, (long)SIG_BLOCK, &mask, 0L, 8L);
    send_to_self();
    check(seen.count == 0, "a blocked signal waits");
    system_call(__NR_rt_sigprocmask, (long)SIG_UNBLOCK, &mask, 0L, 8L);
    check(was(SIGUSR1, 0) && on_alternate_stack(), "an unblocked signal arrives, on the alternate stack");
}

static void faulted(void)
{
    volatile uint64_t *nowhere = (volatile uint64_t *)(NOWHERE + 5 * PAGE_BYTES + 8);
    install(SIGSEGV, repair, 0);
    check(*nowhere == 0x5eed, "a load restarted after its page was mapped");
    check(was(SIGSEGV, SEGV_MAPERR) && seen.address == (uintptr_t)nowhere, "which address was missing");

    volatile uint64_t *code = *(volatile uint64_t **)faulted, before = *code; /* from the function's descriptor */
    install(SIGSEGV, step_over, SA_ONSTACK);
    *code = ~before;
    check(was(SIGSEGV, SEGV_ACCERR) && on_alternate_stack(), "a store to code stepped over");
    check(seen.address == (uintptr_t)code && *code == before, "the code is as it was");

    uint64_t loaded = 2;
    install(SIGILL, step_over, 0);
    asm volatile("ld8.s r14=[%1];;\n\tld8 %0=[r14];;" : "+r"(loaded) : "r"(NOWHERE) : "r14", "memory");
    check(was(SIGILL, ILL_ILLOPN) && loaded == 2, "a NaT used as an address");

    install(SIGFPE, step_over, 0);
    asm volatile("break 1" : : : "memory");
    check(was(SIGFPE, FPE_INTDIV), "the break of a division by zero");
}

void signal_part(void)
{
    alternate = allocate(ALTERNATE_BYTES);
    struct alternate_stack stack = {alternate, 0, ALTERNATE_BYTES};
    check(system_call(__NR_sigaltstack, &stack, 0L) == 0, "sigaltstack");
    sent();
    faulted();
}
