/* Instances: reading them, and running their rounds. */

#include "instances.h"

static const struct kernel *const kernels[] = {
    &embarrassingly_parallel, &integer_sort,         &conjugate_gradient, &multigrid,
    &fourier_transform,       &lower_upper,          &scalar_pentadiagonal, &block_tridiagonal,
    &unstructured_adaptive,
};
enum { KERNELS = sizeof kernels / sizeof *kernels, ROUNDS_MAX = 1000000, SPINS_MAX = 1000000000, STEPS_MAX = 1000000 };

static const char letters[] = "SWA";

static void usage(const char *name)
{
    print("usage: %s KERNEL CLASS [--threads N] [--rounds N] [--spins N] [--steps N] [+ KERNEL CLASS ...]\n", name);
    for (int kernel = 0; kernel < KERNELS; kernel++)
        print("  %s  %s\n", kernels[kernel]->name, kernels[kernel]->title);
    print("  classes S, W and A\n");
}

static int refuse(const char *name, const char *what, const char *found)
{
    print("%s: %s, found `%s`\n", name, what, found);
    usage(name);
    return 0;
}

/* A number between the bounds, or -1. */
static long number(const char *text, long least, long most)
{
    long value = 0;
    if (!*text)
        return -1;
    for (; *text >= '0' && *text <= '9' && value <= most; text++)
        value = value * 10 + (*text - '0');
    return *text || value < least || value > most ? -1 : value;
}

static int read_option(struct instance *instance, const char *name, const char *option, const char *value)
{
    const struct {
        const char *option, *expected;
        long *to, least, most;
    } options[] = {
        {"--threads", "`--threads`: expected 1 to 64", &instance->threads, 1, THREADS_MAX},
        {"--rounds", "`--rounds`: expected 1 to 1000000", &instance->rounds, 1, ROUNDS_MAX},
        {"--spins", "`--spins`: expected 0 to 1000000000", &instance->spins, 0, SPINS_MAX},
        {"--steps", "`--steps`: expected 1 to 1000000", &instance->steps, 1, STEPS_MAX},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(option, options[i].option) == 0) {
            *options[i].to = number(value, options[i].least, options[i].most);
            return *options[i].to >= 0 || refuse(name, options[i].expected, value);
        }
    return refuse(name, "expected an option", option);
}

/* The words of one instance, without what separates it from others. */
static int read_one(struct instance *instance, const char *name, int count, const char *const *words)
{
    if (count < 1)
        return refuse(name, "expected a kernel", "");
    for (int kernel = 0; kernel < KERNELS; kernel++)
        if (strcmp(words[0], kernels[kernel]->name) == 0)
            instance->kernel = kernels[kernel];
    if (!instance->kernel)
        return refuse(name, "expected a kernel", words[0]);
    int class = CLASSES;
    for (int i = 0; count > 1 && i < CLASSES; i++)
        if (words[1][0] == letters[i] && !words[1][1])
            class = i;
    if (class == CLASSES)
        return refuse(name, "expected a class", count > 1 ? words[1] : "");
    instance->class = class;
    instance->threads = 1;
    instance->rounds = 1;
    instance->spins = SPINS_DEFAULT;
    for (int i = 2; i < count; i += 2)
        if (!read_option(instance, name, words[i], i + 1 < count ? words[i + 1] : ""))
            return 0;
    return 1;
}

/* `KERNEL.CLASS`, and the instance's number if there are several. */
static void label(struct instance *instance, int index, int count)
{
    char *place = instance->label;
    if (count > 1) {
        if (index >= 10)
            *place++ = '0' + index / 10;
        *place++ = '0' + index % 10;
        *place++ = ' ';
    }
    for (const char *text = instance->kernel->name; *text; text++)
        *place++ = *text;
    *place++ = '.';
    *place++ = letters[instance->class];
    *place = 0;
}

int instances_read(struct instances *instances, const char *name, int count, const char *const *words)
{
    for (int first = 0, end; first <= count; first = end + 1) {
        for (end = first; end < count && strcmp(words[end], "+") != 0; end++)
            ;
        if (instances->count == INSTANCES_MAX)
            return refuse(name, "expected at most 16 instances", "+");
        struct instance *instance = &instances->all[instances->count++];
        if (!read_one(instance, name, end - first, words + first))
            return 0;
        instances->threads += instance->threads;
    }
    if (instances->threads > THREADS_MAX)
        return refuse(name, "expected at most 64 threads in all", words[0]);
    for (int i = 0; i < instances->count; i++)
        label(&instances->all[i], i, instances->count);
    return 1;
}

void instances_prepare(struct instances *instances)
{
    for (int i = 0; i < instances->count; i++) {
        struct instance *instance = &instances->all[i];
        instance->team = allocate(sizeof *instance->team);
        team_initialize(instance->team, instance->threads, instance->spins, instance->steps);
        instance->state = instance->kernel->prepare(instance->class, instance->team);
    }
}

static void report(struct instance *instance, uint64_t ended_ns)
{
    /* A part of a run has no value that is specified. */
    int wrong = instance->steps ? 0 : instance->kernel->verify(instance->state, instance->label);
    double seconds = (double)(ended_ns - instance->began_ns) / 1e9;
    const char *verdict = wrong ? "NOT verified" : instance->steps ? "steps done" : "verified";
    const char *plural = instance->threads == 1 ? "" : "s";
    print("%s: %s, %ld thread%s, %.6f s\n", instance->label, verdict, instance->threads, plural, seconds);
    instance->wrong += wrong;
}

int instances_find(const struct instances *instances, long *number)
{
    int index = 0;
    for (; index < instances->count && *number >= instances->all[index].threads; index++)
        *number -= instances->all[index].threads;
    return index < instances->count ? index : -1;
}

/* Has a thread do a part of a round, if there is one of the kind; comes back when all threads have done it. */
static void in_phase(const struct instance *instance, void (*phase)(void *, struct team *, int), long number)
{
    if (phase) {
        phase(instance->state, instance->team, (int)number);
        team_barrier(instance->team);
    }
}

void instances_work(struct instances *instances, long number)
{
    int index = instances_find(instances, &number);
    if (index < 0)
        return;
    struct instance *instance = &instances->all[index];
    for (long round = 0; round < instance->rounds; round++) {
        uint64_t ended_ns = 0;
        team_barrier(instance->team);
        in_phase(instance, instance->kernel->start, number);
        if (number == 0)
            instance->began_ns = environment_nanoseconds();
        in_phase(instance, instance->kernel->work, number);
        if (number == 0)
            ended_ns = environment_nanoseconds();
        in_phase(instance, instance->kernel->finish, number);
        if (number == 0)
            report(instance, ended_ns);
    }
}

int instances_verdict(const struct instances *instances)
{
    for (int i = 0; i < instances->count; i++)
        if (instances->all[i].wrong)
            return 1;
    return 0;
}
