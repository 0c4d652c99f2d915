/* Page faults as lmbench's lat_pagefault counts them: memory is mapped, each of its pages is touched for the first time, and the
   memory is given back.

       fault PAGES ROUNDS

   Marks for the host: 1 and 2 around ROUNDS times mapping and giving back alone; 3 and 4 around the same with the touches. */

#include "system.h"

enum { PAGE = 16384, PAGES_MAX = 4096 };

static void rounds(long count, long pages, int touches)
{
    for (long round = 0; round < count; round++) {
        long start = system_call(__NR_mmap, 0L, pages * PAGE, 3L, 0x22L, -1L, 0L);
        if (start < 0)
            leave(3);
        for (long page = 0; touches && page < pages; page++) {
            volatile char *place = (volatile char *)start + page * PAGE;
            if (*place)
                leave(4); /* a fresh page is zero */
            *place = 1;
        }
        if (system_call(__NR_munmap, start, pages * PAGE) < 0)
            leave(5);
    }
}

int main(int count, char **arguments)
{
    if (count != 3 || number(arguments[1]) < 1 || number(arguments[1]) > PAGES_MAX || number(arguments[2]) < 1) {
        print("usage: fault PAGES ROUNDS, 1 to %d pages and at least one round\n", PAGES_MAX);
        return 2;
    }
    long pages = number(arguments[1]), times = number(arguments[2]);
    rounds(1, pages, 1);
    mark(1);
    rounds(times, pages, 0);
    mark(2);
    mark(3);
    rounds(times, pages, 1);
    mark(4);
    print("fault: %ld rounds of %ld pages\n", times, pages);
    return 0;
}
