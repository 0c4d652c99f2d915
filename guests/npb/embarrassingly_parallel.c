/* EP: pairs of Gaussian deviates from uniform random numbers, by the polar method (RNR-94-007).

   Pairs are worked on in batches, each of which enters the sequence at its place, so that no thread depends on another
   until the sums of all are added up. */

#include "kernel.h"
#include "numbers.h"

enum { BATCH = 1 << 13, ANNULI = 10, SUMS = 2 + ANNULI };

static const uint64_t SEED = 271828183;

static const struct {
    int pairs_log2;
    double x, y;
} problems[CLASSES] = {
    [CLASS_S] = {24, -3.247834652034740e3, -6.958407078382297e3},
    [CLASS_W] = {25, -2.863319731645753e3, -6.320053679109499e3},
    [CLASS_A] = {28, -4.295875165629892e3, -1.580732573678431e4},
};

struct deviates {
    enum problem_class class;
    double sums[SUMS]; /* of both coordinates, and how many pairs fell into each annulus of a square */
};

static void *prepare(enum problem_class class, const struct team *team)
{
    (void)team;
    struct deviates *deviates = allocate(sizeof *deviates);
    deviates->class = class;
    return deviates;
}

static void add_batch(long batch, double sums[SUMS])
{
    struct sequence sequence = sequence_from(SEED);
    sequence_skip(&sequence, 2 * BATCH * (uint64_t)batch);
    for (int pair = 0; pair < BATCH; pair++) {
        double x = 2 * sequence_next(&sequence) - 1, y = 2 * sequence_next(&sequence) - 1;
        double square = x * x + y * y;
        if (square > 1)
            continue;
        double factor = square_root(-2 * natural_logarithm(square) / square);
        x *= factor;
        y *= factor;
        sums[0] += x;
        sums[1] += y;
        double larger = magnitude(x) > magnitude(y) ? magnitude(x) : magnitude(y);
        sums[2 + (int)larger]++;
    }
}

static void work(void *state, struct team *team, int thread)
{
    struct deviates *deviates = state;
    double sums[SUMS] = {0};
    long all = (1L << problems[deviates->class].pairs_log2) / BATCH;
    struct range batches = team_share(team, thread, team_steps(team, all));
    for (long batch = batches.first; batch < batches.end; batch++) {
        add_batch(batch, sums);
        environment_step();
    }
    team_sums(team, thread, sums, SUMS);
    if (thread == 0)
        memcpy(deviates->sums, sums, sizeof sums);
}

static int verify(void *state, const char *label)
{
    const struct deviates *deviates = state;
    double pairs = 0;
    for (int annulus = 0; annulus < ANNULI; annulus++)
        pairs += deviates->sums[2 + annulus];
    print("%s: %ld Gaussian pairs\n", label, (long)pairs);
    return report_value(label, "sum of x", deviates->sums[0], problems[deviates->class].x, 1e-8) +
           report_value(label, "sum of y", deviates->sums[1], problems[deviates->class].y, 1e-8);
}

const struct kernel embarrassingly_parallel = {"ep", "embarrassingly parallel", prepare, NULL, work, NULL, verify};
