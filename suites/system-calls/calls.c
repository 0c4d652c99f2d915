/* What system calls and new processes take: nanoseconds a call, the best of some rounds, a line each.
 * Arguments: calls a round, processes a round, a program to execute. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 5 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

#define MEASURE(name, count, body)                                                                         \
    do {                                                                                                   \
        double best = 1e9;                                                                                 \
        for (int round = 0; round < ROUNDS; round++) {                                                     \
            double begin = seconds();                                                                      \
            for (long i = 0; i < count; i++) {                                                             \
                body;                                                                                      \
            }                                                                                              \
            double each = (seconds() - begin) / count;                                                     \
            best = each < best ? each : best;                                                              \
        }                                                                                                  \
        printf("%s %.0f\n", name, best * 1e9);                                                             \
    } while (0)

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    long calls = atol(argv[1]), processes = atol(argv[2]);
    char *arguments[] = {argv[3], 0};
    char byte;
    int zero = open("/dev/zero", O_RDONLY);
    struct timespec now;
    MEASURE("clock_gettime", calls, clock_gettime(CLOCK_MONOTONIC, &now));
    MEASURE("getppid", calls, syscall(SYS_getppid));
    MEASURE("lseek", calls, lseek(zero, 0, SEEK_CUR));
    MEASURE("read", calls, (void)!read(zero, &byte, 1));
    MEASURE("fork", processes, {
        pid_t child = fork();
        if (!child)
            _exit(0);
        waitpid(child, 0, 0);
    });
    MEASURE("vfork+exec", processes, {
        pid_t child = vfork();
        if (!child) {
            execv(argv[3], arguments);
            _exit(1);
        }
        waitpid(child, 0, 0);
    });
    return 0;
}
