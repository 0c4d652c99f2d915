/* What the kernel promises, tried from the inside: every check prints a line, and the program's exit code counts what was
   wrong. */

#include "library.h"
#include "preserved.h"

static int wrong, argument_count;

int main(int count, char **arguments);

static void check(const char *name, int is_right)
{
    print("%s %s\n", is_right ? "ok   " : "WRONG", name);
    wrong += !is_right;
}

/* ---- page faults on demand, and fork ---- */

static int initialised = 42;
static int zeroed[20000];

static int wait_for_child(void)
{
    int status = -1;
    system_call(__NR_wait4, -1L, &status, 0L);
    return status;
}

static void memory(void)
{
    check("initialised data come from the image", initialised == 42);
    int sum = 0;
    for (int i = 0; i < 20000; i++)
        sum += zeroed[i];
    check("bss is zero", sum == 0);
    long before = system_call(CALL_STATISTIC, (long)STATISTIC_PAGE_FAULTS);
    char *area = allocate(10 * 65536);
    for (int i = 0; i < 10; i++)
        area[i * 65536 + 77] = i;
    long faults = system_call(CALL_STATISTIC, (long)STATISTIC_PAGE_FAULTS) - before;
    check("a page comes when it is touched, and once", faults >= 10 && faults < 13);

    initialised = 1;
    area[77] = 7;
    if (fork() == 0) {
        int right = initialised == 1 && area[77] == 7 && area[65536 + 77] == 1;
        initialised = 2;
        area[77] = 8;
        leave(right && initialised == 2 && area[77] == 8 ? 5 : 6);
    }
    check("a child sees its parent's memory", wait_for_child() == 5 << 8);
    check("and writes to its own", initialised == 1 && area[77] == 7);
    system_call(__NR_munmap, area, 10L * 65536);
}

/* ---- the register stack ---- */

/* residue.S */
long residue(void);
long gate_residue(long number, void *first);

struct time {
    long seconds, microseconds;
};

static int deep_fork;

static long deep(long depth)
{
    if (depth == 0)
        return deep_fork && fork() == 0 ? 1000000 : 0;
    long values[3] = {depth, depth * 3, depth ^ 5};
    return deep(depth - 1) + values[depth % 3];
}

static long expected(long depth)
{
    long sum = 0;
    for (; depth; depth--)
        sum += depth % 3 == 0 ? depth : depth % 3 == 1 ? depth * 3 : depth ^ 5;
    return sum;
}


static void register_stack(void)
{
    check("a system call leaves nothing of the kernel's in registers", residue() == 0);
    static struct time now; /* at an address that is positive */
    check("nor does one by epc", gate_residue(__NR_getpid, 0) >= 0 && gate_residue(__NR_getppid, 0) >= 0
                                     && gate_residue(__NR_gettimeofday, &now) >= 0);
    deep_fork = 1;
    long result = deep(60);
    deep_fork = 0;
    if (result > 1000000)
        leave(result - 1000000 == expected(60) ? 9 : 10);
    check("registers of 60 callers survive a fork in the parent", result == expected(60));
    check("and in the child", wait_for_child() == 9 << 8);
}

/* ---- system calls ---- */

/* What a library makes of them. */
static void library(void)
{
    struct time now = {-1, -1};
    library_start();
    check("a library's calls by both", getpid_break(0, 0) == 1 && getpid_epc(0, 0) == 1
          && getppid_break(0, 0) == 0 && getppid_epc(0, 0) == 0);
    check("and through import stubs", getpid_break_import(0, 0) == 1 && getpid_epc_import(0, 0) == 1
          && gettimeofday_epc_import(&now, 0) == 0
                                          && now.seconds == 0);
    check("its errors by both", gettimeofday_break((void *)16, 0) == -1 && library_error() == 14 && gettimeofday_epc((void *)8, 0) == -1
                                    && library_error() == 14);
    int zone[2] = {1, 1};
    check("a time zone takes the slow way", gettimeofday_epc(0, zone) == 0 && zone[0] == 0 && zone[1] == 0);
    check("a getpid that is kept", getpid_kept(0, 0) == 1 && getpid_kept(0, 0) == 1 && getpid_kept_import(0, 0) == 1);
    if (library_fork() == 0)
        leave(getpid_kept(0, 0) == getpid_break(0, 0) && getpid_kept(0, 0) != 1 ? 13 : 14);
    check("is another in a child", wait_for_child() == 13 << 8);
}

