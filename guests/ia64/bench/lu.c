/* Floating point: solving linear systems by Gaussian elimination with partial pivoting. */

#include "runtime.h"

enum { SIZE = 64 };

static double matrix[SIZE][SIZE], right[SIZE];

static double magnitude(double value)
{
    return value < 0 ? -value : value;
}

static void solve(void)
{
    for (int column = 0; column < SIZE; column++) {
        int pivot = column;
        for (int row = column + 1; row < SIZE; row++)
            if (magnitude(matrix[row][column]) > magnitude(matrix[pivot][column]))
                pivot = row;
        for (int k = 0; k < SIZE; k++) {
            double value = matrix[column][k];
            matrix[column][k] = matrix[pivot][k];
            matrix[pivot][k] = value;
        }
        double value = right[column];
        right[column] = right[pivot];
        right[pivot] = value;
        for (int row = column + 1; row < SIZE; row++) {
            double factor = matrix[row][column] / matrix[column][column];
            for (int k = column; k < SIZE; k++)
                matrix[row][k] -= factor * matrix[column][k];
            right[row] -= factor * right[column];
        }
    }
    for (int row = SIZE - 1; row >= 0; row--) {
        double sum = right[row];
        for (int k = row + 1; k < SIZE; k++)
            sum -= matrix[row][k] * right[k];
        right[row] = sum / matrix[row][row];
    }
}

int main(int count, char **values)
{
    long rounds = argument(count, values, 50);
    uint64_t state = 13;
    double worst = 0;
    for (long round = 0; round < rounds; round++) {
        for (int row = 0; row < SIZE; row++) {
            right[row] = 0;
            for (int k = 0; k < SIZE; k++) {
                matrix[row][k] = (double)(long)(random_next(&state) & 0xffff) / 65536 - 0.5;
                right[row] += matrix[row][k]; /* the solution is all ones */
            }
        }
        solve();
        for (int row = 0; row < SIZE; row++)
            if (magnitude(right[row] - 1) > worst)
                worst = magnitude(right[row] - 1);
    }
    print("lu: %ld rounds, worst error %.9f\n", rounds, worst);
    return worst < 1e-6 ? 0 : 1;
}
