/* BT: steps of an approximate factorisation: a block-tridiagonal system for each line along x, then y, then z
   (RNR-94-007). */

#include "flow.h"

/* For each place of a line: the block that is left of its system's upper diagonal. */
struct place {
    double upper[QUANTITIES][QUANTITIES];
};

static const struct {
    int side, steps;
    double step;
    struct flow_norms norms;
} problems[CLASSES] = {
    [CLASS_S] = {12, 60, 0.01,
                 {{1.7034283709541311e-1, 1.2975252070034097e-2, 3.2527926989486055e-2, 2.6436421275166801e-2,
                   1.9211784131744430e-1},
                  {4.9976913345811579e-4, 4.5195666782961927e-5, 7.3973765172921357e-5, 7.3821238632439731e-5,
                   8.9269630987491446e-4}}},
    [CLASS_W] = {24, 200, 0.8e-3,
                 {{0.1125590409344e3, 0.1180007595731e2, 0.2710329767846e2, 0.2469174937669e2, 0.2638427874317e3},
                  {0.4419655736008e1, 0.4638531260002, 0.1011551749967e1, 0.9235878729944, 0.1018045837718e2}}},
    [CLASS_A] = {64, 200, 0.8e-3,
                 {{1.0806346714637264e2, 1.1319730901220813e1, 2.5974354511582465e1, 2.3665622544678910e1,
                   2.5278963211748344e2},
                  {4.2348416040525025, 4.4390282496995698e-1, 9.6692480136345650e-1, 8.8302063039765474e-1,
                   9.7379901770829278}}},
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

/* What weighs a neighbour's change in a point's equations: of convection with its sign, of diffusion and dissipation
   against it. */
static void neighbour(double block[QUANTITIES][QUANTITIES], const struct jacobians *jacobians, double convection,
                      double diffusion, double dissipation)
{
    for (int m = 0; m < QUANTITIES; m++) {
        for (int n = 0; n < QUANTITIES; n++)
            block[m][n] = convection * jacobians->convection[m][n] - diffusion * jacobians->diffusion[m][n];
        block[m][m] -= dissipation;
    }
}

/* Solves one line by elimination of the lower blocks on the way up, and of the upper ones on the way down. The block
   of a place and its right side are solved together, as six columns. */
static void solve_line(struct flow *flow, void *work_space, long start, int direction)
{
    struct place *places = work_space;
    long stride = flow->strides[direction], last = flow->side - 2;
    double h = flow->spacing_inverse, convection = flow->step * 0.5 * h, diffusion = flow->step * h * h;
    double dissipated = diffusion * dissipation[direction];
    struct jacobians jacobians[3], *below = &jacobians[0], *here = &jacobians[1], *above = &jacobians[2];
    flow_jacobians(below, &flow->derived[start], direction);
    flow_jacobians(here, &flow->derived[start + stride], direction);
    for (long place = 1; place <= last; place++) {
        long point = start + place * stride;
        double lower[QUANTITIES][QUANTITIES], diagonal[QUANTITIES][QUANTITIES], upper[QUANTITIES][QUANTITIES];
        flow_jacobians(above, &flow->derived[point + stride], direction);
        neighbour(lower, below, -convection, diffusion, dissipated);
        neighbour(diagonal, here, 0, -2 * diffusion, -2 * dissipated);
        neighbour(upper, above, convection, diffusion, dissipated);
        double columns[QUANTITIES][QUANTITIES + 1];
        for (int m = 0; m < QUANTITIES; m++) {
            diagonal[m][m] += 1;
            memcpy(columns[m], upper[m], sizeof upper[m]);
            columns[m][QUANTITIES] = flow->residual[point][m];
        }
        if (place > 1) {
            const double *before = flow->residual[point - stride];
            for (int m = 0; m < QUANTITIES; m++)
                for (int k = 0; k < QUANTITIES; k++) {
                    double factor = lower[m][k];
                    for (int n = 0; n < QUANTITIES; n++)
                        diagonal[m][n] -= factor * places[place - 1].upper[k][n];
                    columns[m][QUANTITIES] -= factor * before[k];
                }
        }
        flow_solve_block(diagonal, columns[0], QUANTITIES + 1);
        for (int m = 0; m < QUANTITIES; m++) {
            memcpy(places[place].upper[m], columns[m], sizeof places[place].upper[m]);
            flow->residual[point][m] = columns[m][QUANTITIES];
        }
        struct jacobians *free = below;
        below = here;
        here = above;
        above = free;
    }
    for (long place = last - 1; place >= 1; place--) {
        double *residual = flow->residual[start + place * stride], *behind = residual + stride * QUANTITIES;
        for (int m = 0; m < QUANTITIES; m++)
            for (int n = 0; n < QUANTITIES; n++)
                residual[m] -= places[place].upper[m][n] * behind[n];
    }
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

const struct kernel block_tridiagonal = {"bt", "block tridiagonal", prepare, start, work, finish, verify};
