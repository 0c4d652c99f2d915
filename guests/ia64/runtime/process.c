/* Ending the process, its arguments, and its memory from the kernel. */

#include "runtime.h"

#include <asm/unistd.h>

enum { PROTECTION_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS = 0x22 };

void leave(int code)
{
    for (;;)
        system_call(__NR_exit_group, (long)code);
}

long argument(int count, char **values, long otherwise)
{
    if (count < 2)
        return otherwise;
    long number = 0;
    const char *digit = values[1];
    for (; *digit >= '0' && *digit <= '9' && number < 1000000000; digit++)
        number = number * 10 + (*digit - '0');
    if (*digit || number == 0 || count > 2) {
        print("%s: expected one argument, a positive number, found `%s`\n", values[0], values[1]);
        leave(2);
    }
    return number;
}

void *allocate(size_t bytes)
{
    long address = system_call(__NR_mmap, 0L, bytes, (long)PROTECTION_READ_WRITE, (long)MAP_PRIVATE_ANONYMOUS, -1L, 0L);
    if (address < 0 && address > -4096) {
        print("out of memory: %lu bytes, error %ld\n", (unsigned long)bytes, -address);
        leave(2);
    }
    return (void *)address;
}
