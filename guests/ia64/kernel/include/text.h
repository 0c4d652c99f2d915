/* Memory and text functions; GCC calls the first three on its own. From guests/ia64/runtime/memory.c. */

#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *left, const void *right, size_t bytes);
size_t strlen(const char *text);
int strcmp(const char *left, const char *right);

static inline int text_equal(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

#endif
