/* Polynomials by their values at Gauss and Lobatto's points. */

#include "spectral.h"

#include "numbers.h"

/* At a place, the polynomial that is 1 at one of the nodes and 0 at the others. */
static double lagrange(const double *nodes, int count, int node, double place)
{
    double value = 1;
    for (int other = 0; other < count; other++)
        if (other != node)
            value *= (place - nodes[other]) / (nodes[node] - nodes[other]);
    return value;
}

static void set_derivative(struct spectral *spectral)
{
    const double *nodes = spectral->nodes;
    for (int row = 0; row < POINTS; row++)
        for (int column = 0; column < POINTS; column++) {
            /* The product rule: each factor's derivative, times the others. */
            double sum = 0;
            for (int factor = 0; factor < POINTS; factor++) {
                if (factor == column)
                    continue;
                double product = 1 / (nodes[column] - nodes[factor]);
                for (int other = 0; other < POINTS; other++)
                    if (other != column && other != factor)
                        product *= (nodes[row] - nodes[other]) / (nodes[column] - nodes[other]);
                sum += product;
            }
            spectral->derivative[row][column] = sum;
        }
    for (int row = 0; row < POINTS; row++)
        for (int column = 0; column < POINTS; column++) {
            double sum = 0;
            for (int point = 0; point < POINTS; point++)
                sum += spectral->weights[point] * spectral->derivative[point][row] *
                       spectral->derivative[point][column];
            spectral->stiffness[row][column] = sum;
        }
}

static void set_halves(struct spectral *spectral)
{
    const double *nodes = spectral->nodes;
    for (int point = 0; point < POINTS; point++)
        for (int node = 0; node < POINTS; node++) {
            double place = nodes[point];
            int half = point > POINTS / 2;
            spectral->refined[0][point][node] = lagrange(nodes, POINTS, node, (place - 1) / 2);
            spectral->refined[1][point][node] = lagrange(nodes, POINTS, node, (place + 1) / 2);
            spectral->merged[half][point][node] = lagrange(nodes, POINTS, node, half ? 2 * place - 1 : 2 * place + 1);
            spectral->merged[!half][point][node] = 0;
        }
}

/* The test functions are 1 at one inner point and 0 at the other two, so that the integral of one of them and of a
   polynomial on the whole is the polynomial's value there, but for what the ends add. */
static void set_mortar(struct spectral *spectral)
{
    const double *inner = spectral->nodes + 1, *weights = spectral->weights;
    for (int point = 0; point < INNER; point++) {
        double *row = spectral->mortar[point], scale = 1 / weights[point + 1];
        for (int place = 0; place < FINE; place++)
            row[place] = 0;
        for (int half = 0; half < 2; half++)
            for (int node = 0; node < POINTS; node++) {
                double place = (spectral->nodes[node] + (half ? 1 : -1)) / 2;
                row[half * (POINTS - 1) + node] += weights[node] / 2 * lagrange(inner, INNER, point, place) * scale;
            }
        row[0] -= weights[0] * lagrange(inner, INNER, point, -1) * scale;
        row[FINE - 1] -= weights[0] * lagrange(inner, INNER, point, 1) * scale;
    }
}

void spectral_initialize(struct spectral *spectral)
{
    double inner = square_root(3.0 / 7);
    const double nodes[POINTS] = {-1, -inner, 0, inner, 1};
    const double weights[POINTS] = {1.0 / 10, 49.0 / 90, 32.0 / 45, 49.0 / 90, 1.0 / 10};
    memcpy(spectral->nodes, nodes, sizeof nodes);
    memcpy(spectral->weights, weights, sizeof weights);
    for (int point = 0; point < ELEMENT; point++)
        spectral->volumes[point] =
            weights[point % POINTS] * weights[point / POINTS % POINTS] * weights[point / (POINTS * POINTS)];
    set_derivative(spectral);
    set_halves(spectral);
    set_mortar(spectral);
}

void spectral_stiffness(const struct spectral *spectral, const double *restrict values, double *restrict result)
{
    const double *weights = spectral->weights;
    enum { ROW = POINTS, PLANE = POINTS * POINTS };
    for (int z = 0; z < POINTS; z++)
        for (int y = 0; y < POINTS; y++)
            for (int x = 0; x < POINTS; x++) {
                double along_x = 0, along_y = 0, along_z = 0;
                for (int i = 0; i < POINTS; i++) {
                    along_x += spectral->stiffness[x][i] * values[i + ROW * y + PLANE * z];
                    along_y += spectral->stiffness[y][i] * values[x + ROW * i + PLANE * z];
                    along_z += spectral->stiffness[z][i] * values[x + ROW * y + PLANE * i];
                }
                result[x + ROW * y + PLANE * z] = weights[y] * weights[z] * along_x +
                                                  weights[x] * weights[z] * along_y +
                                                  weights[x] * weights[y] * along_z;
            }
}

void spectral_transform(const double (*x)[POINTS], const double (*y)[POINTS], const double (*z)[POINTS],
                        const double *restrict values, double *restrict result)
{
    /* The first direction moves to the back each time, so three times put all in their places. */
    const double (*matrices[3])[POINTS] = {x, y, z};
    double turned[2][ELEMENT];
    const double *from = values;
    for (int direction = 0; direction < 3; direction++) {
        double *to = direction == 2 ? result : turned[direction];
        for (int line = 0; line < POINTS * POINTS; line++)
            for (int point = 0; point < POINTS; point++) {
                double sum = 0;
                for (int i = 0; i < POINTS; i++)
                    sum += matrices[direction][point][i] * from[POINTS * line + i];
                to[line + POINTS * POINTS * point] = sum;
            }
        from = to;
    }
}
