/* Load on everything a kernel does at once: processes that fork, fault, copy on write and die; threads on a mutex and a
   barrier; signals; pipes; files written, read back from where they are stored and compared; words sent to a server that
   echoes, and compared. Every worker checks its results, and the command fails if one was wrong. */

#include "userland.h"

enum {
    PAGES = 64,
    PAGE_BYTES = 16384,
    FILE_BYTES = 1 << 20,
    CONNECTION_WORDS = 1 << 15,
    FORGET_CACHED = 4,
    THREADS = 4,
    SIGUSR1 = 10,
    PROTECTION_READ_WRITE = 3,
    MAP_SHARED_ANONYMOUS = 0x21,
};

/* What the workers tell each other and the parent: rounds done and errors found, in shared memory. */
struct tally {
    long rounds, errors;
};

/* Where the workers find what is not theirs alone. */
struct place {
    const char *folder;
    const char *address, *port; /* of a server that echoes; null without one */
};

struct worker {
    const char *name;
    /* One round with a seed; answers the number of errors. */
    long (*round)(uint64_t seed, const struct place *place);
};

/* A child changes pages that it shares with its parent until then; the parent's must stay. */
static long copy_on_write(uint64_t seed, const struct place *place)
{
    (void)place;
    long errors = 0;
    uint64_t *words = allocate((size_t)PAGES * PAGE_BYTES);
    size_t step = PAGE_BYTES / sizeof *words;
    for (size_t i = 0; i < PAGES; i++)
        words[i * step] = seed + i;
    long child = fork_process();
    if (child == 0) {
        for (size_t i = 0; i < PAGES; i++) {
            errors += words[i * step] != seed + i;
            words[i * step] = ~seed;
        }
        leave(errors != 0);
    }
    errors += child < 0 || exit_code_of(child) != 0;
    for (size_t i = 0; i < PAGES; i++)
        errors += words[i * step] != seed + i;
    system_call(__NR_munmap, words, (long)PAGES * PAGE_BYTES);
    return errors;
}

struct shared_work {
    struct mutex mutex;
    struct barrier barrier;
    long sum;
};

static void add_under_mutex(void *value)
{
    struct shared_work *work = value;
    for (int i = 0; i < 200; i++) {
        mutex_lock(&work->mutex);
        work->sum++;
        mutex_unlock(&work->mutex);
    }
    barrier_wait(&work->barrier);
}

static long threads(uint64_t seed, const struct place *place)
{
    (void)seed, (void)place;
    struct shared_work work = { .barrier = { .parties = THREADS } };
    struct thread all[THREADS];
    for (int i = 0; i < THREADS; i++)
        thread_start(&all[i], add_under_mutex, &work);
    for (int i = 0; i < THREADS; i++)
        thread_join(&all[i]);
    return work.sum != THREADS * 200;
}

/* A child that waits for ever is ended by a signal, and says so. */
static long signals(uint64_t seed, const struct place *place)
{
    (void)seed, (void)place;
    long child = fork_process();
    if (child == 0)
        for (;;)
            pause_for(1, 0);
    pause_for(0, 1000000);
    system_call(__NR_kill, child, (long)SIGUSR1);
    return exit_code_of(child) != 128 + SIGUSR1;
}

static long pipes(uint64_t seed, const struct place *place)
{
    (void)place;
    int ends[2];
    long errors = 0;
    if (system_call(__NR_pipe2, ends, 0L) < 0)
        return 1;
    long child = fork_process();
    if (child == 0) {
        uint64_t state = seed;
        for (int i = 0; i < 1000; i++) {
            uint64_t word = random_next(&state);
            write_all(ends[1], &word, sizeof word);
        }
        leave(0);
    }
    system_call(__NR_close, (long)ends[1]);
    uint64_t state = seed, word;
    long got, count = 0;
    while ((got = system_call(__NR_read, (long)ends[0], &word, (long)sizeof word)) == (long)sizeof word) {
        errors += word != random_next(&state);
        count++;
    }
    system_call(__NR_close, (long)ends[0]);
    return errors + (count != 1000) + (exit_code_of(child) != 0);
}

