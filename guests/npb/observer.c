/* Counts accesses. A pair of threads shares a page as often as the one of the two does that touches it less: a number
   that does not hang on who came when. Pages count as they do for a watcher of page faults; NPB_SHARING_BYTES, a power
   of two, sets another size, such as that of a cache line. What waiting threads do (team.c) does not count, nor does
   what one thread prepares for all. */

#include "observer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OBSERVED_MAX = 64, UNITS_MIN = 1 << 10 };

struct count {
    uintptr_t unit; /* its number and one; 0 where none is */
    uint64_t accesses;
};

/* By open addressing; at most half full. */
struct table {
    struct count *counts;
    size_t size, used;
};

static struct table tables[OBSERVED_MAX];
static int unit_log2 = -1;
static __thread struct table *own;
static __thread struct count *latest;

static void out_of_memory(void)
{
    fprintf(stderr, "observed-npb: out of memory\n");
    exit(2);
}

static struct count *find(const struct table *table, uintptr_t unit)
{
    size_t place = unit * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (table->size - 1);
    while (table->counts[place].unit && table->counts[place].unit != unit)
        place = (place + 1) & (table->size - 1);
    return &table->counts[place];
}

static void grow(struct table *table)
{
    struct table larger = {.size = table->size ? 2 * table->size : UNITS_MIN, .used = table->used};
    larger.counts = calloc(larger.size, sizeof *larger.counts);
    if (!larger.counts)
        out_of_memory();
    for (size_t i = 0; i < table->size; i++)
        if (table->counts[i].unit)
            *find(&larger, table->counts[i].unit) = table->counts[i];
    free(table->counts);
    *table = larger;
}

static void observe(uintptr_t address)
{
    if (!own)
        return;
    uintptr_t unit = (address >> unit_log2) + 1;
    if (!latest || latest->unit != unit) {
        if (2 * own->used >= own->size)
            grow(own);
        latest = find(own, unit);
        if (!latest->unit) {
            latest->unit = unit;
            own->used++;
        }
    }
    latest->accesses++;
}

/* In words of eight bytes. */
static void observe_range(uintptr_t address, size_t bytes)
{
    for (size_t offset = 0; offset < bytes; offset += 8)
        observe(address + offset);
}

static int size_log2(void)
{
    const char *text = getenv("NPB_SHARING_BYTES");
    unsigned long bytes = text ? strtoul(text, NULL, 10) : 4096;
    if (bytes < 8 || bytes > 1 << 30 || (bytes & (bytes - 1))) {
        fprintf(stderr, "observed-npb: NPB_SHARING_BYTES: expected a power of two from 8 to 2^30, found `%s`\n", text);
        exit(2);
    }
    return __builtin_ctzl(bytes);
}

void observer_begin(long thread)
{
    if (thread == 0 && unit_log2 < 0)
        unit_log2 = size_log2();
    latest = NULL;
    own = thread < OBSERVED_MAX ? &tables[thread] : NULL;
}

static double total(const struct table *table)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < table->size; i++)
        sum += table->counts[i].accesses;
    return sum ? sum : 1;
}

/* In parts of all that a thread touches, of a million. */
static uint64_t shared(const struct table *one, const struct table *other)
{
    double sum = 0, of_one = total(one), of_other = total(other);
    for (size_t i = 0; i < one->size && other->size; i++) {
        if (!one->counts[i].unit)
            continue;
        double theirs = find(other, one->counts[i].unit)->accesses / of_other, ours = one->counts[i].accesses / of_one;
        sum += ours < theirs ? ours : theirs;
    }
    return sum * 1e6 + 0.5;
}

int observer_write(const char *path, long threads, int (*set_of)(long thread))
{
    FILE *file = fopen(path, "w");
    if (!file)
        return 0;
    fprintf(file, "{\"sidestep_gang_recording\":1,\"threads\":[");
    for (long thread = 0; thread < threads; thread++)
        fprintf(file,
                "%s{\"task\":%ld,\"process\":%ld,\"thread\":%ld,\"start\":0,\"program\":\"npb\",\"place\":%ld,"
                "\"is_alive\":false}",
                thread ? "," : "", thread, (long)getpid(), (long)getpid() + thread, thread);
    fprintf(file, "],\"matrix\":[");
    for (long row = 0; row < threads; row++) {
        fprintf(file, "%s[", row ? "," : "");
        for (long column = 0; column < threads; column++)
            fprintf(file, "%s%lu", column ? "," : "", row == column ? 0 : shared(&tables[row], &tables[column]));
        fprintf(file, "]");
    }
    fprintf(file, "],\"sets\":[");
    for (long thread = 0; thread < threads; thread++) {
        int is_first = thread == 0 || set_of(thread) != set_of(thread - 1);
        fprintf(file, "%s%ld", is_first ? thread ? "],[" : "[" : ",", thread);
    }
    fprintf(file, "]]}\n");
    return fclose(file) == 0;
}

void *observer_memcpy(void *to, const void *from, size_t bytes)
{
    observe_range((uintptr_t)from, bytes);
    observe_range((uintptr_t)to, bytes);
    return memcpy(to, from, bytes);
}

void *observer_memset(void *to, int value, size_t bytes)
{
    observe_range((uintptr_t)to, bytes);
    return memset(to, value, bytes);
}

/* What the compiler calls: GCC's and LLVM's interface of ThreadSanitizer. */
#define ACCESS(name)                            \
    void __tsan_##name(void *address);          \
    void __tsan_##name(void *address)           \
    {                                           \
        observe((uintptr_t)address);            \
    }
ACCESS(read1) ACCESS(read2) ACCESS(read4) ACCESS(read8)
ACCESS(write1) ACCESS(write2) ACCESS(write4) ACCESS(write8)
ACCESS(unaligned_read2) ACCESS(unaligned_read4) ACCESS(unaligned_read8)
ACCESS(unaligned_write2) ACCESS(unaligned_write4) ACCESS(unaligned_write8)

/* Two words. */
#define VECTOR(name)                            \
    void __tsan_##name(void *address);          \
    void __tsan_##name(void *address)           \
    {                                           \
        observe_range((uintptr_t)address, 16);  \
    }
VECTOR(read16) VECTOR(write16) VECTOR(unaligned_read16) VECTOR(unaligned_write16)

#define RANGE(name)                                    \
    void __tsan_##name(void *address, size_t bytes);   \
    void __tsan_##name(void *address, size_t bytes)    \
    {                                                  \
        observe_range((uintptr_t)address, bytes);      \
    }
RANGE(read_range) RANGE(write_range)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}
