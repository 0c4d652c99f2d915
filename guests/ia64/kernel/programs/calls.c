/* What a system call costs, by `break` and by `epc`, through a function that is linked statically or dynamically.

       calls getpid|getppid|gettimeofday break|epc static|dynamic COUNT

   Marks for the host: 1 and 2 around COUNT rounds of a loop without the call; 3 and 4 around COUNT rounds with it. Each loop has
   run some rounds before. */

#include "system.h"

typedef void loop(long count, long first, long second);

#define LOOPS(call)                                                                                                     \
    loop loop_##call##_break_static, loop_##call##_break_dynamic, loop_##call##_epc_static, loop_##call##_epc_dynamic
#define ROW(call, pointer)                                                                                              \
    {                                                                                                                   \
        #call, pointer, {                                                                                               \
            {loop_##call##_break_static, loop_##call##_break_dynamic},                                                  \
            {loop_##call##_epc_static, loop_##call##_epc_dynamic},                                                      \
        }                                                                                                               \
    }

LOOPS(getpid);
LOOPS(getppid);
LOOPS(gettimeofday);
loop loop_empty;

static long time[2];

static const struct {
    const char *name;
    long *argument;
    loop *loops[2][2]; /* by way, by link */
} calls[] = {ROW(getpid, 0), ROW(getppid, 0), ROW(gettimeofday, time)};

/* 0 for the first word, 1 for the second, 2 for neither. */
static unsigned which(const char *argument, const char *first, const char *second)
{
    return strcmp(argument, first) == 0 ? 0 : strcmp(argument, second) == 0 ? 1 : 2;
}

int main(int count, char **arguments)
{
    long rounds = count == 5 ? number(arguments[4]) : 0;
    unsigned way = count == 5 ? which(arguments[2], "break", "epc") : 2;
    unsigned link = count == 5 ? which(arguments[3], "static", "dynamic") : 2;
    for (unsigned i = 0; way < 2 && link < 2 && rounds > 0 && i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(arguments[1], calls[i].name))
            continue;
        loop *loop = calls[i].loops[way][link];
        long argument = (long)calls[i].argument;
        loop_empty(20, argument, 0);
        mark(1);
        loop_empty(rounds, argument, 0);
        mark(2);
        loop(20, argument, 0);
        mark(3);
        loop(rounds, argument, 0);
        mark(4);
        print("calls: %ld %s by %s, %s\n", rounds, calls[i].name, arguments[2], arguments[3]);
        return 0;
    }
    print("usage: calls getpid|getppid|gettimeofday break|epc static|dynamic COUNT\n");
    return 2;
}