/* A file of pseudo-random words, written, made durable, read back from the disk and removed. */
static long files(uint64_t seed, const struct place *place)
{
    char path[PATH_BYTES], name[20] = "/load-";
    for (int i = 0; i < 8; i++)
        name[6 + i] = "0123456789abcdef"[seed >> 4 * i & 15];
    name[14] = 0;
    copy_text(copy_text(path, path + sizeof path, place->folder), path + sizeof path, name);
    size_t count = FILE_BYTES / sizeof(uint64_t);
    uint64_t *words = allocate(FILE_BYTES);
    uint64_t state = seed;
    for (size_t i = 0; i < count; i++)
        words[i] = random_next(&state);
    long errors = 0;
    long file = system_call(__NR_openat, (long)AT_CURRENT_FOLDER, path, (long)(O_RDWR | O_CREAT | O_TRUNC), 0600L);
    errors += file < 0 || write_all((int)file, words, FILE_BYTES) < 0;
    errors += system_call(__NR_fsync, file) < 0;
    /* A kernel that keeps no files in memory only has nothing to forget. */
    system_call(__NR_fadvise64, file, 0L, (long)FILE_BYTES, (long)FORGET_CACHED);
    memset(words, 0, FILE_BYTES);
    system_call(__NR_lseek, file, 0L, 0L);
    size_t got = 0;
    long part;
    while (got < FILE_BYTES && (part = system_call(__NR_read, file, (char *)words + got, FILE_BYTES - got)) > 0)
        got += (size_t)part;
    state = seed;
    for (size_t i = 0; i < count; i++)
        errors += words[i] != random_next(&state);
    system_call(__NR_close, file);
    errors += system_call(__NR_unlinkat, (long)AT_CURRENT_FOLDER, path, 0L) < 0;
    system_call(__NR_munmap, words, (long)FILE_BYTES);
    return errors;
}

/* Pseudo-random words that one process sends and the other receives, at the same time. */
static long connections(uint64_t seed, const struct place *place)
{
    long socket = open_connection(place->address, place->port);
    if (socket < 0)
        return 1;
    long child = fork_process();
    if (child == 0) {
        uint64_t state = seed, block[512];
        long error = 0;
        for (int sent = 0; sent < CONNECTION_WORDS && error == 0; sent += 512) {
            for (int i = 0; i < 512; i++)
                block[i] = random_next(&state);
            error = write_all((int)socket, block, sizeof block);
        }
        end_sending(socket);
        leave(error != 0);
    }
    uint64_t state = seed, block[512];
    long errors = 0, got, count = 0;
    size_t filled = 0;
    while ((got = system_call(__NR_read, socket, (char *)block + filled, sizeof block - filled)) > 0) {
        filled += (size_t)got;
        if (filled < sizeof block)
            continue;
        for (int i = 0; i < 512; i++)
            errors += block[i] != random_next(&state);
        count += 512;
        filled = 0;
    }
    system_call(__NR_close, socket);
    return errors + (got != 0) + (count != CONNECTION_WORDS) + (exit_code_of(child) != 0);
}

static const struct worker workers[] = {
    { "copy on write", copy_on_write },
    { "threads", threads },
    { "signals", signals },
    { "pipes", pipes },
    { "files", files },
    { "connections", connections }, /* the last one: left out without a server */
};

enum { WORKERS = sizeof workers / sizeof *workers };

static void work(const struct worker *worker, struct tally *tally, long until, const struct place *place)
{
    uint64_t seed = (uint64_t)(worker - workers) + 1;
    while (now() < until) {
        tally->errors += worker->round(random_next(&seed), place);
        tally->rounds++;
    }
    leave(tally->errors != 0);
}

int load(int count, char **words)
{
    long seconds = count == 3 || count == 5 ? number_of(words[1], 0) : 0;
    if (seconds == 0)
        return misuse("load");
    struct place place = { .folder = words[2] };
    if (count == 5)
        place.address = words[3], place.port = words[4];
    int running = place.address ? WORKERS : WORKERS - 1;
    struct tally *tallies = (struct tally *)system_call(__NR_mmap, 0L, (long)PAGE_BYTES, (long)PROTECTION_READ_WRITE,
                                                        (long)MAP_SHARED_ANONYMOUS, -1L, 0L);
    long until = now() + seconds * 1000000000L;
    long children[WORKERS];
    for (int i = 0; i < running; i++) {
        children[i] = fork_process();
        if (children[i] == 0)
            work(&workers[i], &tallies[i], until, &place);
    }
    int code = 0;
    for (int i = 0; i < running; i++) {
        code |= exit_code_of(children[i]);
        print("%-14s %8ld rounds %4ld errors\n", workers[i].name, tallies[i].rounds, tallies[i].errors);
    }
    return code != 0;
}
