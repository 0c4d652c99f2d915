/* Integer: multiplication of matrices of 64-bit integers, which Itanium does in its floating-point unit (xma). */

#include "runtime.h"

enum { SIZE = 48 };

static int64_t left[SIZE][SIZE], right[SIZE][SIZE], product[SIZE][SIZE];

int main(int count, char **values)
{
    long rounds = argument(count, values, 60);
    uint64_t state = 5, checksum = 0;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            left[i][j] = random_next(&state) & 0xffff;
            right[i][j] = random_next(&state) & 0xffff;
        }
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZE; i++)
            for (int j = 0; j < SIZE; j++) {
                int64_t sum = 0;
                for (int k = 0; k < SIZE; k++)
                    sum += left[i][k] * right[k][j];
                product[i][j] = sum;
            }
        checksum = checksum * 31 + product[round % SIZE][round * 7 % SIZE];
        left[round % SIZE][round * 5 % SIZE] ^= product[0][round % SIZE] & 0xff;
    }
    print("integer-matrix: %ld rounds, checksum %lu\n", rounds, checksum);
    return 0;
}