/* A process whose parent ends gets another, and learns it by both ways. */
static void orphans(void)
{
    if (fork() == 0) {
        volatile long *parents = (long *)system_call(CALL_SHARE, 3L, 1L);
        long parent = system_call(__NR_getpid);
        parents[0] = 0;
        if (fork() == 0) {
            while ((parents[0] = gate_call(__NR_getppid)) == parent)
                system_call(__NR_sched_yield);
            parents[1] = system_call(__NR_getppid);
            leave(0);
        }
        leave(15);
    }
    int ended = wait_for_child();
    volatile long *parents = (long *)system_call(CALL_SHARE, 3L, 0L);
    check("an orphan's parent is the first process by both",
          ended == 15 << 8 && wait_for_child() == 0 && parents[0] == 1 && parents[1] == 1);
}

/* Three processes, so that a second CPU takes one, say the time in turn: it never goes back. */
static void clocks(void)
{
    enum { PROCESSES = 3, TURNS = 900 };
    volatile long *turn = (long *)system_call(CALL_SHARE, 2L, 1L);
    turn[0] = turn[1] = 0;
    int steps_back = 0, me = 0;
    while (me + 1 < PROCESSES && fork() == 0)
        me++;
    for (long i = me; i < TURNS; i += PROCESSES) {
        for (long looks = 1; turn[0] != i; looks++)
            if (looks % 64 == 0)
                system_call(__NR_sched_yield);
        struct time now;
        if (i % 2)
            gate_call(__NR_gettimeofday, &now, 0L);
        else
            system_call(__NR_gettimeofday, &now, 0L);
        long microseconds = now.seconds * 1000000 + now.microseconds;
        steps_back += microseconds < turn[1];
        turn[1] = microseconds;
        __atomic_store_n(&turn[0], i + 1, __ATOMIC_RELEASE);
    }
    if (me + 1 < PROCESSES)
        steps_back += wait_for_child() != 0;
    if (me)
        leave(steps_back);
    check("time does not go back between processes", steps_back == 0);
}

static void system_calls(void)
{
    check("getpid by break", system_call(__NR_getpid) == 1);
    check("getpid by epc", gate_call(__NR_getpid) == 1);
    check("getppid by epc", gate_call(__NR_getppid) == 0);
    check("a call by epc of a big-endian program", gate_call_big_endian(__NR_getpid) == 1 && gate_call_big_endian(5L) == 38);
    check("an unknown call is an error by both", system_call(1024L + 300) == -38 && gate_call(1024L + 300) == -38 && gate_call(5L) == -38);
    struct time first = {0}, second = {0};
    check("gettimeofday by break", system_call(__NR_gettimeofday, &first, 0L) == 0);
    check("gettimeofday by epc", gate_call(__NR_gettimeofday, &second, 0L) == 0);
    long difference = (second.seconds - first.seconds) * 1000000 + second.microseconds - first.microseconds;
    check("they agree", difference >= 0 && difference < 100000 && second.microseconds < 1000000);
    check("a bad address is an error by both",
          system_call(__NR_gettimeofday, 16L, 0L) == -14 && gate_call(__NR_gettimeofday, 16L, 0L) == -14);
    check("a kernel address is none of a program's", gate_call(__NR_gettimeofday, 0xe000000000000000L, 0L) == -14);
    if (gate_call(__NR_clone2, 17L, 0L, 0L, 0L, 0L, 0L) == 0)
        leave(gate_call(__NR_getppid) == 1 ? 11 : 12);
    check("fork by epc takes the slow way", wait_for_child() == 11 << 8);
    /* The host looks for what these print. */
    int right = system_call(CALL_TRACE, 1L) == 0 && system_call(__NR_getpid, 7L, 8L, 9L) == 1 && gate_call(__NR_getpid, 7L, 8L, 9L) == 1;
    check("a process that is traced is told the same", right && system_call(CALL_TRACE, 0L) == 1);
}

