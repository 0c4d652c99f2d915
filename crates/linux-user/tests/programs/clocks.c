// Light-weight calls: those that are served without leaving the run of the processor, beside those that are not.

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t ticks;

static void tick(int signal) {
    ticks++;
}

static long long nanoseconds(clockid_t clock) {
    struct timespec time;
    CHECK(!clock_gettime(clock, &time));
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        // Always the same calls, to be counted.
        for (int i = 0; i < 100; i++)
            nanoseconds(CLOCK_MONOTONIC), getppid();
        return report();
    }
    // Clocks go on, and each call's errors are its own.
    long long before = nanoseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < 1000; i++) {
        long long now = nanoseconds(CLOCK_MONOTONIC);
        CHECK(now >= before);
        before = now;
    }
    struct timeval now;
    CHECK(!gettimeofday(&now, 0));
    long long seconds = nanoseconds(CLOCK_REALTIME) / 1000000000;
    CHECK(seconds - now.tv_sec >= 0 && seconds - now.tv_sec <= 2);
    struct timespec time;
    CHECK(syscall(SYS_clock_gettime, 1000, &time) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, 8) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, 0xe000000000000000) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_gettimeofday, 0, 0) == 0);

    // Who asks is known, also in children.
    pid_t own = getpid();
    CHECK(own == syscall(SYS_gettid) && getuid() == geteuid() && getgid() == getegid());
    pid_t child = fork();
    if (!child)
        _exit(getppid() == own && getpid() != own && syscall(SYS_gettid) == getpid() ? 0 : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    // Signals reach a program that makes no other calls.
    struct sigaction action = {.sa_handler = tick};
    CHECK(!sigaction(SIGALRM, &action, 0));
    struct itimerval soon = {.it_value.tv_usec = 1000, .it_interval.tv_usec = 1000};
    CHECK(!setitimer(ITIMER_REAL, &soon, 0));
    while (ticks < 3)
        nanoseconds(CLOCK_MONOTONIC);
    return report();
}
