/* The disk: several processes at once write what nobody else writes, read it again and compare.

       disk PROCESSES ROUNDS

   Each process has 32 sectors, one behind the other from the disk's first. Marks for the host: 1 and 2 around everything. */

#include "system.h"

enum { SECTOR = 512, SECTORS = 32, PROCESSES_MAX = 64 };
enum { CALL_DISK = 1024 + 506 };

static char written[SECTORS * SECTOR], found[SECTORS * SECTOR];

static void member(long place, long rounds)
{
    uint64_t state = place + 1;
    for (long round = 0; round < rounds; round++) {
        long first = random_next(&state) % SECTORS, sectors = 1 + random_next(&state) % (SECTORS - first);
        for (long i = 0; i < sectors * SECTOR; i++)
            written[first * SECTOR + i] = random_next(&state) >> 56;
        if (system_call(CALL_DISK, 1L, place * SECTORS + first, written + first * SECTOR, sectors))
            leave(3);
        if (system_call(CALL_DISK, 0L, place * SECTORS, found, (long)SECTORS))
            leave(4);
        if (memcmp(written + first * SECTOR, found + first * SECTOR, sectors * SECTOR))
            leave(5);
        memcpy(written, found, sizeof found);
    }
    leave(0);
}

int main(int count, char **arguments)
{
    if (count != 3 || number(arguments[1]) < 1 || number(arguments[1]) > PROCESSES_MAX) {
        print("usage: disk PROCESSES ROUNDS, 1 to %d processes\n", PROCESSES_MAX);
        return 2;
    }
    long processes = number(arguments[1]);
    mark(1);
    for (long place = 0; place < processes; place++) {
        long child = fork();
        if (child == 0)
            member(place, number(arguments[2]));
        if (child < 0)
            return 3;
    }
    int worst = 0;
    for (long place = 0; place < processes; place++) {
        int status = 0;
        if (system_call(__NR_wait4, -1L, &status, 0L) < 0)
            return 4;
        worst = status > worst ? status : worst;
    }
    mark(2);
    print("disk: %ld processes, %s\n", processes, worst ? "not what was written" : "all as written");
    return worst != 0;
}
