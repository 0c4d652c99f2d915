/* Texts, numbers, and whole small files. */

#include "userland.h"

long number_of(const char *text, long otherwise)
{
    long number = 0;
    if (!*text)
        return otherwise;
    for (; *text >= '0' && *text <= '9' && number < 1000000000; text++)
        number = number * 10 + (*text - '0');
    return *text ? otherwise : number;
}

int starts_with(const char *text, const char *prefix)
{
    while (*prefix)
        if (*text++ != *prefix++)
            return 0;
    return 1;
}

char *copy_text(char *to, const char *end, const char *from)
{
    while (*from && to + 1 < end)
        *to++ = *from++;
    *to = 0;
    return to;
}

long read_text(const char *path, char *buffer, size_t bytes)
{
    long file = system_call(__NR_openat, (long)AT_CURRENT_FOLDER, path, (long)O_RDONLY, 0L);
    if (file < 0)
        return file;
    size_t length = 0;
    long got = 0;
    while (length + 1 < bytes && (got = system_call(__NR_read, file, buffer + length, bytes - 1 - length)) > 0)
        length += (size_t)got;
    system_call(__NR_close, file);
    buffer[length] = 0;
    return got < 0 ? got : (long)length;
}

long write_all(int file, const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes) {
        long put = system_call(__NR_write, (long)file, at, bytes);
        if (put < 0)
            return put;
        at += put;
        bytes -= (size_t)put;
    }
    return 0;
}
