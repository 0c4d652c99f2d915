/* MG: V-cycles for the Poisson equation on a periodic cube; the norm of the residual is checked (RNR-94-007).

   The four operators weigh the 27 points around a point by their distance: itself, six faces, twelve edges, eight
   corners. Threads share the planes of each grid; on grids with fewer planes than threads some have none. */

#include "kernel.h"
#include "numbers.h"

enum { CHARGES = 10, ITERATIONS = 4, LEVELS_MAX = 8, SIDE_MAX = 1 << LEVELS_MAX };

static const uint64_t SEED = 314159265;

static const struct {
    int levels;
    double norm;
} problems[CLASSES] = {
    [CLASS_S] = {5, 0.5307707005734e-4},
    [CLASS_W] = {7, 0.6467329375339e-5},
    [CLASS_A] = {8, 0.2433365309069e-5},
};

/* By distance: the point, faces, edges, corners. */
typedef const double weights[4];
static weights RESIDUAL = {-8.0 / 3, 0, 1.0 / 6, 1.0 / 12};
static weights SMOOTHER = {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};
static weights RESTRICTION = {1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16};

/* A point with a random number as its charge is chosen by. */
struct candidate {
    double number;
    long place;
};

/* The largest numbers first; or the smallest, when numbers are taken with the other sign. */
struct ranking {
    struct candidate best[CHARGES];
    int length;
};

struct cycle {
    enum problem_class class;
    int levels;
    double *solutions[LEVELS_MAX + 1], *residuals[LEVELS_MAX + 1]; /* grid l has a side of 2^l points */
    double *right;
    struct ranking largest[THREADS_MAX], smallest[THREADS_MAX];
    double norm;
};

static void *prepare(enum problem_class class, const struct team *team)
{
    (void)team;
    struct cycle *cycle = allocate(sizeof *cycle);
    cycle->class = class;
    cycle->levels = problems[class].levels;
    for (int level = 1; level <= cycle->levels; level++) {
        cycle->solutions[level] = allocate(sizeof(double) << 3 * level);
        cycle->residuals[level] = allocate(sizeof(double) << 3 * level);
    }
    cycle->right = allocate(sizeof(double) << 3 * cycle->levels);
    return cycle;
}

/* A row of a grid, periodic in y and z. */
static double *row(double *grid, long side, long y, long z)
{
    long mask = side - 1;
    return grid + ((z & mask) * side + (y & mask)) * side;
}

/* For each x of a row what its neighbours off the row add up to: those at distance one in y or z, and those at distance
   one in both. A column before the first and one behind the last close the period. */
struct sums {
    double near[SIDE_MAX + 2], far[SIDE_MAX + 2], own[SIDE_MAX + 2];
};

static void add_up(struct sums *sums, double *grid, long side, long y, long z)
{
    const double *own = row(grid, side, y, z);
    const double *a = row(grid, side, y - 1, z), *b = row(grid, side, y + 1, z);
    const double *c = row(grid, side, y, z - 1), *d = row(grid, side, y, z + 1);
    const double *e = row(grid, side, y - 1, z - 1), *f = row(grid, side, y - 1, z + 1);
    const double *g = row(grid, side, y + 1, z - 1), *h = row(grid, side, y + 1, z + 1);
    for (long x = 0; x < side; x++) {
        sums->own[x + 1] = own[x];
        sums->near[x + 1] = a[x] + b[x] + c[x] + d[x];
        sums->far[x + 1] = e[x] + f[x] + g[x] + h[x];
    }
    double *all[] = {sums->own, sums->near, sums->far};
    for (int i = 0; i < 3; i++) {
        all[i][0] = all[i][side];
        all[i][side + 1] = all[i][1];
    }
}

