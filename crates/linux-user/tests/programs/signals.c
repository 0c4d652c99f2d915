/* Faults and their siginfo, handlers on both stacks, interrupted calls, masks. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

static volatile int seen;
static volatile siginfo_t last;
static sigjmp_buf back;

static void note(int number) { seen = number; }

static void jump(int number, siginfo_t *information, void *context) {
    seen = number;
    last = *information;
    siglongjmp(back, 1);
}

static void on_stack(int number, siginfo_t *information, void *context) {
    volatile char buffer[64];
    buffer[0] = 1;
    seen = number + buffer[0] - 1;
}

/* Steps over the faulting instruction, as debuggers and emulators do. */
static void step_over(int number, siginfo_t *information, void *context) {
    ucontext_t *user = context;
    seen = number;
    user->uc_mcontext.sc_ip = (user->uc_mcontext.sc_ip & ~15ul) + 16;
    user->uc_mcontext.sc_gr[8] = 77;
}

/* Frames enough to spill, with a signal at the bottom. */
static long descend(long depth, int number) {
    volatile long local = depth;
    if (depth == 0)
        return raise(number);
    return descend(depth - 1, number) + local;
}

/* Leaves another signal behind, which arrives when this handler returns to the interrupted code. */
static void note_and_raise(int number) {
    seen = number;
    raise(SIGUSR1);
}

static double sum_while_interrupted(void) {
    double sum = 0;
    for (int i = 1; i < 2000000; i++)
        sum += 1.0 / i;
    return sum;
}

#define FAULT(number, statement)                                                                           \
    do {                                                                                                   \
        seen = 0;                                                                                          \
        if (!sigsetjmp(back, 1)) {                                                                         \
            statement;                                                                                     \
        }                                                                                                  \
        CHECK(seen == number);                                                                             \
    } while (0)

static void faults(void) {
    struct sigaction action = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO};
    int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (int i = 0; i < 5; i++)
        CHECK(!sigaction(numbers[i], &action, 0));
    FAULT(SIGSEGV, *(volatile int *)0x12340 = 1);
    CHECK(last.si_addr == (void *)0x12340 && last.si_code == SEGV_MAPERR);
    CHECK(last.si_isr >> 33 & 1);
    FAULT(SIGSEGV, *(volatile int *)8);
    CHECK(last.si_addr == (void *)8 && last.si_code == SEGV_ACCERR);
    char *page = mmap(0, 16384, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FAULT(SIGSEGV, page[100] = 1);
    CHECK(last.si_addr == page + 100 && last.si_code == SEGV_ACCERR);
    munmap(page, 16384);
    FAULT(SIGSEGV, page[100] = 1);
    CHECK(last.si_code == SEGV_MAPERR);
    FILE *file = tmpfile();
    char *mapped = mmap(0, 16384, PROT_READ, MAP_SHARED, fileno(file), 0);
    FAULT(SIGBUS, *(volatile char *)mapped);
    CHECK(last.si_code == BUS_ADRERR && last.si_addr == mapped);
    FAULT(SIGFPE, asm volatile("break 1"));
    CHECK(last.si_code == FPE_INTDIV && last.si_imm == 1);
    FAULT(SIGILL, asm volatile("break 0"));
    FAULT(SIGTRAP, asm volatile("break 0x80000"));
    FAULT(SIGILL, asm volatile("ld8.s r14=[r0];;\n\tst8 [%0]=r14" ::"r"(page) : "r14", "memory"));
    CHECK(last.si_code == ILL_ILLOPN);
    FAULT(SIGSEGV, ((void (*)(void)) & (unsigned long[]){0x50000, 0})());
    CHECK(last.si_addr == (void *)0x50000);

    action.sa_sigaction = step_over;
    CHECK(!sigaction(SIGSEGV, &action, 0));
    register long result asm("r8") = 1;
    asm volatile("{ .mib\n\tst8 [%1]=r0\n\tnop.i 0\n\tnop.b 0\n\t}\n\t;;" : "+r"(result) : "r"(0x12340));
    CHECK(result == 77 && seen == SIGSEGV);
    signal(SIGSEGV, SIG_DFL);
}