/* ---- signals ---- */

struct action {
    void (*handler)(int);
    unsigned long flags, mask;
};

static volatile int received, depth_in_handler;

static void handle(int signal)
{
    volatile double used = signal;
    received = signal;
    depth_in_handler = (int)expected(20) + (int)used * 0;
}

static int set_handler(long signal, void (*handler)(int))
{
    struct action action = {handler, 0, 0};
    return system_call(__NR_rt_sigaction, signal, &action, 0L, 8L);
}

/* siginfo_t and struct sigcontext of Linux/ia64, as far as the tests look. */
struct information {
    int signal, error, code, padding;
    union {
        struct {
            int process, user;
        };
        unsigned long address;
    };
    int immediate;
};

struct context {
    unsigned long flags, nats, stack[3], ip, more[19], general[32];
};
_Static_assert(offsetof(struct context, general) == 200, "struct sigcontext");

static struct information seen;
static struct context seen_context;

static void handle_with_information(int signal, const struct information *information, struct context *context)
{
    seen = *information;
    seen_context = *context;
    if (signal == 11 || signal == 4)
        context->ip = (context->ip & 3) == 2 ? (context->ip & -16UL) + 16 : context->ip + 1; /* on behind it */
    __asm__ volatile("mov f12 = f0 ; mov f15 = f0 ; mov f40 = f0" ::: "f12", "f15", "f40");
}

/* Inline, so that scratch registers stay where they are. */
static inline __attribute__((always_inline)) long read_at(unsigned long address)
{
    long value = 0;
    __asm__ volatile("ld8 %0 = [%1] ;;" : "+r"(value) : "r"(address) : "memory");
    return value;
}

static void signal_information(void)
{
    long me = system_call(__NR_getpid);
    struct {
        void (*handler)(int, const struct information *, struct context *);
        unsigned long flags, mask;
    } action = {handle_with_information, 4, 0};
    for (long signal = 4; signal <= 11; signal += signal == 4 ? 6 : 1)
        system_call(__NR_rt_sigaction, signal, &action, 0L, 8L);
    register double scratch __asm__("f12") = 2.5, high __asm__("f40") = 3.5;
    __asm__ volatile("" : "+f"(scratch), "+f"(high));
    read_at(0x10);
    __asm__ volatile("" : "+f"(scratch), "+f"(high));
    check("a handler of a fault gets its address", seen.signal == 11 && seen.code == 1 && seen.address == 0x10);
    check("and goes on where it says", (seen_context.flags & 2) == 0 && seen_context.general[12] != 0);
    check("scratch floating-point registers are those of before", scratch == 2.5 && high == 3.5);
    long kernel = read_at(0xe000000000000000UL);
    check("a kernel address is a fault of the program", seen.address == 0xe000000000000000UL && kernel != 1);
    __asm__ volatile("break 77 ;;");
    check("a handler of an illegal break gets its number", seen.signal == 4 && seen.code == 1 && seen.immediate == 77);
    system_call(__NR_kill, me, 10L);
    check("a handler of a sent signal gets the sender", seen.signal == 10 && seen.code == 0 && seen.process == me);
    check("and sees a system call", seen_context.flags & 2);

    action.flags = 4 | 0x80000000UL;
    system_call(__NR_rt_sigaction, 10L, &action, 0L, 8L);
    system_call(__NR_kill, me, 10L);
    unsigned long now[3] = {1, 1, 1};
    system_call(__NR_rt_sigaction, 10L, 0L, now, 8L);
    check("a handler for once is not there twice", now[0] == 0);
    if (fork() == 0) {
        __asm__ volatile("mov r14 = sp ;; mov sp = r0 ;; ld8 r15 = [r0] ;; mov sp = r14" ::: "r14", "r15");
        leave(1);
    }
    check("a signal without a stack ends its process", wait_for_child() == 11);
    if (fork() == 0) {
        __asm__ volatile("mov r15 = %0 ; adds sp = 1, sp ;; break 0x100000 ;;" ::"i"(__NR_rt_sigreturn) : "r15");
        leave(1);
    }
    check("and so does a return without a frame", wait_for_child() == 11);
    for (long signal = 4; signal <= 11; signal += signal == 4 ? 6 : 1)
        set_handler(signal, 0);
}

