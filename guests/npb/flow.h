/* The simulated application of computational fluid dynamics that BT, SP and LU share (RNR-94-007): a cube of points,
   five conserved quantities at each (density, three momenta, energy), a discrete operator K of convection, diffusion
   and artificial dissipation, and a forcing term that makes a known function the solution of K u + f = 0.

   The three benchmarks differ in how they take a step towards it. Points are numbered x first, z last; directions are 0
   to 2 for x to z. Threads share planes of constant z, but in solutions of lines along z, where they share y. */

#ifndef FLOW_H
#define FLOW_H

#include "kernel.h"

enum { QUANTITIES = 5, DIRECTIONS = 3 };

/* Ratio of specific heats, less one where it says so, and the constants of diffusion. */
#define GAMMA 1.4
#define GAMMA_1 0.4
#define C3C4 0.1
#define C1C5 (GAMMA * 1.4)
#define C1345 (C1C5 * C3C4)

/* What one point's quantities mean. */
struct derived {
    double velocity[DIRECTIONS];
    double kinetic; /* energy of motion by mass */
    double energy;  /* by mass */
    double pressure;
    double density_inverse;
};

/* Weights and reaches of the fourth difference at a place of a line; what lies behind the boundary has no weight. */
struct difference {
    double weights[5];
    int reaches[5];
};

struct flow {
    long side;
    double step;            /* of pseudo-time */
    double spacing_inverse; /* one by the distance of two points */
    long strides[DIRECTIONS];
    double (*u)[QUANTITIES];
    double (*residual)[QUANTITIES]; /* f + K u; steps turn it into the change of u */
    double (*forcing)[QUANTITIES];
    struct derived *derived;
    struct difference *differences;
    double residual_norms[QUANTITIES], error_norms[QUANTITIES];
    void *work_spaces[THREADS_MAX]; /* of each thread, for one line */
};

/* The second-order dissipation of a direction, the factor of the fourth-order one, and what viscosity adds to the
   diffusion of momentum along the direction. */
extern const double dissipation[DIRECTIONS];
#define FOURTH_DISSIPATION 0.25
#define ALONG (4.0 / 3)

/* A cube with a work space of so many bytes for each place of a line. */
void flow_prepare(struct flow *flow, const struct team *team, long side, double step, size_t work_bytes);

/* The forcing term, and the initial values: those of the solution on the boundary, interpolated inside. */
void flow_start(struct flow *flow, struct team *team, int thread);

/* The residual at all points inside, with what `derived` tells of all points. What u was written by others must be
   visible; at the end each thread has the residual of its own planes. */
void flow_residual(struct flow *flow, struct team *team, int thread);

/* Adds a factor times the change that the residual of a thread's own planes has become to u. */
void flow_add_residual(struct flow *flow, struct team *team, int thread, double factor);

/* Turns the residual of one line into the change of u, or a part of the way to it: of the points `start` plus 1 to
   `side` - 2 times the direction's stride. */
typedef void flow_line_solver(struct flow *flow, void *work_space, long start, int direction);

/* Steps that solve for each line along x, then y, then z. */
void flow_step_by_lines(struct flow *flow, struct team *team, int thread, int steps, flow_line_solver *solve_line);

/* The root mean squares of the residual and of u less the solution. */
void flow_norms(struct flow *flow, struct team *team, int thread);

/* The residual of what u has become, and the norms. */
void flow_finish(struct flow *flow, struct team *team, int thread);

/* The derivatives of convection and of diffusion along a direction by the five quantities, at a point. */
struct jacobians {
    double convection[QUANTITIES][QUANTITIES], diffusion[QUANTITIES][QUANTITIES];
};
void flow_jacobians(struct jacobians *jacobians, const struct derived *at, int direction);

/* Adds to `sum` the change of convection and of diffusion, times a factor each, that a change of the quantities at a
   point makes: what the products with the matrices of `flow_jacobians` are, but without the matrices. */
void flow_add_changes(double sum[QUANTITIES], const struct derived *at, int direction, const double change[QUANTITIES],
                      double convection, double diffusion);

/* Solves `columns` systems of five equations with one matrix, which is destroyed; right sides become solutions. */
void flow_solve_block(double matrix[QUANTITIES][QUANTITIES], double *right, int columns);

/* The places inside along a side that are a thread's, as numbers of planes or rows. */
static inline struct range flow_share(const struct flow *flow, const struct team *team, int thread)
{
    struct range range = team_share(team, thread, flow->side - 2);
    return (struct range){range.first + 1, range.end + 1};
}

/* The norms that are specified for a class. */
struct flow_norms {
    double residual[QUANTITIES], error[QUANTITIES];
};
int flow_verify(const struct flow *flow, const struct flow_norms *specified, const char *label);

#endif
