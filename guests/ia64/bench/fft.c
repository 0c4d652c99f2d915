/* Floating point: a fast Fourier transform of 1024 complex numbers and back, in place. */

#include "runtime.h"

enum { LOGARITHM = 10, COUNT = 1 << LOGARITHM };

static double real[COUNT], imaginary[COUNT], cosine[COUNT / 2], sine[COUNT / 2];

static void swap(double *left, double *right)
{
    double value = *left;
    *left = *right;
    *right = value;
}

static void transform(double direction)
{
    for (unsigned i = 0, reversed = 0; i < COUNT; i++) {
        if (i < reversed) {
            swap(&real[i], &real[reversed]);
            swap(&imaginary[i], &imaginary[reversed]);
        }
        unsigned bit = COUNT / 2;
        for (; reversed & bit; bit /= 2)
            reversed ^= bit;
        reversed |= bit;
    }
    for (int half = 1; half < COUNT; half *= 2) {
        int stride = COUNT / 2 / half;
        for (int start = 0; start < COUNT; start += 2 * half)
            for (int k = 0; k < half; k++) {
                int upper = start + k, lower = upper + half;
                double c = cosine[k * stride], s = direction * sine[k * stride];
                double re = real[lower] * c - imaginary[lower] * s, im = real[lower] * s + imaginary[lower] * c;
                real[lower] = real[upper] - re;
                imaginary[lower] = imaginary[upper] - im;
                real[upper] += re;
                imaginary[upper] += im;
            }
    }
}

int main(int count, char **values)
{
    long rounds = argument(count, values, 120);
    /* The roots of unity by repeated rotation; cos and sin of 2 pi / 1024. */
    double c = 0.99998117528260142, s = 0.0061358846491544753;
    cosine[0] = 1;
    for (int k = 1; k < COUNT / 2; k++) {
        cosine[k] = cosine[k - 1] * c - sine[k - 1] * s;
        sine[k] = cosine[k - 1] * s + sine[k - 1] * c;
    }
    uint64_t state = 9;
    for (int i = 0; i < COUNT; i++)
        real[i] = (double)(long)(random_next(&state) & 0xffff) / 65536;
    double peak = 0, first = real[1];
    for (long round = 0; round < rounds; round++) {
        transform(1);
        peak = real[0];
        transform(-1);
        for (int i = 0; i < COUNT; i++) {
            real[i] /= COUNT;
            imaginary[i] /= COUNT;
        }
    }
    print("fft: %ld rounds, sum %.6f, first %.6f -> %.6f\n", rounds, peak, first, real[1]);
    return 0;
}
