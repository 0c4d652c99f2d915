/* What a context switch and a page fault take, in the manner of LMbench's lat_ctx and lat_pagefault: processes that
   hand a token round by pipes, each working through memory of its own when it has it; and pages touched for the first
   time, of a file or of nobody. */

#include "userland.h"

enum {
    PROCESSES_MAX = 64,
    PAGE_BYTES = 65536, /* Linux's largest on IA-64: what is so far apart is on different pages of any kernel */
    PROTECTION_READ_WRITE = 3,
    MAP_PRIVATE = 2,
    MAP_PRIVATE_ANONYMOUS = 0x22,
    KILOBYTE = 1024,
};

/* Sums and changes the working set of a process. */
static unsigned long work_through(unsigned long *words, size_t count)
{
    unsigned long sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += words[i]++;
    return sum;
}

static int read_token(int file)
{
    char token;
    return system_call(__NR_read, (long)file, &token, 1L) == 1;
}

static int write_token(int file)
{
    return write_all(file, "t", 1) == 0;
}

/* Hands the token on until it comes no more. */
static _Noreturn void pass_on(int from, int to, size_t words)
{
    unsigned long *memory = allocate(words * sizeof *memory + PAGE_BYTES);
    while (read_token(from)) {
        work_through(memory, words);
        if (!write_token(to))
            leave(1);
    }
    leave(0);
}

int context_switch(int count, char **words)
{
    long processes = count == 4 ? number_of(words[1], 0) : 0;
    long kilobytes = count == 4 ? number_of(words[2], -1) : -1;
    long rounds = count == 4 ? number_of(words[3], 0) : 0;
    if (processes < 2 || processes > PROCESSES_MAX || kilobytes < 0 || kilobytes > 1 << 20 || rounds < 1)
        return misuse(words[0]);
    size_t size = (size_t)kilobytes * KILOBYTE / sizeof(unsigned long);
    int pipes[PROCESSES_MAX][2];
    long children[PROCESSES_MAX];
    for (long i = 0; i < processes; i++) {
        long made = system_call(__NR_pipe2, pipes[i], 0L);
        if (made < 0)
            return failure(words[0], "a pipe", made);
    }
    for (long i = 1; i < processes; i++) {
        children[i] = fork_process();
        if (children[i] < 0)
            return failure(words[0], "a process", children[i]);
        if (children[i] == 0) {
            for (long other = 0; other < processes; other++) {
                if (other != i - 1)
                    system_call(__NR_close, (long)pipes[other][0]);
                if (other != i)
                    system_call(__NR_close, (long)pipes[other][1]);
            }
            pass_on(pipes[i - 1][0], pipes[i][1], size);
        }
    }
    for (long i = 0; i < processes; i++) {
        if (i != processes - 1)
            system_call(__NR_close, (long)pipes[i][0]);
        if (i)
            system_call(__NR_close, (long)pipes[i][1]);
    }
    unsigned long *memory = allocate(size * sizeof *memory + PAGE_BYTES);
    long start = 0, ok = 1;
    /* The first round is not counted: it touches everything for the first time. */
    for (long round = 0; ok && round <= rounds; round++) {
        if (round == 1)
            start = now();
        work_through(memory, size);
        ok = write_token(pipes[0][1]) && read_token(pipes[processes - 1][0]);
    }
    long elapsed = now() - start;
    /* Each ends when the one before it has. */
    system_call(__NR_close, (long)pipes[0][1]);
    for (long i = 1; i < processes; i++)
        ok &= exit_code_of(children[i]) == 0;
    system_call(__NR_close, (long)pipes[processes - 1][0]);
    for (size_t i = 0; i < size; i++)
        ok &= memory[i] == (unsigned long)rounds + 1;
    if (!ok)
        return failure(words[0], "the token was lost", 0);
    print("context %ld processes of %ld kB: %ld ns\n", processes, kilobytes, elapsed / (rounds * processes));
    return 0;
}

int page_fault(int count, char **words)
{
    long pages = count >= 3 ? number_of(words[1], 0) : 0, rounds = count >= 3 ? number_of(words[2], 0) : 0;
    if (count > 4 || pages < 1 || pages > 1 << 12 || rounds < 1)
        return misuse(words[0]);
    long file = -1, flags = MAP_PRIVATE_ANONYMOUS, bytes = pages * PAGE_BYTES;
    if (count == 4) {
        file = system_call(__NR_openat, (long)AT_CURRENT_FOLDER, words[3], (long)O_RDONLY, 0L);
        if (file < 0)
            return failure(words[0], words[3], file);
        flags = MAP_PRIVATE;
    }
    long elapsed = 0, wrong = 0;
    for (long round = 0; round < rounds; round++) {
        long memory = system_call(__NR_mmap, 0L, bytes, (long)PROTECTION_READ_WRITE, flags, file, 0L);
        if (memory < 0 && memory > -4096)
            return failure(words[0], "memory", memory);
        volatile char *touched = (volatile char *)memory;
        long start = now();
        for (long page = 0; page < pages; page++) {
            if (file >= 0)
                (void)touched[page * PAGE_BYTES];
            else
                touched[page * PAGE_BYTES] = (char)page;
        }
        elapsed += now() - start;
        for (long page = 0; page < pages; page++)
            wrong += file < 0 && touched[page * PAGE_BYTES] != (char)page;
        system_call(__NR_munmap, memory, bytes);
    }
    if (file >= 0)
        system_call(__NR_close, file);
    if (wrong)
        return failure(words[0], "a page reads wrong", 0);
    const char *kind = flags == MAP_PRIVATE ? "file" : "anonymous";
    print("fault %ld %s pages: %ld ns\n", pages, kind, elapsed / (pages * rounds));
    return 0;
}
