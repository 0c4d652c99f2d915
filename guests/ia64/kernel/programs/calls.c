/* What a system call costs, by `break` and by `epc`, through a library's function that is linked statically or dynamically.

       calls getpid|getpid-kept|getppid|gettimeofday break|epc static|dynamic COUNT

   `getpid-kept` by `epc` is the function that asks the kernel once; by `break` there is only the other. Marks for the host:
   3 and 4 around COUNT rounds of a loop that calls the function, the loop included as a program has it; 1 and 2 around
   nothing. The loop has run some rounds before. */

#include "library.h"
#include "system.h"

typedef void loop(long count, void *first);

/* The compiler's loop around one function. */
#define LOOP(function)                                                                                                  \
    static void __attribute__((noinline)) loop_##function(long count, void *first)                                       \
    {                                                                                                                    \
        for (long i = 0; i < count; i++)                                                                                 \
            function(first, 0);                                                                                          \
    }
#define LOOPS(function) LOOP(function) LOOP(function##_import)
#define ROW(call, by_break, by_epc, pointer)                                                                            \
    {                                                                                                                    \
        call, pointer, {                                                                                                 \
            {loop_##by_break, loop_##by_break##_import},                                                                 \
            {loop_##by_epc, loop_##by_epc##_import},                                                                     \
        }                                                                                                                \
    }

LOOPS(getpid_break)
LOOPS(getpid_epc)
LOOPS(getpid_kept)
LOOPS(getppid_break)
LOOPS(getppid_epc)
LOOPS(gettimeofday_break)
LOOPS(gettimeofday_epc)

static long time[2];

static const struct {
    const char *name;
    void *argument;
    loop *loops[2][2]; /* by way, by link */
} calls[] = {
    ROW("getpid", getpid_break, getpid_epc, 0),
    ROW("getpid-kept", getpid_break, getpid_kept, 0),
    ROW("getppid", getppid_break, getppid_epc, 0),
    ROW("gettimeofday", gettimeofday_break, gettimeofday_epc, time),
};

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
    library_start();
    for (unsigned i = 0; way < 2 && link < 2 && rounds > 0 && i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(arguments[1], calls[i].name))
            continue;
        loop *loop = calls[i].loops[way][link];
        loop(20, calls[i].argument);
        mark(1);
        mark(2);
        mark(3);
        loop(rounds, calls[i].argument);
        mark(4);
        print("calls: %ld %s by %s, %s\n", rounds, calls[i].name, arguments[2], arguments[3]);
        return 0;
    }
    print("usage: calls getpid|getpid-kept|getppid|gettimeofday break|epc static|dynamic COUNT\n");
    return 2;
}
