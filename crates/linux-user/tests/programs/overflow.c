/* Both stacks overflow, and a handler on the alternate stack sees it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include "check.h"

static sigjmp_buf back;
static volatile int seen;

static void jump(int number, siginfo_t *information, void *context) {
    seen++;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static int memory(int depth) {
    volatile char frame[10000];
    frame[depth % 10000] = depth;
    int deeper = memory(depth + 1);
    asm volatile("" : "+r"(deeper)); /* no loop instead of the recursion */
    return deeper + frame[5];
}

__attribute__((noinline)) static long registers(long a, long b, long c) {
    long x = a * b, y = b * c, z = a * c;
    long deeper = registers(x + 1, y + 2, z + 3);
    asm volatile("" : "+r"(deeper));
    return deeper + x + y + z + a + b + c;
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(400000), .ss_size = 400000};
    CHECK(!sigaltstack(&stack, 0));
    struct sigaction action = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK(!sigaction(SIGSEGV, &action, 0));
    for (int round = 1; round < 4; round++) {
        if (!sigsetjmp(back, 1))
            memory(0);
        CHECK(seen == 2 * round - 1);
        if (!sigsetjmp(back, 1))
            registers(1, 2, 3);
        CHECK(seen == 2 * round);
    }
    return report();
}
