/* Floating point: the Mandelbrot set; a dependent chain with a compare and branch in each turn. */

#include "runtime.h"

enum { WIDTH = 96, HEIGHT = 64, TURNS = 200 };

int main(int count, char **values)
{
    long rounds = argument(count, values, 8);
    long inside = 0, turns = 0;
    for (long round = 0; round < rounds; round++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                double re = -2.0 + 3.0 / WIDTH * x + 0.001 * (double)round, im = -1.0 + 2.0 / HEIGHT * y, a = 0, b = 0;
                int turn = 0;
                for (; turn < TURNS && a * a + b * b <= 4; turn++) {
                    double next = a * a - b * b + re;
                    b = 2 * a * b + im;
                    a = next;
                }
                turns += turn;
                inside += turn == TURNS;
            }
    print("mandelbrot: %ld rounds, %ld points inside, %ld turns\n", rounds, inside, turns);
    return 0;
}
