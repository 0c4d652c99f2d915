/* Processes: making them, replacing them, waiting for them; and time. */

#include "userland.h"

enum { SIGCHLD = 17, CLOCK_MONOTONIC = 1, TCSBRK = 0x5409 };

/* What every program is started with. */
static char *environment[] = { "PATH=/bin", "HOME=/", "TERM=vt100", 0 };

struct duration {
    long seconds, nanoseconds;
};

long fork_process(void)
{
    return system_call(__NR_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L, 0L);
}

long execute(char **words)
{
    char path[PATH_BYTES];
    int has_slash = 0;
    for (const char *at = words[0]; *at; at++)
        has_slash |= *at == '/';
    char *end = has_slash ? path : copy_text(path, path + sizeof path, "/bin/");
    copy_text(end, path + sizeof path, words[0]);
    return system_call(__NR_execve, path, words, environment);
}

long become(int count, char **words)
{
    const struct command *command = find_command(words[0]);
    if (command)
        leave(command->run(count, words));
    return execute(words);
}

void drain_terminal(long file)
{
    system_call(__NR_ioctl, file, (long)TCSBRK, 1L);
}

int code_of_status(int status)
{
    return status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
}

int exit_code_of(long child)
{
    int status = 0;
    long answer;
    do
        answer = system_call(__NR_wait4, child, &status, 0L, 0L);
    while (answer == -4); /* EINTR */
    if (answer != child)
        return 127;
    return code_of_status(status);
}

void pause_for(long seconds, long nanoseconds)
{
    struct duration duration = { seconds, nanoseconds };
    system_call(__NR_nanosleep, &duration, 0L);
}

long now(void)
{
    struct duration time = { 0, 0 };
    system_call(__NR_clock_gettime, (long)CLOCK_MONOTONIC, &time);
    return time.seconds * 1000000000L + time.nanoseconds;
}
