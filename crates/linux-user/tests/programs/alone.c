/* Calls that are not for a process with several threads, and copies of one that shares more than `fork` does, right
 * behind code that runs often: an emulator may have begun a thread for that. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 20000 };

/* Functions that are each worth an emulator's attention on their own. */
#define FUNCTION(number)                                                                                    \
    __attribute__((noinline)) static unsigned long run_##number(unsigned long value) {                      \
        for (int i = 0; i < ROUNDS; i++)                                                                    \
            value = value * (2 * number + 3) + (value >> (number % 31 + 1));                                \
        return value;                                                                                       \
    }
#define ALL(X)                                                                                              \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) \
    X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32) X(33) X(34) X(35)
ALL(FUNCTION)
#define NAME(number) run_##number,
static unsigned long (*const functions[])(unsigned long) = {ALL(NAME)};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static volatile unsigned long sum;

static int is_success(pid_t child) {
    int status = -1;
    return waitpid(child, &status, __WALL) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void) {
    /* A child that waits for a lock that nobody holds in it would do so for ever. */
    alarm(60);
    for (int i = 0; i < FUNCTIONS; i++) {
        sum += functions[i](i);
        pid_t child = syscall(SYS_clone2, CLONE_FILES | CLONE_FS | SIGCHLD, 0, 0, 0, 0, 0);
        if (child == 0) {
            free(malloc(1 << 20));
            sum += functions[FUNCTIONS - 1 - i](i);
            _exit(access("/", F_OK));
        }
        CHECK(child > 0 && is_success(child));
        child = fork();
        if (child == 0) {
            sum += functions[FUNCTIONS - 1 - i](i);
            /* Whether it is permitted is the host's affair. */
            int refused = unshare(CLONE_NEWUSER);
            _exit(refused && errno == EINVAL);
        }
        CHECK(child > 0 && is_success(child));
    }
    return report();
}
