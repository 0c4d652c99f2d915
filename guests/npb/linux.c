/* A program on Linux, of any architecture: threads, the clock, and the count of steps that `sidestep gang run` reads.

   A program called `npb-KERNEL` has the kernel's name from there, and its class as the first argument. */

#include "environment.h"
#include "instances.h"

#include <asm/unistd.h>

#ifdef OBSERVED
#include "observer.h"

#include <stdlib.h>
#endif
#ifdef OFFERED
#include "offer.h"
#endif

enum { CLOCK_MONOTONIC = 1, AT_FDCWD = -100, O_WRONLY_CREATE = 0101, MODE = 0644, WORDS_MAX = 256 };

static struct instances instances;
static long progress_file = -1;
static uint64_t steps;

uint64_t environment_nanoseconds(void)
{
    long time[2];
    system_call(__NR_clock_gettime, (long)CLOCK_MONOTONIC, time);
    return time[0] * UINT64_C(1000000000) + time[1];
}

void environment_yield(void)
{
    system_call(__NR_sched_yield);
}

/* Of all instances together. A count that cannot be written is a measurement lost, and no more. */
void environment_step(void)
{
    if (progress_file < 0)
        return;
    uint64_t count = __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
    system_call(__NR_pwrite64, progress_file, &count, sizeof count, 0L);
}

/* What follows `beginning` in a text that begins so, or nothing. */
static const char *behind(const char *text, const char *beginning)
{
    while (*beginning)
        if (*text++ != *beginning++)
            return NULL;
    return text;
}

static void open_progress(const char *name, char **environment)
{
    for (; *environment; environment++) {
        const char *path = behind(*environment, "SIDESTEP_PROGRESS=");
        if (!path)
            continue;
        progress_file = system_call(__NR_openat, (long)AT_FDCWD, path, (long)O_WRONLY_CREATE, (long)MODE);
        if (progress_file < 0) {
            print("%s: SIDESTEP_PROGRESS: `%s` cannot be opened: error %ld\n", name, path, -progress_file);
            leave(2);
        }
    }
}

static void enter(void *number)
{
#ifdef OBSERVED
    observer_begin((long)number);
#endif
    instances_work(&instances, (long)number);
}

#ifdef OBSERVED
static int instance_of(long number)
{
    return instances_find(&instances, &number);
}

static void write_sharing(const char *name)
{
    const char *path = getenv("NPB_SHARING");
    if (path && !observer_write(path, instances.threads, instance_of)) {
        print("%s: NPB_SHARING: `%s` cannot be written\n", name, path);
        leave(2);
    }
}
#endif

int main(int count, char **values, char **environment)
{
    const char *words[WORDS_MAX], *name = values[0], *kernel = NULL;
    int length = 0;
    for (const char *place = values[0]; *place; place++)
        if (*place == '/')
            name = place + 1;
    kernel = behind(name, "npb-");
    if (kernel)
        words[length++] = kernel;
    for (int i = 1; i < count && length < WORDS_MAX; i++)
        words[length++] = values[i];
    if (!instances_read(&instances, name, length, words))
        return 2;
    open_progress(name, environment);
    instances_prepare(&instances);
#ifdef OFFERED
    if (!offer_begin(name, &instances))
        return 2;
#endif
    struct thread threads[THREADS_MAX];
    for (long number = 1; number < instances.threads; number++)
        thread_start(&threads[number], enter, (void *)number);
    enter(0);
    for (long number = 1; number < instances.threads; number++)
        thread_join(&threads[number]);
#ifdef OBSERVED
    write_sharing(name);
#endif
    return instances_verdict(&instances);
}
