/* SP: steps of an approximate factorisation whose blocks are diagonal: at each point the change is expressed by the
   characteristic quantities of a direction, of which three go with the flow and two with sound waves up and down; each
   gives a scalar pentadiagonal system for each line (RNR-94-007). */

#include "flow.h"
#include "numbers.h"

enum { BAND = 5 };

#define HALF_ROOT 0.70710678118654752440

/* For each place of a line: what is left of its row of a system, and the values that rows are made of. */
struct place {
    double band[BAND];
    double along, sound, diffusion;
};

static const struct {
    int side, steps;
    double step;
    struct flow_norms norms;
} problems[CLASSES] = {
    [CLASS_S] = {12, 100, 0.015,
                 {{2.7470315451339479e-2, 1.0360746705285417e-2, 1.6235745065095532e-2, 1.5840557224455615e-2,
                   3.4849040609362460e-2},
                  {2.7289258557377227e-5, 1.0364446640837285e-5, 1.6154798287166471e-5, 1.5750704994480102e-5,
                   3.4177666183390531e-5}}},
    [CLASS_W] = {36, 400, 0.0015,
                 {{0.1893253733584e-2, 0.1717075447775e-3, 0.2778153350936e-3, 0.2887475409984e-3,
                   0.3143611161242e-2},
                  {0.7542088599534e-4, 0.6512852253086e-5, 0.1049092285688e-4, 0.1128838671535e-4,
                   0.1212845639773e-3}}},
    [CLASS_A] = {64, 400, 0.0015,
                 {{2.4799822399300195, 1.1276337964368832, 1.5028977888770491, 1.4217816211695179, 2.1292113035138280},
                  {1.0900140297820550e-4, 3.7343951769282091e-5, 5.0092785406541633e-5, 4.7671093939528255e-5,
                   1.3621613399213001e-4}}},
};

struct solver {
    enum problem_class class;
    struct flow flow;
};

static void *prepare(enum problem_class class, const struct team *team)
{
    struct solver *solver = allocate(sizeof *solver);
    solver->class = class;
    flow_prepare(&solver->flow, team, problems[class].side, problems[class].step, sizeof(struct place));
    return solver;
}

static double speed_of_sound(const struct derived *at)
{
    return square_root(GAMMA * at->pressure * at->density_inverse);
}

/* From conserved quantities to the characteristic ones of x: shear of z and y, entropy with the flow, and sound. */
static void to_characteristics(double r[QUANTITIES], const struct derived *at)
{
    const double *v = at->velocity;
    double sound = speed_of_sound(at), inverse = at->density_inverse;
    double pressure = GAMMA_1 * (at->kinetic * r[0] - v[0] * r[1] - v[1] * r[2] - v[2] * r[3] + r[4]);
    double entropy = pressure / (sound * sound);
    double momentum = HALF_ROOT * inverse * (r[1] - v[0] * r[0]);
    double wave = HALF_ROOT * inverse * sound * entropy;
    double shear_z = inverse * (r[3] - v[2] * r[0]), shear_y = inverse * (v[1] * r[0] - r[2]);
    r[0] -= entropy;
    r[1] = shear_z;
    r[2] = shear_y;
    r[3] = wave + momentum;
    r[4] = wave - momentum;
}

/* From those of x to those of y. */
static void from_x_to_y(double r[QUANTITIES])
{
    double mean = 0.5 * (r[3] + r[4]), difference = HALF_ROOT * (r[3] - r[4]), shear = HALF_ROOT * r[2];
    double first = r[0];
    r[0] = -r[1];
    r[1] = first;
    r[2] = difference;
    r[3] = mean - shear;
    r[4] = mean + shear;
}

/* From those of y to those of z. */
static void from_y_to_z(double r[QUANTITIES])
{
    double mean = 0.5 * (r[3] + r[4]), difference = HALF_ROOT * (r[3] - r[4]), shear = HALF_ROOT * r[0];
    double second = r[1];
    r[0] = difference;
    r[1] = -r[2];
    r[2] = second;
    r[3] = mean - shear;
    r[4] = mean + shear;
}

/* From those of z back to conserved quantities. */
static void from_characteristics(double r[QUANTITIES], const struct derived *at)
{
    const double *v = at->velocity;
    double sound = speed_of_sound(at), density = 1 / at->density_inverse;
    double wave = HALF_ROOT * density / sound * (r[3] + r[4]);
    double mass = r[2] + wave, momentum = HALF_ROOT * density * (r[3] - r[4]);
    double shear_x = -density * r[1], shear_y = density * r[0];
    r[0] = mass;
    r[1] = v[0] * mass + shear_x;
    r[2] = v[1] * mass + shear_y;
    r[3] = v[2] * mass + momentum;
    r[4] = at->kinetic * mass + v[0] * shear_x + v[1] * shear_y + v[2] * momentum + sound * sound * wave / GAMMA_1;
}

