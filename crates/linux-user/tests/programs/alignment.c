/* Misaligned accesses: silent, unless PR_SET_UNALIGN says otherwise; never for semaphores. */
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>

#include "check.h"

static sigjmp_buf back;
static volatile int code;

static void jump(int number, siginfo_t *information, void *context) {
    code = information->si_code;
    siglongjmp(back, 1);
}

int main(void) {
    char bytes[32];
    for (int i = 0; i < 32; i++)
        bytes[i] = i;
    char *start = bytes + 3;
    asm volatile("" : "+r"(start)); /* or GCC would load byte by byte */
    volatile long *crooked = (volatile long *)start;
    struct sigaction action = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO};
    CHECK(!sigaction(SIGBUS, &action, 0));
    CHECK(*crooked == 0x0a09080706050403);
    asm volatile("sum 8;;");
    CHECK(*crooked == 0x0a09080706050403);
    *crooked = 5;
    CHECK(*crooked == 5);
    asm volatile("rum 8;;");
    if (!sigsetjmp(back, 1))
        __sync_fetch_and_add((int *)start, 1);
    CHECK(code == BUS_ADRALN);
    CHECK(!prctl(PR_SET_UNALIGN, PR_UNALIGN_SIGBUS));
    code = 0;
    if (!sigsetjmp(back, 1))
        (void)*crooked;
    CHECK(code == BUS_ADRALN);
    return report();
}
