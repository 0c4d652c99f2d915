/* What the drivers of a library's kernels share: `KERNEL` runs a call PASSES times if its name was asked for. */

#include <stdlib.h>
#include <string.h>

#define KERNEL(name, call)                          \
    if (strcmp(kernel, #name) == 0) {               \
        for (int pass = 0; pass < PASSES; pass++) { \
            call;                                   \
            __asm__ volatile("" ::: "memory");      \
        }                                           \
        return 0;                                   \
    }