static void stacks(void) {
    stack_t stack = {.ss_sp = malloc(300000), .ss_size = 300000};
    CHECK(!sigaltstack(&stack, 0));
    struct sigaction action = {.sa_sigaction = on_stack, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK(!sigaction(SIGUSR2, &action, 0));
    CHECK(descend(500, SIGUSR2) == 125250 && seen == SIGUSR2);
    signal(SIGUSR1, note);
    CHECK(descend(500, SIGUSR1) == 125250 && seen == SIGUSR1);
    stack.ss_size = 1000;
    CHECK(sigaltstack(&stack, 0) < 0 && errno == ENOMEM);
    struct sigaction once = {.sa_handler = note, .sa_flags = SA_RESETHAND};
    CHECK(!sigaction(SIGUSR1, &once, 0));
    raise(SIGUSR1);
    CHECK(!sigaction(SIGUSR1, 0, &once) && once.sa_handler == SIG_DFL);
}

static void interruptions(void) {
    int ends[2];
    char byte;
    CHECK(!pipe(ends));
    struct sigaction action = {.sa_handler = note};
    CHECK(!sigaction(SIGALRM, &action, 0));
    ualarm(20000, 20000);
    CHECK(read(ends[0], &byte, 1) < 0 && errno == EINTR && seen == SIGALRM);
    ualarm(0, 0);
    action.sa_flags = SA_RESTART;
    CHECK(!sigaction(SIGALRM, &action, 0));
    ualarm(20000, 0);
    if (!fork()) {
        usleep(60000);
        _exit(write(ends[1], "x", 1) != 1);
    }
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x');
    wait(0);
    double expected = sum_while_interrupted();
    signal(SIGUSR1, note);
    action.sa_handler = note_and_raise;
    sigaddset(&action.sa_mask, SIGUSR1);
    CHECK(!sigaction(SIGALRM, &action, 0));
    ualarm(1000, 500);
    for (int i = 0; i < 5; i++)
        CHECK(sum_while_interrupted() == expected);
    ualarm(0, 0);
}

/* Calls that do not sleep are never interrupted, whenever signals come; those that do sleep tell how much is left. */
static void stormed(void) {
    struct sigaction action = {.sa_handler = note};
    CHECK(!sigaction(SIGUSR1, &action, 0));
    pid_t parent = getpid(), child = fork();
    if (!child) {
        while (getppid() == parent)
            kill(parent, SIGUSR1);
        _exit(0);
    }
    int interrupted = 0, untold = 0, word = 0;
    for (int i = 0; i < 20000; i++)
        interrupted += syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0) != 0;
    for (int i = 0; i < 200; i++) {
        struct timespec pause = {0, 100000000}, left = {-1, -1};
        untold += nanosleep(&pause, &left) < 0 && errno == EINTR && left.tv_sec != 0;
    }
    CHECK(!kill(child, SIGKILL) && wait(0) == child);
    CHECK(interrupted == 0 && untold == 0);
}

static void masks(void) {
    sigset_t set, old, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGUSR1, note);
    sigprocmask(SIG_BLOCK, &set, &old);
    seen = 0;
    raise(SIGUSR1);
    CHECK(seen == 0 && !sigpending(&pending) && sigismember(&pending, SIGUSR1));
    CHECK(sigsuspend(&old) < 0 && errno == EINTR && seen == SIGUSR1);
    CHECK(!sigprocmask(SIG_SETMASK, 0, &pending) && sigismember(&pending, SIGUSR1));
    seen = 0;
    raise(SIGUSR1);
    sigprocmask(SIG_SETMASK, &old, 0);
    CHECK(seen == SIGUSR1);
}

/* Arithmetic whose operands and results are mostly usual, and some not. */
static double unusual_sum(void) {
    static volatile double largest = 1e308, smallest = 1e-308;
    double sum = 0;
    for (int i = 1; i < 20000; i++) {
        sum += 0.1 * i;
        if (i % 500 == 0)
            sum += (largest * largest > sum) + smallest * 0.01 * 1e300;
    }
    return sum;
}

/* The signal by which the host tells of unusual numbers is the program's, too. */
static void sent_while_computing(void) {
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGFPE);
    signal(SIGFPE, note);
    seen = 0;
    double expected = unusual_sum();
    CHECK(seen == 0 && !raise(SIGFPE) && seen == SIGFPE);
    seen = 0;
    sigprocmask(SIG_BLOCK, &set, 0);
    raise(SIGFPE);
    CHECK(unusual_sum() == expected && seen == 0);
    CHECK(!sigpending(&pending) && sigismember(&pending, SIGFPE));
    sigprocmask(SIG_UNBLOCK, &set, 0);
    CHECK(seen == SIGFPE);
    sigprocmask(SIG_BLOCK, &set, 0);
    raise(SIGFPE);
    struct timespec none = {0};
    CHECK(sigtimedwait(&set, 0, &none) == SIGFPE && unusual_sum() == expected);
    sigprocmask(SIG_UNBLOCK, &set, 0);
    signal(SIGFPE, SIG_IGN);
    CHECK(!raise(SIGFPE) && unusual_sum() == expected);
    signal(SIGFPE, SIG_DFL);
}

static void endings(void) {
    int numbers[] = {SIGSEGV, SIGFPE, SIGABRT, SIGTERM, SIGKILL, SIGRTMIN + 3};
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (!child) {
            close(2);
            kill(getpid(), numbers[i]);
            _exit(1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
    }
}

int main(void) {
    faults();
    stacks();
    interruptions();
    stormed();
    masks();
    sent_while_computing();
    endings();
    return report();
}
