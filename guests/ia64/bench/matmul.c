/* Floating point: multiplication of matrices of doubles, software-pipelined loops of fma. */

#include "runtime.h"

enum { SIZE = 64 };

static double left[SIZE][SIZE], right[SIZE][SIZE], product[SIZE][SIZE];

int main(int count, char **values)
{
    long rounds = argument(count, values, 30);
    uint64_t state = 5;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            left[i][j] = (double)(random_next(&state) & 0xffff) / 65536;
            right[i][j] = (double)(random_next(&state) & 0xffff) / 65536;
        }
    double trace = 0;
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZE; i++)
            for (int j = 0; j < SIZE; j++) {
                double sum = 0;
                for (int k = 0; k < SIZE; k++)
                    sum += left[i][k] * right[k][j];
                product[i][j] = sum;
            }
        for (int i = 0; i < SIZE; i++)
            trace += product[i][i];
        left[round % SIZE][round * 5 % SIZE] += 0.125;
    }
    print("matmul: %ld rounds, trace %.6f\n", rounds, trace);
    return 0;
}
