#include "tour.h"

long pipelined_sum(const int *numbers, long count);
void pipelined_axpy(double *y, const double *x, double factor, long count);
long pipelined_length(const char *text);
long counted(long count);

void rotation_part(void)
{
    int numbers[100];
    double x[50], y[50];
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        numbers[i] = i * i;
        sum += i * i * 4 + 1;
        if (i == 0 || i == 1 || i == 2 || i == 99)
            check(pipelined_sum(numbers, i + 1) == sum, "a pipelined sum");
    }
    for (int i = 0; i < 50; i++) {
        x[i] = i;
        y[i] = 1000 - i;
    }
    pipelined_axpy(y, x, 2.5, 50);
    int right = 0;
    for (int i = 0; i < 50; i++)
        right += y[i] == 1000 - i + 2.5 * i;
    check(right == 50, "a pipelined axpy");
    check(pipelined_length("") == 0, "the length of nothing");
    check(pipelined_length("Itanium") == 7, "the length of a word");
    check(counted(1) == 3 && counted(1000) == 3000, "a counted loop");
}