static void signals(void)
{
    long me = system_call(__NR_getpid);
    set_handler(10, handle);
    double kept = 1.5;
    long local = me * 77;
    system_call(__NR_kill, me, 10L);
    check("a signal reaches its handler", received == 10);
    check("and what it interrupted goes on", kept * 2 == 3.0 && local == 77);
    unsigned long set = 1UL << 9; /* signal n is bit n - 1 */
    received = 0;
    system_call(__NR_rt_sigprocmask, 0L, &set, 0L, 8L);
    system_call(__NR_kill, me, 10L);
    check("a blocked signal waits", received == 0);
    system_call(__NR_rt_sigprocmask, 1L, &set, 0L, 8L);
    check("until it is unblocked", received == 10);

    if (fork() == 0) {
        *(volatile int *)(argument_count * 16L) = 1;
        leave(0);
    }
    check("a null pointer ends a process by SIGSEGV", wait_for_child() == 11);
    if (fork() == 0) {
        **(volatile int **)main = 1;
        leave(0);
    }
    check("writing to text does too", wait_for_child() == 11);
    if (fork() == 0) {
        __asm__ volatile("break 77");
        leave(0);
    }
    check("an unknown break is SIGILL", wait_for_child() == 4);
    if (fork() == 0) {
        __asm__ volatile("rsm 0x4000");
        leave(0);
    }
    check("a privileged instruction is SIGILL", wait_for_child() == 4);

    long child = fork();
    if (child == 0)
        for (volatile long spin = 0;; spin++)
            ;
    system_call(__NR_kill, child, 9L);
    check("SIGKILL ends a process that only computes", wait_for_child() == 9);
}

/* ---- users, job control, and calls that are interrupted ---- */

enum { WAIT_NOT = 1, WAIT_STOPPED = 2, WAIT_CONTINUED = 8, CHILD = 17, CONTINUE = 18, STOP = 19, ONE_STEP = 20 };

static long wait_for(long child, int options, int *status)
{
    return system_call(__NR_wait4, child, status, (long)options);
}

static void users(void)
{
    check("the first process is the superuser's", system_call(__NR_getuid) == 0 && system_call(__NR_geteuid) == 0);
    if (fork() == 0) {
        int right = system_call(__NR_setuid, 5L) == 0 && system_call(__NR_getuid) == 5 && system_call(__NR_geteuid) == 5;
        right &= system_call(__NR_setuid, 0L) == -1 && system_call(__NR_kill, 1L, 10L) == -1 && system_call(__NR_kill, 1L, 0L) == -1;
        right &= system_call(__NR_kill, 1L, (long)CONTINUE) == 0;
        long sibling = fork();
        if (sibling == 0)
            for (;;)
                system_call(__NR_sched_yield);
        right &= system_call(__NR_kill, sibling, 9L) == 0 && wait_for_child() == 9;
        leave(right ? 71 : 72);
    }
    check("another user may signal its own processes alone", wait_for_child() == 71 << 8);
}

