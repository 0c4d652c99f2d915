/* What the benchmarks of guests/ia64/bench have around them where they are built for the host: the same functions as
   guests/ia64/runtime offers them, over the host's C library. */

#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>

void print(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
}

void leave(int code)
{
    exit(code);
}

void *allocate(size_t bytes)
{
    void *pages = calloc(1, bytes);
    if (!pages)
        exit(1);
    return pages;
}

long argument(int count, char **values, long otherwise)
{
    return count > 1 ? atol(values[1]) : otherwise;
}

uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11;
}