/* The weighted sum of the points around number `x` of a row. */
static inline double weigh(const struct sums *sums, weights by, long x)
{
    double faces = sums->own[x] + sums->own[x + 2] + sums->near[x + 1];
    double edges = sums->near[x] + sums->near[x + 2] + sums->far[x + 1];
    double corners = sums->far[x] + sums->far[x + 2];
    return by[0] * sums->own[x + 1] + by[1] * faces + by[2] * edges + by[3] * corners;
}

/* The residual: right - A solution. */
static void subtract(struct team *team, int thread, long side, double *solution, double *right, double *residual)
{
    struct sums sums;
    struct range planes = team_share(team, thread, side);
    for (long z = planes.first; z < planes.end; z++)
        for (long y = 0; y < side; y++) {
            add_up(&sums, solution, side, y, z);
            const double *from = row(right, side, y, z);
            double *to = row(residual, side, y, z);
            for (long x = 0; x < side; x++)
                to[x] = from[x] - weigh(&sums, RESIDUAL, x);
        }
    team_barrier(team);
}

/* A better solution: solution + S residual. */
static void smooth(struct team *team, int thread, long side, double *residual, double *solution)
{
    struct sums sums;
    struct range planes = team_share(team, thread, side);
    for (long z = planes.first; z < planes.end; z++)
        for (long y = 0; y < side; y++) {
            add_up(&sums, residual, side, y, z);
            double *to = row(solution, side, y, z);
            for (long x = 0; x < side; x++)
                to[x] += weigh(&sums, SMOOTHER, x);
        }
    team_barrier(team);
}

/* Coarse point c is around fine point 2c + 1. */
static void restrict_to(struct team *team, int thread, long side, double *fine, double *coarse)
{
    struct sums sums;
    struct range planes = team_share(team, thread, side);
    for (long z = planes.first; z < planes.end; z++)
        for (long y = 0; y < side; y++) {
            add_up(&sums, fine, 2 * side, 2 * y + 1, 2 * z + 1);
            double *to = row(coarse, side, y, z);
            for (long x = 0; x < side; x++)
                to[x] = weigh(&sums, RESTRICTION, 2 * x + 1);
        }
    team_barrier(team);
}

/* Adds the coarse grid (of half the side) to the fine one: a fine point between coarse ones gets their mean. */
static void prolong(struct team *team, int thread, long side, double *coarse, double *fine)
{
    double mean[SIDE_MAX / 2 + 1];
    long half = side / 2;
    struct range planes = team_share(team, thread, side);
    for (long z = planes.first; z < planes.end; z++)
        for (long y = 0; y < side; y++) {
            /* The coarse rows below and above; the same one for a fine row that has its own. */
            long below_y = (y + side - 1) / 2, above_y = below_y + 1 - (y & 1);
            long below_z = (z + side - 1) / 2, above_z = below_z + 1 - (z & 1);
            const double *a = row(coarse, half, below_y, below_z), *b = row(coarse, half, above_y, below_z);
            const double *c = row(coarse, half, below_y, above_z), *d = row(coarse, half, above_y, above_z);
            for (long x = 0; x < half; x++)
                mean[x + 1] = (a[x] + b[x] + c[x] + d[x]) / 4;
            mean[0] = mean[half];
            double *to = row(fine, side, y, z);
            for (long x = 0; x < half; x++) {
                to[2 * x] += (mean[x] + mean[x + 1]) / 2;
                to[2 * x + 1] += mean[x + 1];
            }
        }
    team_barrier(team);
}

static void clear(struct team *team, int thread, long side, double *grid)
{
    struct range planes = team_share(team, thread, side);
    memset(grid + planes.first * side * side, 0, (planes.end - planes.first) * side * side * sizeof *grid);
    team_barrier(team);
}

static void consider(struct ranking *ranking, double number, long place)
{
    int at = ranking->length;
    if (at == CHARGES && number <= ranking->best[CHARGES - 1].number)
        return;
    if (at < CHARGES)
        ranking->length++;
    else
        at--;
    for (; at > 0 && ranking->best[at - 1].number < number; at--)
        ranking->best[at] = ranking->best[at - 1];
    ranking->best[at] = (struct candidate){number, place};
}

