/* LU: steps of symmetric successive over-relaxation: a sweep that solves a block lower triangular system from the
   first plane to the last, and one that solves an upper triangular one back (RNR-94-007).

   Threads share rows of constant y. In each plane a thread begins when the one before it (in the way back the one
   behind it) is through with its rows of the plane, so that planes go through the threads as through a pipeline. */

#include "flow.h"
#include "numbers.h"

#define RELAXATION 1.2

static const struct {
    int side, steps;
    double step;
    struct flow_norms norms;
    double integral;
} problems[CLASSES] = {
    [CLASS_S] = {12, 50, 0.5,
                 {{1.6196343210976702e-2, 2.1976745164821318e-3, 1.5179927653399185e-3, 1.5029584435994323e-3,
                   3.4264073155896461e-2},
                  {6.4223319957960924e-4, 8.4144342047347926e-5, 5.8588269616485186e-5, 5.8474222595157350e-5,
                   1.3103347914111294e-3}},
                 7.8418928865937083},
    [CLASS_W] = {33, 300, 1.5e-3,
                 {{0.1236511638192e2, 0.1317228477799e1, 0.2550120713095e1, 0.2326187750252e1, 0.2826799444189e2},
                  {0.4867877144216, 0.5064652880982e-1, 0.9281818101960e-1, 0.8570126542733e-1, 0.1084277417792e1}},
                 0.1161399311023e2},
    [CLASS_A] = {64, 250, 2,
                 {{7.7902107606689367e2, 6.3402765259692870e1, 1.9499249727292479e2, 1.7845301160418537e2,
                   1.8384760349464247e3},
                  {2.9964085685471943e1, 2.8194576365003349, 7.3473412698774742, 6.7139225687777051,
                   7.0715315688392578e1}},
                 2.6030925604886277e1},
};

struct solver {
    enum problem_class class;
    struct flow flow;
    long announced; /* what all threads had announced when this run began */
    double integral;
};

static void *prepare(enum problem_class class, const struct team *team)
{
    struct solver *solver = allocate(sizeof *solver);
    solver->class = class;
    flow_prepare(&solver->flow, team, problems[class].side, problems[class].step, 0);
    return solver;
}

/* Adds to `sum` what a neighbour's change does to a point's equations. `side` is -1 for the neighbour before the point,
   1 for the one behind it. */
static void add_neighbour(const struct flow *flow, double sum[QUANTITIES], long point, int direction, int side)
{
    double h = flow->spacing_inverse, convection = side * flow->step * 0.5 * h, diffusion = flow->step * h * h;
    point += side * flow->strides[direction];
    const double *change = flow->residual[point];
    flow_add_changes(sum, &flow->derived[point], direction, change, convection, -diffusion);
    for (int m = 0; m < QUANTITIES; m++)
        sum[m] -= diffusion * dissipation[direction] * change[m];
}

/* Solves the equations that a point has without its neighbours: diffusion and dissipation along all directions. Of
   these density depends on itself alone, a momentum on density and itself, and energy on all. */
static void solve_point(const struct flow *flow, double right[QUANTITIES], long point)
{
    const struct derived *at = &flow->derived[point];
    double diffusion = 2 * flow->step * flow->spacing_inverse * flow->spacing_inverse, diagonal = 1;
    for (int direction = 0; direction < DIRECTIONS; direction++)
        diagonal += diffusion * dissipation[direction];
    diffusion *= at->density_inverse;
    double viscosity = (2 + ALONG) * C3C4 * diffusion, conduction = DIRECTIONS * C1345 * diffusion;
    right[0] /= diagonal;
    right[4] += conduction * at->energy * right[0];
    for (int a = 0; a < DIRECTIONS; a++) {
        double velocity = at->velocity[a];
        right[1 + a] = (right[1 + a] + viscosity * velocity * right[0]) / (diagonal + viscosity);
        right[4] -= (viscosity - conduction) * velocity * (right[1 + a] - velocity * right[0]);
    }
    right[4] /= diagonal + conduction;
}

