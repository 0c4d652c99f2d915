#include "tour.h"

#include <asm/unistd.h>

enum { SIGKILL = 9, SIGCHLD = 17 };

static long fork(void)
{
    return system_call(__NR_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L, 0L);
}

static int status_of(long child)
{
    int status = -1;
    return system_call(__NR_wait4, child, &status, 0L, 0L) == child ? status : -1;
}

void process_part(void)
{
    int ends[2];
    long here = 1;
    check(system_call(__NR_pipe2, ends, 0L) == 0, "pipe2");
    long child = fork();
    if (child == 0) {
        here = pyramid(100);
        system_call(__NR_write, (long)ends[1], &here, 8L);
        leave(7);
    }
    long answer = 0;
    check(system_call(__NR_read, (long)ends[0], &answer, 8L) == 8 && answer == 20200, "what the child wrote to the pipe");
    check(status_of(child) == 7 << 8, "the child's exit code");
    check(here == 1, "the child's memory is its own");

    child = fork();
    if (child == 0)
        for (;;)
            system_call(__NR_read, (long)ends[0], &here, 8L);
    check(child > 0 && system_call(__NR_kill, child, (long)SIGKILL) == 0, "kill");
    check(status_of(child) == SIGKILL, "the child's death by a signal");
    check(system_call(__NR_wait4, -1L, 0L, 0L, 0L) == -10, "no more children");
}
