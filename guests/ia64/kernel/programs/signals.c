/* What delivering a signal costs: sends itself a signal whose handler does nothing.

       signals COUNT

   Marks for the host: 1 and 2 around COUNT calls of `kill` with signal 0, which only checks; 3 and 4 around COUNT signals. */

#include "system.h"

static volatile long received;

static void handle(int signal)
{
    received += signal == 10;
}

int main(int count, char **arguments)
{
    long rounds = argument(count, arguments, 100), me = system_call(__NR_getpid);
    struct {
        void (*handler)(int);
        unsigned long flags, mask;
    } action = {handle, 0, 0};
    system_call(__NR_rt_sigaction, 10L, &action, 0L, 8L);
    for (long i = 0; i < 10; i++) {
        system_call(__NR_kill, me, 0L);
        system_call(__NR_kill, me, 10L);
    }
    mark(1);
    for (long i = 0; i < rounds; i++)
        system_call(__NR_kill, me, 0L);
    mark(2);
    mark(3);
    for (long i = 0; i < rounds; i++)
        system_call(__NR_kill, me, 10L);
    mark(4);
    if (received != rounds + 10) {
        print("signals: %ld of %ld arrived\n", (long)received, rounds + 10);
        return 1;
    }
    print("signals: %ld delivered\n", rounds);
    return 0;
}
