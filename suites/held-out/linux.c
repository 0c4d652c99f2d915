/* Runs Linux's memcpy for Itanium 2 again and again between places that do not lie alike. */

#include "../rates/kernel.h"

void *linux_memcpy(void *to, const void *from, size_t bytes);

enum { PASSES = 2000, BYTES = 8192, ASIDE = 3 };

static char from[BYTES + ASIDE] __attribute__((aligned(128)));
static char to[BYTES] __attribute__((aligned(128)));

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const char *kernel = arguments[1];
    long length = atol(arguments[2]);
    KERNEL(memcpy unaligned, linux_memcpy(to, from + ASIDE, length))
    return 2;
}
