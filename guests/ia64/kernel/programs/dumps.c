/* What a core dump costs: processes that abort, with as many registers as a program has a few calls deep.

       dumps COUNT

   Marks for the host: 1 and 2 around COUNT processes that leave; 3 and 4 around COUNT that send themselves SIGABRT. */

#include "preserved.h"

static void processes(long count, long way)
{
    struct preserved_values values = preserved_values();
    for (long i = 0; i < count; i++) {
        if (fork() == 0) {
            values.arguments[0] = way == __NR_kill ? system_call(__NR_getpid) : 0;
            values.arguments[1] = 6;
            preserved(4, &values, way);
            leave(1);
        }
        system_call(__NR_wait4, -1L, 0L, 0L);
    }
}

int main(int count, char **arguments)
{
    long rounds = argument(count, arguments, 10);
    processes(2, __NR_exit);
    processes(2, __NR_kill);
    mark(1);
    processes(rounds, __NR_exit);
    mark(2);
    mark(3);
    processes(rounds, __NR_kill);
    mark(4);
    return 0;
}
