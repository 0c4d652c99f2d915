/* CG: an eigenvalue of a random sparse matrix by inverse iteration, each step a solution by conjugate gradients
   (RNR-94-007).

   The matrix is a weighted sum of outer products of sparse random vectors. Every thread makes the rows that it works
   on, from a list of the vectors that one thread has drawn. */

#include "kernel.h"
#include "numbers.h"

enum { STEPS = 25, VECTOR_MAX = 16 };

static const uint64_t SEED = 314159265;
static const double CONDITION = 0.1;

static const struct {
    int order, nonzeros, iterations;
    double shift, eigenvalue;
} problems[CLASSES] = {
    [CLASS_S] = {1400, 7, 15, 10, 8.5971775078648},
    [CLASS_W] = {7000, 8, 15, 12, 10.362595087124},
    [CLASS_A] = {14000, 11, 15, 20, 17.130235054029},
};

/* A sparse vector of the sum: distinct places and their values. */
struct vector {
    int length;
    int places[VECTOR_MAX];
    double values[VECTOR_MAX];
};

struct system {
    enum problem_class class;
    long order;
    struct vector *vectors;
    /* The elements of row i are `begins[i]` to `ends[i]`, by column; behind them is room for others. */
    int *begins, *ends, *columns;
    double *values;
    double *x, *z, *p, *q, *r;
    double eigenvalue;
};

static void draw_vectors(struct system *system)
{
    int nonzeros = problems[system->class].nonzeros;
    double places = 1;
    while (places < system->order)
        places *= 2;
    struct sequence sequence = sequence_from(SEED);
    sequence_next(&sequence); /* the specification draws one before the matrix */
    for (long number = 0; number < system->order; number++) {
        struct vector *vector = &system->vectors[number];
        int length = 0, own = -1;
        while (length < nonzeros) {
            double value = sequence_next(&sequence);
            int place = (int)(places * sequence_next(&sequence));
            int is_new = place < system->order;
            for (int i = 0; i < length && is_new; i++)
                is_new = vector->places[i] != place;
            if (!is_new)
                continue;
            if (place == number)
                own = length;
            vector->places[length] = place;
            vector->values[length++] = value;
        }
        /* The element of the vector's own number is a half. */
        if (own < 0)
            own = length++;
        vector->places[own] = (int)number;
        vector->values[own] = 0.5;
        vector->length = length;
    }
}

static void *prepare(enum problem_class class, const struct team *team)
{
    (void)team;
    struct system *system = allocate(sizeof *system);
    long order = problems[class].order;
    system->class = class;
    system->order = order;
    system->vectors = allocate(order * sizeof *system->vectors);
    system->begins = allocate((order + 1) * sizeof *system->begins);
    system->ends = allocate(order * sizeof *system->ends);
    draw_vectors(system);
    /* Room for a row: as much as all vectors that have an element there could need, and the diagonal. */
    for (long number = 0; number < order; number++) {
        const struct vector *vector = &system->vectors[number];
        for (int i = 0; i < vector->length; i++)
            system->begins[vector->places[i] + 1] += vector->length;
    }
    for (long row = 0; row < order; row++)
        system->begins[row + 1] += system->begins[row] + 1;
    system->columns = allocate(system->begins[order] * sizeof *system->columns);
    system->values = allocate(system->begins[order] * sizeof *system->values);
    double **all[] = {&system->x, &system->z, &system->p, &system->q, &system->r};
    for (int i = 0; i < 5; i++)
        *all[i] = allocate(order * sizeof(double));
    return system;
}

/* Adds to an element of a row, whose columns stay in order. */
static void add_element(struct system *system, long row, int column, double value)
{
    int place = system->ends[row];
    while (place > system->begins[row] && system->columns[place - 1] > column)
        place--;
    if (place > system->begins[row] && system->columns[place - 1] == column) {
        system->values[place - 1] += value;
        return;
    }
    for (int i = system->ends[row]++; i > place; i--) {
        system->columns[i] = system->columns[i - 1];
        system->values[i] = system->values[i - 1];
    }
    system->columns[place] = column;
    system->values[place] = value;
}

static void make_rows(struct system *system, struct range rows)
{
    for (long row = rows.first; row < rows.end; row++)
        system->ends[row] = system->begins[row];
    double ratio = exponential(natural_logarithm(CONDITION) / system->order), size = 1;
    for (long number = 0; number < system->order; number++, size *= ratio) {
        const struct vector *vector = &system->vectors[number];
        for (int i = 0; i < vector->length; i++) {
            long row = vector->places[i];
            if (row < rows.first || row >= rows.end)
                continue;
            for (int j = 0; j < vector->length; j++)
                add_element(system, row, vector->places[j], vector->values[i] * vector->values[j] * size);
        }
    }
    for (long row = rows.first; row < rows.end; row++)
        add_element(system, row, (int)row, CONDITION - problems[system->class].shift);
}

static double dot(struct team *team, int thread, struct range rows, const double *left, const double *right)
{
    double sum = 0;
    for (long i = rows.first; i < rows.end; i++)
        sum += left[i] * right[i];
    return team_sum(team, thread, sum);
}

/* z near the solution of A z = x, by so many steps. */
static void solve(struct system *system, struct team *team, int thread, struct range rows)
{
    double *restrict x = system->x, *restrict z = system->z, *restrict p = system->p, *restrict q = system->q,
                     *restrict r = system->r;
    for (long i = rows.first; i < rows.end; i++) {
        z[i] = 0;
        r[i] = p[i] = x[i];
    }
    double rho = dot(team, thread, rows, r, r);
    for (int step = 0; step < STEPS; step++) {
        for (long row = rows.first; row < rows.end; row++) {
            double sum = 0;
            for (int i = system->begins[row]; i < system->ends[row]; i++)
                sum += system->values[i] * p[system->columns[i]];
            q[row] = sum;
        }
        double alpha = rho / dot(team, thread, rows, p, q), before = rho;
        for (long i = rows.first; i < rows.end; i++) {
            z[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rho = dot(team, thread, rows, r, r);
        for (long i = rows.first; i < rows.end; i++)
            p[i] = r[i] + rho / before * p[i];
        team_barrier(team);
    }
}

static void start(void *state, struct team *team, int thread)
{
    struct system *system = state;
    struct range rows = team_share(team, thread, system->order);
    make_rows(system, rows);
    for (long i = rows.first; i < rows.end; i++)
        system->x[i] = 1;
}

static void work(void *state, struct team *team, int thread)
{
    struct system *system = state;
    struct range rows = team_share(team, thread, system->order);
    for (int iteration = 0; iteration < team_steps(team, problems[system->class].iterations); iteration++) {
        solve(system, team, thread, rows);
        double xz = dot(team, thread, rows, system->x, system->z);
        double scale = 1 / square_root(dot(team, thread, rows, system->z, system->z));
        for (long i = rows.first; i < rows.end; i++)
            system->x[i] = scale * system->z[i];
        if (thread == 0) {
            system->eigenvalue = problems[system->class].shift + 1 / xz;
            environment_step();
        }
    }
}

static int verify(void *state, const char *label)
{
    const struct system *system = state;
    return report_value(label, "eigenvalue", system->eigenvalue, problems[system->class].eigenvalue, 1e-10);
}

const struct kernel conjugate_gradient = {"cg", "conjugate gradient", prepare, start, work, NULL, verify};
