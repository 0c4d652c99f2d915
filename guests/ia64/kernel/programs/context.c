/* Context switching as lmbench's lat_ctx measures it: processes in a ring of pipes pass a token; each reads its working set
   before it passes the token on.

       context PROCESSES KILOBYTES PASSES

   Marks for the host: 1 and 2 around PASSES rounds of one process through all the pipes, which is what passing the
   token and reading the working set costs by itself; 3 and 4 around PASSES rounds of the ring. */

#include "system.h"

#define PROCESSES_MAX 100

static int pipes[PROCESSES_MAX][2];
static long *working_set;
static size_t words;
static volatile long result;

static void read_working_set(void)
{
    long sum = 0;
    for (size_t i = 0; i < words; i += 4)
        sum += working_set[i] + working_set[i + 1] + working_set[i + 2] + working_set[i + 3];
    result = sum;
}

static void receive(int from)
{
    int token;
    if (system_call(__NR_read, (long)pipes[from][0], &token, sizeof token) != sizeof token)
        leave(3);
}

static void send(int to)
{
    int token = 1;
    if (system_call(__NR_write, (long)pipes[to][1], &token, sizeof token) != sizeof token)
        leave(4);
}

/* Everyone but the first: until the pipe before it is closed. */
static void member(int place, int processes)
{
    working_set = words ? allocate(words * sizeof *working_set) : 0;
    for (;;) {
        receive(place);
        read_working_set();
        send((place + 1) % processes);
    }
}

int main(int count, char **arguments)
{
    if (count != 4) {
        print("usage: context PROCESSES KILOBYTES PASSES\n");
        return 2;
    }
    int processes = number(arguments[1]);
    long passes = number(arguments[3]);
    if (processes < 2 || processes > PROCESSES_MAX) {
        print("context: expected 2 to %d processes, found %s\n", PROCESSES_MAX, arguments[1]);
        return 2;
    }
    words = number(arguments[2]) * 1024 / sizeof *working_set;
    for (int i = 0; i < processes; i++)
        if (system_call(__NR_pipe, pipes[i]) < 0) {
            print("context: out of pipes\n");
            return 2;
        }

    /* By itself, after one round that touches everything first. */
    working_set = words ? allocate(words * sizeof *working_set) : 0;
    for (size_t i = 0; i < words; i++)
        working_set[i] = i;
    for (long pass = -1; pass < passes; pass++) {
        if (pass == 0)
            mark(1);
        for (int i = 0; i < processes; i++) {
            send(i);
            receive(i);
            read_working_set();
        }
    }
    mark(2);

    long children[PROCESSES_MAX];
    for (int i = 1; i < processes; i++) {
        children[i] = fork();
        if (children[i] == 0)
            member(i, processes);
        if (children[i] < 0) {
            print("context: fork: error %d\n", (int)-children[i]);
            return 2;
        }
    }
    for (long pass = -2; pass < passes; pass++) {
        if (pass == 0)
            mark(3);
        send(1 % processes);
        receive(0);
        read_working_set();
    }
    mark(4);
    for (int i = 1; i < processes; i++)
        system_call(__NR_kill, children[i], 9L);
    for (int i = 1; i < processes; i++)
        system_call(__NR_wait4, -1L, 0L, 0L);
    print("context: %d processes, %s kB, %ld passes\n", processes, arguments[2], passes);
    return 0;
}
