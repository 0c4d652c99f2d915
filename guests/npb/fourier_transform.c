/* FT: a partial differential equation solved by a Fourier transform in three dimensions and its inverse for each of six
   times, with a checksum of each solution (RNR-94-007).

   Threads share planes of constant z for the transforms along x and y, and rows of constant y for those along z. */

#include "kernel.h"
#include "numbers.h"

enum { TIMES = 6, LENGTH_MAX = 256, SAMPLES = 1024 };

static const uint64_t SEED = 314159265;
static const double ALPHA = 1e-6;

struct complex {
    double real, imaginary;
};

static const struct {
    long sides[3]; /* of x, y, z */
    struct complex checksums[TIMES];
} problems[CLASSES] = {
    [CLASS_S] = {{64, 64, 64},
                 {{5.546087004964e2, 4.845363331978e2},
                  {5.546385409189e2, 4.865304269511e2},
                  {5.546148406171e2, 4.883910722336e2},
                  {5.545423607415e2, 4.901273169046e2},
                  {5.544255039624e2, 4.917475857993e2},
                  {5.542683411902e2, 4.932597244941e2}}},
    [CLASS_W] = {{128, 128, 32},
                 {{5.673612178944e2, 5.293246849175e2},
                  {5.631436885271e2, 5.282149986629e2},
                  {5.594024089970e2, 5.270996558037e2},
                  {5.560698047020e2, 5.260027904925e2},
                  {5.530898991250e2, 5.249400845633e2},
                  {5.504159734538e2, 5.239212247086e2}}},
    [CLASS_A] = {{256, 256, 128},
                 {{5.046735008193e2, 5.114047905510e2},
                  {5.059412319734e2, 5.098809666433e2},
                  {5.069376896287e2, 5.098144042213e2},
                  {5.077892868474e2, 5.101336130759e2},
                  {5.085233095391e2, 5.104914655194e2},
                  {5.091487099959e2, 5.107917842803e2}}},
};

struct field {
    enum problem_class class;
    const long *sides;
    struct complex *spectrum, *solution;
    struct complex *roots[3];  /* of unity, along each side */
    double *decay[3];          /* along each side: what a frequency is multiplied by from one time to the next */
    struct complex checksums[TIMES];
};

static void *prepare(enum problem_class class, const struct team *team)
{
    (void)team;
    struct field *field = allocate(sizeof *field);
    field->class = class;
    field->sides = problems[class].sides;
    long points = field->sides[0] * field->sides[1] * field->sides[2];
    field->spectrum = allocate(points * sizeof *field->spectrum);
    field->solution = allocate(points * sizeof *field->solution);
    for (int axis = 0; axis < 3; axis++) {
        long side = field->sides[axis];
        field->roots[axis] = allocate(side * sizeof(struct complex));
        field->decay[axis] = allocate(side * sizeof(double));
        for (long k = 0; k < side; k++) {
            struct complex *root = &field->roots[axis][k];
            root_of_unity(k, side, &root->real, &root->imaginary);
            double frequency = k < side / 2 ? k : k - side;
            field->decay[axis][k] = exponential(-4 * ALPHA * PI * PI * frequency * frequency);
        }
    }
    return field;
}

static inline struct complex times(struct complex left, struct complex right)
{
    return (struct complex){left.real * right.real - left.imaginary * right.imaginary,
                            left.real * right.imaginary + left.imaginary * right.real};
}

/* The transform of a line, unscaled; `sign` is that of the exponent. Stockham's order: each of the log2(length) passes
   goes from one buffer to the other, so that nothing need be reversed. Where the result lies is answered. */
static struct complex *transform(struct complex *line, struct complex *other, long length, const struct complex *roots,
                                 int sign)
{
    for (long half = length / 2, stride = 1; half > 0; half /= 2, stride *= 2) {
        for (long block = 0; block < half; block++) {
            struct complex root = roots[block * stride];
            root.imaginary *= sign;
            const struct complex *first = line + block * stride, *second = first + half * stride;
            struct complex *to = other + 2 * block * stride;
            for (long i = 0; i < stride; i++) {
                struct complex a = first[i], b = second[i];
                struct complex difference = {a.real - b.real, a.imaginary - b.imaginary};
                to[i] = (struct complex){a.real + b.real, a.imaginary + b.imaginary};
                to[stride + i] = times(difference, root);
            }
        }
        struct complex *swap = line;
        line = other;
        other = swap;
    }
    return line;
}

