/* Memory and string functions, and the random sequence. */

#include "runtime.h"

/* Eight bytes at a time when both sides allow it; GCC must not turn these loops back into calls. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

void *memcpy(void *to, const void *from, size_t bytes)
{
    uint8_t *output = to;
    const uint8_t *input = from;
    if ((((uintptr_t)output | (uintptr_t)input) & 7) == 0)
        for (; bytes >= 8; bytes -= 8, output += 8, input += 8)
            *(uint64_t __attribute__((may_alias)) *)output = *(const uint64_t __attribute__((may_alias)) *)input;
    while (bytes--)
        *output++ = *input++;
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    uint8_t *output = to;
    const uint8_t *input = from;
    if (output <= input || output >= input + bytes)
        return memcpy(to, from, bytes);
    while (bytes--)
        output[bytes] = input[bytes];
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    uint8_t *output = to;
    uint64_t pattern = (uint8_t)value * UINT64_C(0x0101010101010101);
    for (; bytes && ((uintptr_t)output & 7); bytes--)
        *output++ = value;
    for (; bytes >= 8; bytes -= 8, output += 8)
        *(uint64_t __attribute__((may_alias)) *)output = pattern;
    while (bytes--)
        *output++ = value;
    return to;
}

int memcmp(const void *left, const void *right, size_t bytes)
{
    const uint8_t *one = left, *other = right;
    for (; bytes; bytes--, one++, other++)
        if (*one != *other)
            return *one - *other;
    return 0;
}

size_t strlen(const char *text)
{
    const char *end = text;
    while (*end)
        end++;
    return end - text;
}

int strcmp(const char *left, const char *right)
{
    while (*left && *left == *right)
        left++, right++;
    return (uint8_t)*left - (uint8_t)*right;
}

uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11;
}