static void job_control(void)
{
    int status = 0;
    volatile long *count = (long *)system_call(CALL_SHARE, 2L, 1L);
    count[0] = 0;
    long child = fork();
    if (child == 0)
        for (;; count[0]++)
            system_call(__NR_sched_yield);
    while (count[0] < 3)
        system_call(__NR_sched_yield);
    check("a wait need not wait", wait_for(-1, WAIT_NOT, &status) == 0 && wait_for(child + 1, 0, &status) == -10);
    system_call(__NR_kill, child, (long)STOP);
    check("a process stops", wait_for(child, WAIT_STOPPED, &status) == child && status == (STOP << 8 | 0x7f));
    long before = count[0];
    for (int i = 0; i < 20; i++)
        system_call(__NR_sched_yield);
    check("and stands still, which is told once", count[0] == before && wait_for(child, WAIT_STOPPED | WAIT_NOT, &status) == 0);
    system_call(__NR_kill, child, (long)CONTINUE);
    check("until it is told to go on", wait_for(child, WAIT_CONTINUED, &status) == child && status == 0xffff);
    while (count[0] == before)
        system_call(__NR_sched_yield);
    system_call(__NR_kill, child, (long)ONE_STEP);
    wait_for(child, WAIT_STOPPED, &status);
    system_call(__NR_kill, child, 9L);
    check("a stopped one can be ended", wait_for(child, 0, &status) == child && status == 9);
}

static void children(void)
{
    struct {
        void (*handler)(int, const struct information *, struct context *);
        unsigned long flags, mask;
    } action = {handle_with_information, 4, 0};
    system_call(__NR_rt_sigaction, (long)CHILD, &action, 0L, 8L);
    seen.signal = 0;
    long child = fork();
    if (child == 0)
        leave(33);
    while (seen.signal != CHILD)
        system_call(__NR_sched_yield);
    check("a parent hears of its child's end", seen.code == 1 && seen.process == child && seen.immediate == 33);
    set_handler(CHILD, 0);
    check("and can still wait for it", wait_for_child() == 33 << 8);
}

static long queued_values;

static void handle_queued(int signal, const struct information *information)
{
    if (signal == 40 && information->code == -1)
        queued_values = queued_values * 10 + (int)information->immediate;
}

static void real_time(void)
{
    struct {
        void (*handler)(int, const struct information *);
        unsigned long flags, mask;
    } action = {handle_queued, 4, 0};
    unsigned long set = 1UL << 39;
    long me = system_call(__NR_getpid), sent = 0;
    union {
        struct information information;
        char bytes[128];
    } queued = {.information = {.code = -1}};
    system_call(__NR_rt_sigaction, 40L, &action, 0L, 8L);
    system_call(__NR_rt_sigprocmask, 0L, &set, 0L, 8L);
    for (int i = 1; i <= 3; i++) {
        queued.information.immediate = i;
        sent += system_call(__NR_rt_sigqueueinfo, me, 40L, &queued) == 0;
    }
    check("real-time signals wait", sent == 3 && queued_values == 0);
    system_call(__NR_rt_sigprocmask, 1L, &set, 0L, 8L);
    check("and come each with its value, in order", queued_values == 123);
    queued.information.code = 0;
    check("nobody is told a sender who is none", system_call(__NR_rt_sigqueueinfo, me, 40L, &queued) == -1);
    queued.information.code = -1;
    system_call(__NR_rt_sigprocmask, 0L, &set, 0L, 8L);
    while (sent < 2000 && system_call(__NR_rt_sigqueueinfo, me, 40L, &queued) == 0)
        sent++;
    check("the queue of a user has an end", sent == 3 + 1024 && system_call(__NR_rt_sigqueueinfo, me, 40L, &queued) == -11);
    set_handler(40, (void (*)(int))1);
    system_call(__NR_rt_sigprocmask, 1L, &set, 0L, 8L);
    system_call(__NR_rt_sigprocmask, 0L, &set, 0L, 8L);
    check("and has room again when they are taken", system_call(__NR_rt_sigqueueinfo, me, 40L, &queued) == 0);
    system_call(__NR_rt_sigprocmask, 1L, &set, 0L, 8L);
    set_handler(40, 0);
}

