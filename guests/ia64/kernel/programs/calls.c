/* What a system call costs, by `break` and by `epc`.

       calls getpid|getppid|gettimeofday break|epc COUNT

   Marks for the host: 1 and 2 around COUNT rounds of a loop without the call; 3 and 4 around COUNT rounds with it. Each loop has
   run some rounds before. */

#include "system.h"

void loop_break(long count, long number, long first, long second);
void loop_epc(long count, long number, long first, long second);
void loop_empty(long count, long number, long first, long second);

static const struct {
    const char *name;
    long number;
} calls[] = {{"getpid", __NR_getpid}, {"getppid", __NR_getppid}, {"gettimeofday", __NR_gettimeofday}};

int main(int count, char **arguments)
{
    static long time[2];
    long call = 0, rounds = count == 4 ? number(arguments[3]) : 0;
    for (unsigned i = 0; count == 4 && i < sizeof calls / sizeof *calls; i++)
        if (strcmp(arguments[1], calls[i].name) == 0)
            call = calls[i].number;
    int by_break = count == 4 && strcmp(arguments[2], "break") == 0;
    if (!call || rounds < 1 || (!by_break && strcmp(arguments[2], "epc"))) {
        print("usage: calls getpid|getppid|gettimeofday break|epc COUNT\n");
        return 2;
    }
    long first = call == __NR_gettimeofday ? (long)time : 0;
    void (*loop)(long, long, long, long) = by_break ? loop_break : loop_epc;
    loop_empty(20, call, first, 0);
    mark(1);
    loop_empty(rounds, call, first, 0);
    mark(2);
    loop(20, call, first, 0);
    mark(3);
    loop(rounds, call, first, 0);
    mark(4);
    print("calls: %ld %s by %s\n", rounds, arguments[1], arguments[2]);
    return 0;
}