static void merge(struct ranking *ranking, const struct ranking *other)
{
    for (int i = 0; i < other->length; i++)
        consider(ranking, other->best[i].number, other->best[i].place);
}

/* Charges of +1 where the ten largest random numbers fall, and of -1 where the ten smallest do. */
static void charge(struct cycle *cycle, struct team *team, int thread)
{
    long side = 1L << cycle->levels;
    struct range planes = team_share(team, thread, side);
    struct sequence sequence = sequence_from(SEED);
    sequence_skip(&sequence, planes.first * side * side);
    cycle->largest[thread].length = cycle->smallest[thread].length = 0;
    for (long place = planes.first * side * side; place < planes.end * side * side; place++) {
        double number = sequence_next(&sequence);
        consider(&cycle->largest[thread], number, place);
        consider(&cycle->smallest[thread], -number, place);
    }
    clear(team, thread, side, cycle->right);
    if (thread == 0) {
        for (int other = 1; other < team->threads; other++) {
            merge(&cycle->largest[0], &cycle->largest[other]);
            merge(&cycle->smallest[0], &cycle->smallest[other]);
        }
        for (int i = 0; i < CHARGES; i++) {
            cycle->right[cycle->largest[0].best[i].place] = 1;
            cycle->right[cycle->smallest[0].best[i].place] = -1;
        }
    }
    team_barrier(team);
}

/* Down to the coarsest grid with the residual, and up again with a correction at each level. */
static void descend_and_ascend(struct cycle *cycle, struct team *team, int thread)
{
    for (int level = cycle->levels; level > 1; level--)
        restrict_to(team, thread, 1L << (level - 1), cycle->residuals[level], cycle->residuals[level - 1]);
    clear(team, thread, 2, cycle->solutions[1]);
    smooth(team, thread, 2, cycle->residuals[1], cycle->solutions[1]);
    for (int level = 2; level <= cycle->levels; level++) {
        long side = 1L << level;
        double *solution = cycle->solutions[level], *residual = cycle->residuals[level];
        if (level < cycle->levels)
            clear(team, thread, side, solution);
        prolong(team, thread, side, cycle->solutions[level - 1], solution);
        /* Only the points of its own planes that a thread reads of `residual` are written in this step. */
        subtract(team, thread, side, solution, level < cycle->levels ? residual : cycle->right, residual);
        smooth(team, thread, side, residual, solution);
    }
}

static void start(void *state, struct team *team, int thread)
{
    struct cycle *cycle = state;
    charge(cycle, team, thread);
    clear(team, thread, 1L << cycle->levels, cycle->solutions[cycle->levels]);
}

static void work(void *state, struct team *team, int thread)
{
    struct cycle *cycle = state;
    long side = 1L << cycle->levels;
    double *solution = cycle->solutions[cycle->levels], *residual = cycle->residuals[cycle->levels];
    subtract(team, thread, side, solution, cycle->right, residual);
    for (int iteration = 0; iteration < team_steps(team, ITERATIONS); iteration++) {
        descend_and_ascend(cycle, team, thread);
        subtract(team, thread, side, solution, cycle->right, residual);
        if (thread == 0)
            environment_step();
    }
    struct range planes = team_share(team, thread, side);
    double square = 0;
    for (long i = planes.first * side * side; i < planes.end * side * side; i++)
        square += residual[i] * residual[i];
    square = team_sum(team, thread, square);
    if (thread == 0)
        cycle->norm = square_root(square / ((double)side * side * side));
}

static int verify(void *state, const char *label)
{
    const struct cycle *cycle = state;
    return report_value(label, "norm of the residual", cycle->norm, problems[cycle->class].norm, 1e-8);
}

const struct kernel multigrid = {"mg", "multigrid", prepare, start, work, NULL, verify};