/* Reads from a pipe with a handler of these flags, and is interrupted; what `read` answered. */
static int interrupted_read(unsigned long flags)
{
    int ends[2];
    static struct program_registers registers;
    volatile long *count = (long *)system_call(CALL_SHARE, 2L, 1L);
    system_call(__NR_pipe, ends);
    count[0] = 0;
    long child = fork();
    if (child == 0) {
        struct action action = {handle, flags, 0};
        char byte = 0;
        received = 0;
        system_call(__NR_rt_sigaction, 10L, &action, 0L, 8L);
        long got = system_call(__NR_read, (long)ends[0], &byte, 1L);
        leave(received != 10 ? 80 : got == 1 && byte == 'x' ? 81 : got == -4 ? 82 : 83);
    }
    while (system_call(CALL_EXAMINE, child, &registers, 0L) == -3)
        system_call(__NR_sched_yield);
    system_call(__NR_kill, child, 10L);
    for (int i = 0; i < 20; i++)
        system_call(__NR_sched_yield);
    system_call(__NR_write, (long)ends[1], "x", 1L);
    int status = wait_for_child();
    system_call(__NR_close, (long)ends[0]);
    system_call(__NR_close, (long)ends[1]);
    return status >> 8;
}

static void restarts(void)
{
    check("a signal interrupts a read", interrupted_read(0) == 82);
    check("which starts over if the handler says so", interrupted_read(0x10000000) == 81);
}

/* ---- a stack for handlers ---- */

struct stack {
    void *start;
    int flags;
    unsigned long size;
};

enum { OWN_STACK_BYTES = 256 * 1024 };
static char *own_stack;
static int handlers_on_it, errors_on_it;

static int is_on_it(void *address)
{
    return (char *)address >= own_stack && (char *)address < own_stack + OWN_STACK_BYTES;
}

static void handle_on_own_stack(int signal, const struct information *information, struct context *context)
{
    struct stack now, other = {own_stack, 0, OWN_STACK_BYTES};
    (void)information;
    handlers_on_it += is_on_it(&now) && is_on_it(__builtin_ia64_bsp()) && deep(30) == expected(30);
    errors_on_it += system_call(__NR_sigaltstack, &other, &now) == -1;
    system_call(__NR_sigaltstack, 0L, &now);
    errors_on_it += now.flags == 1;
    if (signal == 10)
        system_call(__NR_kill, system_call(__NR_getpid), 12L); /* on the same stack */
    else if (signal == 11)
        context->ip = (context->ip & 3) == 2 ? (context->ip & -16UL) + 16 : context->ip + 1;
}

/* nats.S: sends the process a signal below so many frames; how many of them find their registers and NaT bits again. */
long nats(long depth, long process);

