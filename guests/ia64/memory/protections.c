/* What memory does not allow, tried by code that has long been hot: loads and stores of every kind run over the ends of
   mappings, into pages that may not be read or written, beyond a file's end and outside of all regions. Each fault is
   told with its signal, code and address, with what was stored before it, and stepped over or ended. */

#include "runtime.h"

#include <asm/unistd.h>

enum {
    SIGBUS = 7,
    SIGSEGV = 11,
    SA_SIGINFO = 4,
    SA_NODEFER = 0x40000000,
    PROT_NONE = 0,
    PROT_READ = 1,
    PROT_WRITE = 2,
    PROT_EXEC = 4,
    MAP_SHARED = 1,
    MAP_PRIVATE = 2,
    MAP_ANONYMOUS = 0x20,
    PAGE_BYTES = 16384,
    ELEMENTS = 64,
    HOT_ROUNDS = 1500,
    FAULTS_MAX = 3, /* of one access pattern */
};

struct information {
    int number, error, code, padding;
    uint64_t address;
};

/* The beginning of Linux/ia64's `struct sigcontext`. */
struct context {
    uint64_t flags, nat, stack[3];
    uint64_t ip; /* the low two bits are the slot */
};

struct action {
    void (*handler)(int, struct information *, struct context *);
    uint64_t flags, mask;
};

static char *pages;
static int faults;

static void tell(int signal, struct information *information, struct context *context)
{
    if (faults++ < FAULTS_MAX)
        print("    signal %d, code %d, at page %ld and %ld bytes\n", signal, information->code,
              (long)(information->address - (uint64_t)pages) / PAGE_BYTES, (long)(information->address % PAGE_BYTES));
    context->ip += (context->ip & 3) == 2 ? 14 : 1;
}

#define LOADER(name, type)                                                                                             \
    static __attribute__((noinline)) long name(const volatile type *from, long count)                                  \
    {                                                                                                                  \
        type sum = 0;                                                                                                  \
        for (long i = 0; i < count; i++)                                                                               \
            sum += from[i];                                                                                            \
        return (long)sum;                                                                                              \
    }

#define STORER(name, type)                                                                                             \
    static __attribute__((noinline)) long name(volatile type *to, long count)                                          \
    {                                                                                                                  \
        for (long i = 0; i < count; i++)                                                                               \
            to[i] = (type)(i + 1);                                                                                     \
        return to[0] != 0;                                                                                             \
    }

LOADER(load_bytes, uint8_t)
LOADER(load_words, uint32_t)
LOADER(load_longs, uint64_t)
LOADER(load_singles, float)
LOADER(load_doubles, double)
STORER(store_bytes, uint8_t)
STORER(store_words, uint32_t)
STORER(store_longs, uint64_t)
STORER(store_singles, float)
STORER(store_doubles, double)

struct accessor {
    const char *name;
    long (*access)(volatile void *, long);
    long bytes;
};

#define ACCESSOR(name, bytes) {#name, (long (*)(volatile void *, long))name, bytes}

static const struct accessor accessors[] = {
    ACCESSOR(load_bytes, 1),   ACCESSOR(load_words, 4),  ACCESSOR(load_longs, 8),    ACCESSOR(load_singles, 4),
    ACCESSOR(load_doubles, 8), ACCESSOR(store_bytes, 1), ACCESSOR(store_words, 4),   ACCESSOR(store_longs, 8),
    ACCESSOR(store_singles, 4), ACCESSOR(store_doubles, 8),
};

enum { ACCESSORS = sizeof accessors / sizeof accessors[0] };

/* Every accessor runs over so many elements that end that many bytes behind a place. */
static void try(const char *what, char *place, long beyond)
{
    print("%s\n", what);
    for (int i = 0; i < ACCESSORS; i++) {
        const struct accessor *one = &accessors[i];
        char *start = place + beyond * one->bytes - ELEMENTS * one->bytes;
        faults = 0;
        print("  %s\n", one->name);
        one->access(start, ELEMENTS);
        print("    %d faults\n", faults);
    }
}

static void check(int is_so, const char *what)
{
    if (!is_so) {
        print("not so: %s\n", what);
        leave(1);
    }
}

static long protect(long page, int protection)
{
    return system_call(__NR_mprotect, pages + page * PAGE_BYTES, (long)PAGE_BYTES, (long)protection);
}

int main(void)
{
    struct action action = {tell, SA_SIGINFO | SA_NODEFER, 0};
    system_call(__NR_rt_sigaction, (long)SIGSEGV, &action, 0L, 8L);
    system_call(__NR_rt_sigaction, (long)SIGBUS, &action, 0L, 8L);
    pages = (char *)system_call(__NR_mmap, 0L, 8L * PAGE_BYTES, (long)(PROT_READ | PROT_WRITE),
                                (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L);

    long sum = 0;
    for (int round = 0; round < HOT_ROUNDS; round++)
        for (int i = 0; i < ACCESSORS; i++)
            sum += accessors[i].access(pages + (i & 7) * 64, ELEMENTS / 8);
    print("hot: %ld\n", sum);

    system_call(__NR_munmap, pages + 2 * PAGE_BYTES, (long)PAGE_BYTES);
    protect(4, PROT_READ);
    protect(6, PROT_NONE);
    try("into a hole", pages + 2 * PAGE_BYTES, 3);
    try("into what may be read", pages + 4 * PAGE_BYTES, 3);
    try("into what may not be touched", pages + 6 * PAGE_BYTES, 3);
    try("misaligned", pages + 3, 0);
    protect(4, PROT_READ | PROT_WRITE);
    try("what may be written again", pages + 4 * PAGE_BYTES, 3);

    static const uint64_t nowhere[] = {
        0, 8, 1ULL << 45 | 1ULL << 61, (1ULL << 61) - 8 * ELEMENTS, 3ULL << 61 | 1ULL << 50, 4ULL << 61, 7ULL << 61,
    };
    for (unsigned i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        pages = (char *)nowhere[i];
        print("address %lx\n", nowhere[i]);
        for (int one = 0; one < ACCESSORS; one++) {
            faults = 0;
            accessors[one].access((void *)nowhere[i], 2);
            print("  %s: %d faults\n", accessors[one].name, faults);
        }
    }

    pages = (char *)system_call(__NR_mmap, 0L, 2L * PAGE_BYTES, (long)(PROT_READ | PROT_WRITE),
                                (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L);
    protect(1, PROT_EXEC);
    try("into what may only be executed", pages + PAGE_BYTES, 3);

    long file = system_call(__NR_memfd_create, "file", 0L);
    check(file >= 0 && system_call(__NR_ftruncate, file, 2L * PAGE_BYTES) == 0, "a file of two pages");
    pages = (char *)system_call(__NR_mmap, 0L, 2L * PAGE_BYTES, (long)(PROT_READ | PROT_WRITE),
                                (long)MAP_SHARED, file, 0L);
    try("a file", pages + PAGE_BYTES, 3);
    check(system_call(__NR_ftruncate, file, (long)PAGE_BYTES) == 0, "the file becomes shorter");
    try("behind the end of a file", pages + PAGE_BYTES, 3);
    return 0;
}
