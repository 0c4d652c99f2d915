/* Integer: text work byte by byte: splitting into words, counting, searching a substring, run-length packing. */

#include "runtime.h"

enum { LENGTH = 1 << 14 };

static char text[LENGTH + 1], packed[2 * LENGTH + 2];

static void write_text(uint64_t *state)
{
    for (int i = 0; i < LENGTH; i++) {
        int value = random_next(state) >> 20 & 0xfff;
        text[i] = value % 8 == 0 ? ' ' : value % 8 == 1 && i ? text[i - 1] : 'a' + value / 8 % 16;
    }
    text[LENGTH] = 0;
}

static long words(const char *from)
{
    long count = 0, inside = 0;
    for (; *from; from++) {
        long letter = *from != ' ';
        count += letter & ~inside;
        inside = letter;
    }
    return count;
}

static long occurrences(const char *from, const char *needle)
{
    long count = 0, length = strlen(needle);
    for (; *from; from++)
        if (*from == *needle && memcmp(from, needle, length) == 0)
            count++;
    return count;
}

static long pack(const char *from)
{
    char *to = packed;
    while (*from) {
        int run = 1;
        while (run < 255 && from[run] == *from)
            run++;
        *to++ = run;
        *to++ = *from;
        from += run;
    }
    return to - packed;
}

int main(int count, char **values)
{
    long rounds = argument(count, values, 50);
    uint64_t state = 7, checksum = 0;
    for (long round = 0; round < rounds; round++) {
        write_text(&state);
        checksum = checksum * 31 + words(text);
        checksum = checksum * 31 + occurrences(text, "abc") + occurrences(text, "ee");
        checksum = checksum * 31 + pack(text);
    }
    print("strings: %ld rounds, checksum %lu\n", rounds, checksum);
    return 0;
}
