/* IS: ten rankings of integers by counting, with some ranks of each and the order of all at the end checked
   (RNR-94-007).

   Each thread counts its part of the keys in a table of its own; each adds up the tables for its part of the
   values. */

#include "kernel.h"
#include "numbers.h"

enum { ITERATIONS = 10, PROBES = 5, CHECKS = ITERATIONS * PROBES + 1 };

static const uint64_t SEED = 314159265;

/* In iteration i the key at a place of `probes` must have the rank given, and i more or less by `drift`, counted from
   iteration `drift_from`. */
static const struct {
    int keys_log2, values_log2, drift_from;
    int probes[PROBES], ranks[PROBES], drift[PROBES];
} problems[CLASSES] = {
    [CLASS_S] = {16, 11, 0, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, {1, 1, 1, -1, -1}},
    [CLASS_W] = {20, 16, 0, {357773, 934767, 875723, 898999, 404505}, {1249 - 2, 11698 - 2, 1039987, 1043896, 1048018},
                 {1, 1, -1, -1, -1}},
    [CLASS_A] = {23, 19, 1, {2112377, 662041, 5336171, 3642833, 4250760}, {104, 17523, 123928, 8288932, 8388264},
                 {1, 1, 1, -1, -1}},
};

struct keys {
    enum problem_class class;
    long count, values;
    int *keys, *sorted;
    int *ranks;                /* how many keys are at most each value */
    int *counts[THREADS_MAX];  /* of each thread, by value */
    long right;                /* checks that held */
    double below[THREADS_MAX]; /* keys among a thread's values */
};

static void *prepare(enum problem_class class, const struct team *team)
{
    struct keys *keys = allocate(sizeof *keys);
    keys->class = class;
    keys->count = 1L << problems[class].keys_log2;
    keys->values = 1L << problems[class].values_log2;
    keys->keys = allocate(keys->count * sizeof *keys->keys);
    keys->sorted = allocate(keys->count * sizeof *keys->sorted);
    keys->ranks = allocate(keys->values * sizeof *keys->ranks);
    for (int thread = 0; thread < team->threads; thread++)
        keys->counts[thread] = allocate(keys->values * sizeof *keys->ranks);
    return keys;
}

/* A key is a quarter of the largest value times the sum of four numbers. */
static void generate(struct keys *keys, struct range own)
{
    struct sequence sequence = sequence_from(SEED);
    sequence_skip(&sequence, 4 * own.first);
    for (long i = own.first; i < own.end; i++) {
        double sum = 0;
        for (int number = 0; number < 4; number++)
            sum += sequence_next(&sequence);
        keys->keys[i] = (int)(keys->values / 4 * sum);
    }
}

static void rank_keys(struct keys *keys, struct team *team, int thread)
{
    struct range own = team_share(team, thread, keys->count), values = team_share(team, thread, keys->values);
    int *counts = keys->counts[thread];
    memset(counts, 0, keys->values * sizeof *counts);
    for (long i = own.first; i < own.end; i++)
        counts[keys->keys[i]]++;
    team_barrier(team);
    int sum = 0;
    for (long value = values.first; value < values.end; value++) {
        for (int other = 0; other < team->threads; other++)
            sum += keys->counts[other][value];
        keys->ranks[value] = sum;
    }
    keys->below[thread] = sum;
    team_barrier(team);
    int below = 0;
    for (int other = 0; other < thread; other++)
        below += (int)keys->below[other];
    for (long value = values.first; value < values.end; value++)
        keys->ranks[value] += below;
    team_barrier(team);
}

static void check_ranks(struct keys *keys, int iteration)
{
    for (int probe = 0; probe < PROBES; probe++) {
        int key = keys->keys[problems[keys->class].probes[probe]];
        int rank = key > 0 ? keys->ranks[key - 1] : 0;
        int moved = (iteration - problems[keys->class].drift_from) * problems[keys->class].drift[probe];
        keys->right += rank == problems[keys->class].ranks[probe] + moved;
    }
}

/* Puts every key at its rank; how many pairs of neighbours of this thread's part are out of order then. */
static long sort(struct keys *keys, struct team *team, int thread)
{
    struct range own = team_share(team, thread, keys->count), values = team_share(team, thread, keys->values);
    for (long value = values.first; value < values.end; value++) {
        int place = value > 0 ? keys->ranks[value - 1] : 0;
        for (int other = 0; other < team->threads; other++) {
            int count = keys->counts[other][value];
            keys->counts[other][value] = place;
            place += count;
        }
    }
    team_barrier(team);
    for (long i = own.first; i < own.end; i++)
        keys->sorted[keys->counts[thread][keys->keys[i]]++] = keys->keys[i];
    team_barrier(team);
    long wrong = 0;
    for (long i = own.first > 0 ? own.first : 1; i < own.end; i++)
        wrong += keys->sorted[i - 1] > keys->sorted[i];
    return wrong;
}

static void start(void *state, struct team *team, int thread)
{
    struct keys *keys = state;
    generate(keys, team_share(team, thread, keys->count));
    if (thread == 0)
        keys->right = 0;
}

static void work(void *state, struct team *team, int thread)
{
    struct keys *keys = state;
    for (int iteration = 1; iteration <= team_steps(team, ITERATIONS); iteration++) {
        team_barrier(team);
        if (thread == 0) {
            keys->keys[iteration] = iteration;
            keys->keys[iteration + ITERATIONS] = (int)keys->values - iteration;
        }
        team_barrier(team);
        rank_keys(keys, team, thread);
        if (thread == 0) {
            check_ranks(keys, iteration);
            environment_step();
        }
    }
}

static void finish(void *state, struct team *team, int thread)
{
    struct keys *keys = state;
    double wrong = team_sum(team, thread, sort(keys, team, thread));
    if (thread == 0)
        keys->right += wrong == 0;
}

static int verify(void *state, const char *label)
{
    const struct keys *keys = state;
    return report_value(label, "checks that held", keys->right, CHECKS, 0);
}

const struct kernel integer_sort = {"is", "integer sort", prepare, start, work, finish, verify};