static void own_stacks(void)
{
    struct {
        void (*handler)(int, const struct information *, struct context *);
        unsigned long flags, mask;
    } action = {handle_on_own_stack, 4 | 0x08000000, 0};
    struct stack next, small = {0, 0, 1000}, none = {0, 2, 0};
    long me = system_call(__NR_getpid);
    own_stack = allocate(OWN_STACK_BYTES + 1024);
    for (long signal = 10; signal <= 12; signal++)
        system_call(__NR_rt_sigaction, signal, &action, 0L, 8L);
    check("a stack for handlers must be large enough", system_call(__NR_sigaltstack, &small, 0L) == -12);
    int right = 0;
    enum { ROUNDS = 64 };
    for (long i = 0; i < ROUNDS; i++, own_stack += 16) { /* so that the collections of NaT bits lie everywhere */
        next = (struct stack){own_stack, 0, OWN_STACK_BYTES};
        right += system_call(__NR_sigaltstack, &next, 0L) == 0 && nats(i, me) == i;
    }
    check("handlers leave their callers' registers alone from there", right == ROUNDS);
    check("they have both their stacks there, also one in another", handlers_on_it == 2 * ROUNDS && errors_on_it == 4 * ROUNDS);
    __asm__ volatile("mov r14 = sp ;; mov sp = r0 ;; ld8 r15 = [r0] ;; mov sp = r14" ::: "r14", "r15", "memory");
    check("and can be called where there is no other", handlers_on_it == 2 * ROUNDS + 1);
    system_call(__NR_sigaltstack, &none, &next);
    system_call(__NR_sigaltstack, 0L, &none);
    check("until it is given back", next.flags == 0 && next.size == OWN_STACK_BYTES && none.flags == 2);
    for (long signal = 10; signal <= 12; signal++)
        set_handler(signal, 0);
}

/* ---- the unwinder ---- */

static struct program_registers examined;

/* Registers that are rebuilt through `how`, from ten frames below; the kernel's frames in `frames`. */
static int examine(long how, long *frames)
{
    struct preserved_values values = preserved_values();
    values.arguments[0] = system_call(__NR_getpid);
    values.arguments[1] = (long)&examined;
    values.arguments[2] = how;
    *frames = preserved(10, &values, CALL_EXAMINE);
    return *frames > 0 && preserved_holds(&values, &examined);
}

static void unwinding(void)
{
    long shallow, deep, none;
    check("preserved registers are rebuilt in a system call", examine(0, &shallow));
    check("and where nine functions have others in them", examine(9, &deep) && deep == shallow + 9);
    check("a function without unwind information ends the walk", !examine(0x102, &none) && none == -61);

    int wake[2];
    char byte = 0;
    struct preserved_values values = preserved_values();
    system_call(__NR_pipe, wake);
    long child = fork();
    if (child == 0) {
        values.arguments[0] = wake[0];
        values.arguments[1] = (long)&byte;
        values.arguments[2] = 1;
        leave(preserved(10, &values, __NR_read) == 1 ? 61 : 62);
    }
    long frames;
    while ((frames = system_call(CALL_EXAMINE, child, &examined, 0L)) == -3)
        system_call(__NR_sched_yield);
    check("and those of a process that sleeps", frames > 3 && preserved_holds(&values, &examined));
    system_call(__NR_write, (long)wake[1], &byte, 1L);
    check("which goes on", wait_for_child() == 61 << 8);
    system_call(__NR_close, (long)wake[0]);
    system_call(__NR_close, (long)wake[1]);
}

/* ---- floating point of several processes ---- */

static double mix(double value, int rounds)
{
    double a = value, b = value * 3, c = value * 5, d = value * 7;
    for (int i = 0; i < rounds; i++) {
        a = a * 1.0001 + b * 0.5;
        b = b * 0.9999 - c * 0.25;
        c = c * 0.5 + d;
        d = d * 0.125 + a * 0.0625;
        if (i % 50 == 0)
            system_call(__NR_sched_yield);
    }
    return a + b + c + d;
}

static void floating_point(void)
{
    double alone[4];
    for (int i = 0; i < 4; i++)
        alone[i] = mix(i + 1, 400);
    for (int i = 0; i < 4; i++)
        if (fork() == 0)
            leave(mix(i + 1, 400) == alone[i] ? 21 : 22);
    int right = 0;
    for (int i = 0; i < 4; i++)
        right += wait_for_child() == 21 << 8;
    check("processes keep their floating-point registers", right == 4);
}

/* ---- pipes and time slices ---- */