/* The changes of a thread's rows of one plane. On the boundary they are zero from the start. */
static void sweep_rows(struct flow *flow, struct range rows, long z, int side)
{
    long inside = flow->side - 2;
    for (long i = rows.first; i < rows.end; i++) {
        long y = side < 0 ? i : rows.first + rows.end - 1 - i;
        for (long j = 1; j <= inside; j++) {
            long x = side < 0 ? j : inside + 1 - j, point = (z * flow->side + y) * flow->side + x;
            double sum[QUANTITIES] = {0}, *change = flow->residual[point];
            for (int direction = 0; direction < DIRECTIONS; direction++)
                add_neighbour(flow, sum, point, direction, side);
            if (side < 0) {
                for (int m = 0; m < QUANTITIES; m++)
                    change[m] = flow->step * change[m] - RELAXATION * sum[m];
                solve_point(flow, change, point);
            } else {
                solve_point(flow, sum, point);
                for (int m = 0; m < QUANTITIES; m++)
                    change[m] -= RELAXATION * sum[m];
            }
        }
    }
}

/* One step: a sweep up, a sweep down, and the change. A thread announces each plane of each sweep. */
static void step(struct flow *flow, struct team *team, int thread, long *announced)
{
    struct range rows = flow_share(flow, team, thread);
    long inside = flow->side - 2;
    for (long z = 1; z <= inside; z++) {
        team_await(team, thread - 1, ++*announced);
        sweep_rows(flow, rows, z, -1);
        team_announce(team, thread, *announced);
    }
    for (long z = inside; z >= 1; z--) {
        team_await(team, thread + 1, ++*announced);
        sweep_rows(flow, rows, z, 1);
        team_announce(team, thread, *announced);
    }
    team_barrier(team);
    flow_add_residual(flow, team, thread, 1 / (RELAXATION * (2 - RELAXATION)));
    team_barrier(team);
    flow_residual(flow, team, thread);
    team_barrier(team);
}

/* The pressure's integral over two opposite faces of a box inside the cube, by the trapezoidal rule: the faces at `low`
   and `high` of one direction, between the places given of the two others. */
static double integrate_faces(const struct flow *flow, int direction, const long low[], const long high[])
{
    int a = direction == 0 ? 1 : 0, b = direction == 2 ? 1 : 2;
    double sum = 0;
    for (long i = low[a]; i <= high[a]; i++)
        for (long j = low[b]; j <= high[b]; j++) {
            double weight = (i == low[a] || i == high[a] ? 0.5 : 1) * (j == low[b] || j == high[b] ? 0.5 : 1);
            long place = i * flow->strides[a] + j * flow->strides[b], stride = flow->strides[direction];
            sum += weight * (flow->derived[place + low[direction] * stride].pressure +
                             flow->derived[place + high[direction] * stride].pressure);
        }
    return sum / (flow->spacing_inverse * flow->spacing_inverse);
}

static double integrate(const struct flow *flow)
{
    /* The box of the specification, in numbers of points counted from zero. */
    const long low[DIRECTIONS] = {1, 1, 2};
    const long high[DIRECTIONS] = {flow->side - 2, flow->side - 3, flow->side - 2};
    double sum = 0;
    for (int direction = 0; direction < DIRECTIONS; direction++)
        sum += integrate_faces(flow, direction, low, high);
    return sum;
}

static void start(void *state, struct team *team, int thread)
{
    struct flow *flow = &((struct solver *)state)->flow;
    flow_start(flow, team, thread);
    flow_residual(flow, team, thread);
}

static void work(void *state, struct team *team, int thread)
{
    struct solver *solver = state;
    long announced = solver->announced;
    team_barrier(team);
    for (int number = 0; number < team_steps(team, problems[solver->class].steps); number++) {
        step(&solver->flow, team, thread, &announced);
        if (thread == 0)
            environment_step();
    }
    if (thread == 0)
        solver->announced = announced;
}

static void finish(void *state, struct team *team, int thread)
{
    struct solver *solver = state;
    flow_norms(&solver->flow, team, thread);
    if (thread == 0)
        solver->integral = integrate(&solver->flow);
}

static int verify(void *state, const char *label)
{
    const struct solver *solver = state;
    return flow_verify(&solver->flow, &problems[solver->class].norms, label) +
           report_value(label, "integral over a surface", solver->integral, problems[solver->class].integral, 1e-8);
}

const struct kernel lower_upper = {"lu", "lower-upper", prepare, start, work, finish, verify};
