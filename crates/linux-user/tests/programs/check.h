/* Counting failed checks; `report` gives the program's exit status. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        errno = 0;                                                                                         \
        if (!(condition)) {                                                                                \
            printf("%s:%d: %s (errno: %s)\n", __FILE__, __LINE__, #condition, strerror(errno));            \
            failures++;                                                                                    \
        }                                                                                                  \
    } while (0)

static inline int report(void) {
    printf("%d failures\n", failures);
    return failures != 0;
}

#endif