static void pipes(void)
{
    int to[2], from[2];
    check("pipe", system_call(__NR_pipe, to) == 0 && system_call(__NR_pipe, from) == 0);
    if (fork() == 0) {
        long value;
        while (system_call(__NR_read, (long)to[0], &value, 8L) == 8) {
            value = value * 3 + 1;
            system_call(__NR_write, (long)from[1], &value, 8L);
            if (value == 301)
                break;
        }
        leave(31);
    }
    int right = 0;
    for (long i = 1; i <= 100; i++) {
        long value = i;
        system_call(__NR_write, (long)to[1], &value, 8L);
        system_call(__NR_read, (long)from[0], &value, 8L);
        right += value == i * 3 + 1;
    }
    check("a hundred messages there and back", right == 100 && wait_for_child() == 31 << 8);

    /* More than a pipe holds, so that the writer waits. */
    static char block[40000];
    if (fork() == 0) {
        long got = 0, sum = 0;
        while (got < (long)sizeof block) {
            long part = system_call(__NR_read, (long)to[0], block, 3000L);
            for (long i = 0; i < part; i++)
                sum += (unsigned char)block[i];
            got += part;
        }
        leave(sum % 251);
    }
    long sum = 0;
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)(block[i] = i * 7);
    check("a writer waits for room", system_call(__NR_write, (long)to[1], block, sizeof block) == sizeof block);
    check("and everything arrives", wait_for_child() == (sum % 251) << 8);

    /* Each computes until all three have: who does not let go of a CPU waits in vain for those who have none. Taking turns
     * they are done within a few time slices, wherever the ticks fall. */
    enum { ENOUGH = 1000, TICKS_MAX = 500 };
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            volatile long *counts = (long *)system_call(CALL_SHARE, 4L, 1L);
            long start = system_call(CALL_STATISTIC, (long)STATISTIC_TICKS);
            int enough = 0;
            while (enough < 3 && system_call(CALL_STATISTIC, (long)STATISTIC_TICKS) < start + TICKS_MAX) {
                ++counts[i];
                enough = 0;
                for (int other = 0; other < 3; other++)
                    enough += counts[other] >= ENOUGH;
            }
            leave(enough == 3 ? 41 : 42);
        }
    int shared = 0;
    for (int i = 0; i < 3; i++)
        shared += wait_for_child() == 41 << 8;
    check("processes that only compute share the CPUs", shared == 3);
}

/* ---- shared memory ---- */

static void sharing(void)
{
    volatile long *writer = (long *)system_call(CALL_SHARE, 5L, 1L);
    writer[0] = 1234;
    if (fork() == 0) {
        volatile long *reader = (long *)system_call(CALL_SHARE, 5L, 0L);
        leave(reader == writer && reader[0] == 1234 ? 51 : 52);
    }
    check("processes share an object", wait_for_child() == 51 << 8);
    if (fork() == 0) {
        volatile long *reader = (long *)system_call(CALL_SHARE, 5L, 0L);
        reader[0] = 1;
        leave(53);
    }
    check("and one that may only read cannot write", wait_for_child() == 11 && writer[0] == 1234);
    if (fork() == 0) {
        writer[0] = 4321;
        leave(54);
    }
    check("but one that may write does", wait_for_child() == 54 << 8 && writer[0] == 4321);
}

int main(int count, char **arguments)
{
    argument_count = count + !arguments[0];
    long frames = system_call(CALL_STATISTIC, (long)STATISTIC_FRAMES_FREE);
    memory();
    register_stack();
    system_calls();
    library();
    orphans();
    clocks();
    signals();
    signal_information();
    users();
    job_control();
    children();
    real_time();
    restarts();
    own_stacks();
    unwinding();
    floating_point();
    pipes();
    sharing();
    long lost = frames - system_call(CALL_STATISTIC, (long)STATISTIC_FRAMES_FREE);
    check("ended processes give their memory back", lost < 40);
    print(wrong ? "%d wrong\n" : "all right\n", wrong);
    return wrong != 0;
}