/* Transforms lines of points `stride` apart. */
static void transform_line(struct complex *points, long stride, long length, const struct complex *roots, int sign)
{
    struct complex one[LENGTH_MAX], other[LENGTH_MAX];
    for (long i = 0; i < length; i++)
        one[i] = points[i * stride];
    const struct complex *result = transform(one, other, length, roots, sign);
    for (long i = 0; i < length; i++)
        points[i * stride] = result[i];
}

static void transform_all(struct field *field, struct team *team, int thread, struct complex *points, int sign)
{
    long nx = field->sides[0], ny = field->sides[1], nz = field->sides[2];
    struct range planes = team_share(team, thread, nz), rows = team_share(team, thread, ny);
    for (long z = planes.first; z < planes.end; z++) {
        for (long y = 0; y < ny; y++)
            transform_line(points + (z * ny + y) * nx, 1, nx, field->roots[0], sign);
        for (long x = 0; x < nx; x++)
            transform_line(points + z * ny * nx + x, nx, ny, field->roots[1], sign);
    }
    team_barrier(team);
    for (long y = rows.first; y < rows.end; y++)
        for (long x = 0; x < nx; x++)
            transform_line(points + y * nx + x, nx * ny, nz, field->roots[2], sign);
    team_barrier(team);
}

static void start(struct field *field, struct team *team, int thread)
{
    long plane = field->sides[0] * field->sides[1];
    struct range planes = team_share(team, thread, field->sides[2]);
    struct sequence sequence = sequence_from(SEED);
    sequence_skip(&sequence, 2 * plane * planes.first);
    for (long i = plane * planes.first; i < plane * planes.end; i++) {
        field->spectrum[i].real = sequence_next(&sequence);
        field->spectrum[i].imaginary = sequence_next(&sequence);
    }
}

/* Takes the spectrum to the next time, and copies it to where the solution is made of it. */
static void advance(struct field *field, struct team *team, int thread)
{
    long nx = field->sides[0], ny = field->sides[1];
    struct range planes = team_share(team, thread, field->sides[2]);
    for (long z = planes.first; z < planes.end; z++)
        for (long y = 0; y < ny; y++) {
            long start = (z * ny + y) * nx;
            double factor = field->decay[2][z] * field->decay[1][y];
            for (long x = 0; x < nx; x++) {
                struct complex *point = &field->spectrum[start + x];
                point->real *= factor * field->decay[0][x];
                point->imaginary *= factor * field->decay[0][x];
                field->solution[start + x] = *point;
            }
        }
}

static struct complex checksum(struct field *field, struct team *team, int thread)
{
    long nx = field->sides[0], ny = field->sides[1], nz = field->sides[2];
    struct range samples = team_share(team, thread, SAMPLES);
    double sums[2] = {0};
    for (long j = samples.first + 1; j <= samples.end; j++) {
        const struct complex *point = &field->solution[(5 * j % nz * ny + 3 * j % ny) * nx + j % nx];
        sums[0] += point->real;
        sums[1] += point->imaginary;
    }
    team_sums(team, thread, sums, 2);
    double points = (double)nx * ny * nz;
    return (struct complex){sums[0] / points, sums[1] / points};
}

static void work(void *state, struct team *team, int thread)
{
    struct field *field = state;
    start(field, team, thread);
    transform_all(field, team, thread, field->spectrum, -1);
    for (int time = 0; time < team_steps(team, TIMES); time++) {
        advance(field, team, thread);
        transform_all(field, team, thread, field->solution, 1);
        struct complex sum = checksum(field, team, thread);
        if (thread == 0) {
            field->checksums[time] = sum;
            environment_step();
        }
    }
}

static int verify(void *state, const char *label)
{
    const struct field *field = state;
    int wrong = 0;
    for (int time = 0; time < TIMES; time++) {
        const struct complex *found = &field->checksums[time], *specified = &problems[field->class].checksums[time];
        wrong += report_value(label, "checksum, real part", found->real, specified->real, 1e-12);
        wrong += report_value(label, "checksum, imaginary part", found->imaginary, specified->imaginary, 1e-12);
    }
    return wrong;
}

const struct kernel fourier_transform = {"ft", "Fourier transform", prepare, NULL, work, NULL, verify};
