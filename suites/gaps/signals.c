/* Sends itself a number of signals, each caught by a handler that returns, as lmbench's lat_sig does; or as many that
   nobody is sent, which is what it takes off. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void handler(int number)
{
    (void)number;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    int number = strcmp(arguments[1], "catch") == 0 ? SIGUSR1 : 0;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    int self = getpid();
    for (int time = atoi(arguments[2]); time > 0; time--)
        kill(self, number);
    return 0;
}
