/* Floating point: gravitation between eight bodies, with division and square root. */

#include "runtime.h"

enum { BODIES = 8 };

struct body {
    double position[3], velocity[3], mass;
};

static struct body bodies[BODIES];

static double energy(void)
{
    double sum = 0;
    for (int i = 0; i < BODIES; i++) {
        const struct body *one = &bodies[i];
        for (int axis = 0; axis < 3; axis++)
            sum += 0.5 * one->mass * one->velocity[axis] * one->velocity[axis];
        for (int j = i + 1; j < BODIES; j++) {
            double square = 0;
            for (int axis = 0; axis < 3; axis++) {
                double distance = one->position[axis] - bodies[j].position[axis];
                square += distance * distance;
            }
            sum -= one->mass * bodies[j].mass / __builtin_sqrt(square);
        }
    }
    return sum;
}

static void advance(double step)
{
    for (int i = 0; i < BODIES; i++) {
        struct body *one = &bodies[i];
        for (int j = i + 1; j < BODIES; j++) {
            struct body *other = &bodies[j];
            double distance[3], square = 0.01;
            for (int axis = 0; axis < 3; axis++) {
                distance[axis] = one->position[axis] - other->position[axis];
                square += distance[axis] * distance[axis];
            }
            double pull = step / (square * __builtin_sqrt(square));
            for (int axis = 0; axis < 3; axis++) {
                one->velocity[axis] -= distance[axis] * other->mass * pull;
                other->velocity[axis] += distance[axis] * one->mass * pull;
            }
        }
    }
    for (int i = 0; i < BODIES; i++)
        for (int axis = 0; axis < 3; axis++)
            bodies[i].position[axis] += step * bodies[i].velocity[axis];
}

int main(int count, char **values)
{
    long rounds = argument(count, values, 12000);
    uint64_t state = 11;
    for (int i = 0; i < BODIES; i++) {
        for (int axis = 0; axis < 3; axis++) {
            bodies[i].position[axis] = (double)(long)(random_next(&state) & 0xffff) / 4096 - 8;
            bodies[i].velocity[axis] = (double)(long)(random_next(&state) & 0xffff) / 65536 - 0.5;
        }
        bodies[i].mass = 1 + i;
    }
    double before = energy();
    for (long round = 0; round < rounds; round++)
        advance(0.0001);
    print("nbody: %ld rounds, energy %.9f -> %.9f\n", rounds, before, energy());
    return 0;
}