/* The rows of the system of the waves that go at `waves` times the speed of sound along the flow. */
static void make_rows(const struct flow *flow, struct place *places, double waves)
{
    double h = flow->spacing_inverse, convection = flow->step * 0.5 * h, diffusion = flow->step * h * h;
    for (long place = 1; place < flow->side - 1; place++) {
        double *band = places[place].band;
        const struct place *below = &places[place - 1], *above = &places[place + 1];
        for (int i = 0; i < BAND; i++)
            band[i] = flow->step * FOURTH_DISSIPATION * flow->differences[place].weights[i];
        band[1] -= convection * (below->along + waves * below->sound) + diffusion * below->diffusion;
        band[2] += 1 + 2 * diffusion * places[place].diffusion;
        band[3] += convection * (above->along + waves * above->sound) - diffusion * above->diffusion;
    }
}

/* Solves the system for some of the quantities. The changes on the boundary are zero, so what a row says of them counts
   for nothing. */
static void solve_rows(struct flow *flow, struct place *places, long start, long stride, int first, int end)
{
    long last = flow->side - 2;
    for (long place = 1; place <= last; place++) {
        double *band = places[place].band, *here = flow->residual[start + place * stride];
        for (int back = 2; back >= 1; back--) {
            if (place - back < 1)
                continue;
            const double *before = places[place - back].band, *there = here - back * stride * QUANTITIES;
            double factor = band[2 - back];
            band[3 - back] -= factor * before[3];
            band[4 - back] -= factor * before[4];
            for (int m = first; m < end; m++)
                here[m] -= factor * there[m];
        }
        double inverse = 1 / band[2];
        band[3] *= inverse;
        band[4] *= inverse;
        for (int m = first; m < end; m++)
            here[m] *= inverse;
    }
    for (long place = last - 1; place >= 1; place--) {
        double *here = flow->residual[start + place * stride];
        const double *next = here + stride * QUANTITIES, *next_but_one = next + stride * QUANTITIES;
        for (int m = first; m < end; m++) {
            here[m] -= places[place].band[3] * next[m];
            if (place + 2 <= last)
                here[m] -= places[place].band[4] * next_but_one[m];
        }
    }
}

static void solve_line(struct flow *flow, void *work_space, long start, int direction)
{
    struct place *places = work_space;
    long stride = flow->strides[direction];
    for (long place = 1; place < flow->side - 1; place++) {
        double *residual = flow->residual[start + place * stride];
        if (direction == 0)
            to_characteristics(residual, &flow->derived[start + place * stride]);
        else if (direction == 1)
            from_x_to_y(residual);
        else
            from_y_to_z(residual);
    }
    for (long place = 0; place < flow->side; place++) {
        const struct derived *at = &flow->derived[start + place * stride];
        double viscosity = C3C4 * at->density_inverse, larger = ALONG > C1C5 ? ALONG : C1C5;
        places[place].along = at->velocity[direction];
        places[place].sound = speed_of_sound(at);
        places[place].diffusion = dissipation[direction] + larger * viscosity;
    }
    make_rows(flow, places, 0);
    solve_rows(flow, places, start, stride, 0, 3);
    make_rows(flow, places, 1);
    solve_rows(flow, places, start, stride, 3, 4);
    make_rows(flow, places, -1);
    solve_rows(flow, places, start, stride, 4, 5);
    for (long place = 1; direction == 2 && place < flow->side - 1; place++)
        from_characteristics(flow->residual[start + place * stride], &flow->derived[start + place * stride]);
}

static void start(void *state, struct team *team, int thread)
{
    flow_start(&((struct solver *)state)->flow, team, thread);
}

static void work(void *state, struct team *team, int thread)
{
    struct solver *solver = state;
    flow_step_by_lines(&solver->flow, team, thread, problems[solver->class].steps, solve_line);
}

static void finish(void *state, struct team *team, int thread)
{
    flow_finish(&((struct solver *)state)->flow, team, thread);
}

static int verify(void *state, const char *label)
{
    const struct solver *solver = state;
    return flow_verify(&solver->flow, &problems[solver->class].norms, label);
}

const struct kernel scalar_pentadiagonal = {"sp", "scalar pentadiagonal", prepare, start, work, finish, verify};
