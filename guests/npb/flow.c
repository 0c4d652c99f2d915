/* The operator of the simulated flow, its derivatives, and the norms. */

#include "flow.h"

#include "numbers.h"

const double dissipation[DIRECTIONS] = {0.75, 0.75, 1.0};

void flow_prepare(struct flow *flow, const struct team *team, long side, double step, size_t work_bytes)
{
    long points = side * side * side;
    flow->side = side;
    flow->step = step;
    flow->spacing_inverse = side - 1;
    flow->strides[0] = 1;
    flow->strides[1] = side;
    flow->strides[2] = side * side;
    flow->u = allocate(points * sizeof *flow->u);
    flow->residual = allocate(points * sizeof *flow->residual);
    flow->forcing = allocate(points * sizeof *flow->forcing);
    flow->derived = allocate(points * sizeof *flow->derived);
    for (int thread = 0; thread < team->threads && work_bytes > 0; thread++)
        flow->work_spaces[thread] = allocate(side * work_bytes);
    /* 1 -4 6 -4 1, but 5 beside the boundary, and nothing across it; the boundary's own values count for its
       neighbour's neighbour no more than they do in the specification's one-sided forms. */
    flow->differences = allocate(side * sizeof *flow->differences);
    for (long place = 1; place < side - 1; place++) {
        struct difference *difference = &flow->differences[place];
        static const double weights[5] = {1, -4, 6, -4, 1};
        for (int i = 0; i < 5; i++) {
            long other = place + i - 2;
            int is_inside = other > 0 && other < side - 1;
            difference->weights[i] = is_inside ? weights[i] : 0;
            difference->reaches[i] = is_inside ? i - 2 : 0;
        }
        if (place == 1 || place == side - 2)
            difference->weights[2] = 5;
    }
}

/* The exact solution: for each quantity a constant, and a polynomial of degree four in each coordinate. */
static void exact(double values[QUANTITIES], const double at[DIRECTIONS])
{
    static const double constants[QUANTITIES] = {2, 1, 2, 2, 5};
    static const double coefficients[QUANTITIES][DIRECTIONS][4] = {
        {{0, 5, 0.02, 0.5}, {0, 3, 0.01, 0.4}, {4, 0.5, 0.03, 0.3}},
        {{0, 1, 0.01, 0.4}, {0, 2, 0.03, 0.3}, {0, 3, 0.02, 0.5}},
        {{2, 0, 0.04, 0.3}, {0, 2, 0.03, 0.5}, {0, 3, 0.05, 0.4}},
        {{2, 0, 0.03, 0.2}, {0, 2, 0.05, 0.1}, {0, 3, 0.04, 0.3}},
        {{4, 0.1, 0.05, 0.1}, {3, 0.4, 0.04, 0.3}, {2, 0.3, 0.03, 0.2}},
    };
    for (int m = 0; m < QUANTITIES; m++) {
        values[m] = constants[m];
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            const double *c = coefficients[m][direction];
            double t = at[direction];
            values[m] += t * (c[0] + t * (c[1] + t * (c[2] + t * c[3])));
        }
    }
}

/* Between the faces of the cube: a value interpolated along each direction, blended so that each face has its own. */
static void interpolated(double values[QUANTITIES], const double at[DIRECTIONS])
{
    double along[DIRECTIONS][QUANTITIES];
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        double low[QUANTITIES], high[QUANTITIES], place[DIRECTIONS] = {at[0], at[1], at[2]};
        place[direction] = 0;
        exact(low, place);
        place[direction] = 1;
        exact(high, place);
        for (int m = 0; m < QUANTITIES; m++)
            along[direction][m] = at[direction] * high[m] + (1 - at[direction]) * low[m];
    }
    for (int m = 0; m < QUANTITIES; m++) {
        double a = along[0][m], b = along[1][m], c = along[2][m];
        values[m] = a + b + c - a * b - a * c - b * c + a * b * c;
    }
}

/* A thread's planes, those on the boundary among them. */
static struct range all_planes(const struct flow *flow, const struct team *team, int thread)
{
    return team_share(team, thread, flow->side);
}

/* Sets u to the solution, or to the initial values. */
static void set_all(struct flow *flow, const struct team *team, int thread, int is_start)
{
    struct range planes = all_planes(flow, team, thread);
    double scale = 1 / flow->spacing_inverse;
    for (long z = planes.first; z < planes.end; z++)
        for (long y = 0; y < flow->side; y++)
            for (long x = 0; x < flow->side; x++) {
                double at[DIRECTIONS] = {x * scale, y * scale, z * scale};
                long last = flow->side - 1;
                int is_boundary = x == 0 || y == 0 || z == 0 || x == last || y == last || z == last;
                double *to = flow->u[(z * flow->side + y) * flow->side + x];
                if (is_start && !is_boundary)
                    interpolated(to, at);
                else
                    exact(to, at);
            }
}

static void derive(struct flow *flow, const struct team *team, int thread)
{
    struct range planes = all_planes(flow, team, thread);
    for (long point = planes.first * flow->strides[2]; point < planes.end * flow->strides[2]; point++) {
        const double *u = flow->u[point];
        struct derived *derived = &flow->derived[point];
        double inverse = 1 / u[0], square = 0;
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            derived->velocity[direction] = u[1 + direction] * inverse;
            square += derived->velocity[direction] * derived->velocity[direction];
        }
        derived->kinetic = 0.5 * square;
        derived->energy = u[4] * inverse;
        derived->pressure = GAMMA_1 * (u[4] - u[0] * derived->kinetic);
        derived->density_inverse = inverse;
    }
}

/* What a point's neighbours along one direction add to the residual there. */
static void add_direction(const struct flow *flow, double residual[QUANTITIES], long point, long place, int direction)
{
    long stride = flow->strides[direction];
    const double *low = flow->u[point - stride], *here = flow->u[point], *high = flow->u[point + stride];
    const struct derived *below = &flow->derived[point - stride], *at = &flow->derived[point],
                         *above = &flow->derived[point + stride];
    double h = flow->spacing_inverse, convection = 0.5 * h, diffusion = h * h;
    double viscosity = C3C4 * diffusion;
    double v0 = below->velocity[direction], v1 = at->velocity[direction], v2 = above->velocity[direction];

    residual[0] -= convection * (high[1 + direction] - low[1 + direction]);
    for (int a = 0; a < DIRECTIONS; a++) {
        double flux = high[1 + a] * v2 - low[1 + a] * v0;
        double second = above->velocity[a] - 2 * at->velocity[a] + below->velocity[a];
        if (a == direction) {
            flux += above->pressure - below->pressure;
            second *= ALONG;
        }
        residual[1 + a] += viscosity * second - convection * flux;
    }
    residual[4] -= convection * ((high[4] + above->pressure) * v2 - (low[4] + below->pressure) * v0);
    residual[4] += viscosity * ((1 - C1C5) * (above->kinetic - 2 * at->kinetic + below->kinetic) +
                                (v2 * v2 - 2 * v1 * v1 + v0 * v0) / 6 +
                                C1C5 * (above->energy - 2 * at->energy + below->energy));

    const struct difference *fourth = &flow->differences[place];
    const double *outer_low = flow->u[point + fourth->reaches[0] * stride];
    const double *outer_high = flow->u[point + fourth->reaches[4] * stride];
    for (int m = 0; m < QUANTITIES; m++) {
        double difference = fourth->weights[0] * outer_low[m] + fourth->weights[1] * low[m] +
                            fourth->weights[2] * here[m] + fourth->weights[3] * high[m] +
                            fourth->weights[4] * outer_high[m];
        residual[m] += dissipation[direction] * diffusion * (high[m] - 2 * here[m] + low[m]) -
                       FOURTH_DISSIPATION * difference;
    }
}

void flow_residual(struct flow *flow, struct team *team, int thread)
{
    derive(flow, team, thread);
    team_barrier(team);
    struct range planes = flow_share(flow, team, thread);
    for (long z = planes.first; z < planes.end; z++)
        for (long y = 1; y < flow->side - 1; y++)
            for (long x = 1; x < flow->side - 1; x++) {
                long point = (z * flow->side + y) * flow->side + x;
                double *residual = flow->residual[point];
                memcpy(residual, flow->forcing[point], sizeof flow->forcing[point]);
                add_direction(flow, residual, point, x, 0);
                add_direction(flow, residual, point, y, 1);
                add_direction(flow, residual, point, z, 2);
            }
}

/* The residual on the boundary is zero for ever, so whole planes are taken. */
void flow_add_residual(struct flow *flow, struct team *team, int thread, double factor)
{
    struct range planes = flow_share(flow, team, thread);
    for (long point = planes.first * flow->strides[2]; point < planes.end * flow->strides[2]; point++)
        for (int m = 0; m < QUANTITIES; m++)
            flow->u[point][m] += factor * flow->residual[point][m];
}

void flow_start(struct flow *flow, struct team *team, int thread)
{
    struct range planes = flow_share(flow, team, thread);
    set_all(flow, team, thread, 0);
    memset(flow->forcing[planes.first * flow->strides[2]], 0,
           (planes.end - planes.first) * flow->strides[2] * sizeof *flow->forcing);
    team_barrier(team);
    flow_residual(flow, team, thread);
    for (long point = planes.first * flow->strides[2]; point < planes.end * flow->strides[2]; point++)
        for (int m = 0; m < QUANTITIES; m++)
            flow->forcing[point][m] = -flow->residual[point][m];
    team_barrier(team);
    set_all(flow, team, thread, 1);
    team_barrier(team);
}

/* All lines along a direction: shared by z, and those along z by y. */
static void solve_direction(struct flow *flow, const struct team *team, int thread, int direction,
                            flow_line_solver *solve_line)
{
    long first_stride = flow->strides[direction == 0 ? 1 : 0], second_stride = flow->strides[direction == 2 ? 1 : 2];
    struct range seconds = flow_share(flow, team, thread);
    for (long second = seconds.first; second < seconds.end; second++)
        for (long first = 1; first < flow->side - 1; first++)
            solve_line(flow, flow->work_spaces[thread], first * first_stride + second * second_stride, direction);
}

static void step_by_lines(struct flow *flow, struct team *team, int thread, flow_line_solver *solve_line)
{
    flow_residual(flow, team, thread);
    struct range planes = flow_share(flow, team, thread);
    for (long point = planes.first * flow->strides[2]; point < planes.end * flow->strides[2]; point++)
        for (int m = 0; m < QUANTITIES; m++)
            flow->residual[point][m] *= flow->step;
    solve_direction(flow, team, thread, 0, solve_line);
    solve_direction(flow, team, thread, 1, solve_line);
    team_barrier(team);
    solve_direction(flow, team, thread, 2, solve_line);
    team_barrier(team);
    flow_add_residual(flow, team, thread, 1);
    team_barrier(team);
}

void flow_step_by_lines(struct flow *flow, struct team *team, int thread, int steps, flow_line_solver *solve_line)
{
    for (int number = 0; number < team_steps(team, steps); number++) {
        step_by_lines(flow, team, thread, solve_line);
        if (thread == 0)
            environment_step();
    }
}

void flow_finish(struct flow *flow, struct team *team, int thread)
{
    flow_residual(flow, team, thread);
    flow_norms(flow, team, thread);
}

void flow_norms(struct flow *flow, struct team *team, int thread)
{
    double sums[2 * QUANTITIES] = {0}, scale = 1 / flow->spacing_inverse;
    long inside = flow->side - 2;
    struct range planes = flow_share(flow, team, thread);
    for (long z = planes.first; z < planes.end; z++)
        for (long y = 1; y <= inside; y++)
            for (long x = 1; x <= inside; x++) {
                long point = (z * flow->side + y) * flow->side + x;
                double solution[QUANTITIES], at[DIRECTIONS] = {x * scale, y * scale, z * scale};
                exact(solution, at);
                for (int m = 0; m < QUANTITIES; m++) {
                    double residual = flow->residual[point][m], error = flow->u[point][m] - solution[m];
                    sums[m] += residual * residual;
                    sums[QUANTITIES + m] += error * error;
                }
            }
    team_sums(team, thread, sums, 2 * QUANTITIES);
    if (thread != 0)
        return;
    double points = (double)inside * inside * inside;
    for (int m = 0; m < QUANTITIES; m++) {
        flow->residual_norms[m] = square_root(sums[m] / points);
        flow->error_norms[m] = square_root(sums[QUANTITIES + m] / points);
    }
}

void flow_jacobians(struct jacobians *jacobians, const struct derived *at, int direction)
{
    memset(jacobians, 0, sizeof *jacobians);
    double(*convection)[QUANTITIES] = jacobians->convection, (*diffusion)[QUANTITIES] = jacobians->diffusion;
    double along = at->velocity[direction], inverse = at->density_inverse;
    convection[0][1 + direction] = 1;
    convection[4][0] = (2 * GAMMA_1 * at->kinetic - GAMMA * at->energy) * along;
    convection[4][4] = GAMMA * along;
    diffusion[4][0] = -C1345 * at->energy * inverse;
    diffusion[4][4] = C1345 * inverse;
    for (int a = 0; a < DIRECTIONS; a++) {
        double velocity = at->velocity[a], viscosity = a == direction ? ALONG * C3C4 : C3C4;
        convection[1 + a][0] = -velocity * along;
        convection[1 + a][1 + a] += along;
        convection[1 + a][1 + direction] += velocity;
        convection[1 + direction][1 + a] -= GAMMA_1 * velocity;
        convection[4][1 + a] -= GAMMA_1 * velocity * along;
        diffusion[1 + a][0] = -viscosity * velocity * inverse;
        diffusion[1 + a][1 + a] = viscosity * inverse;
        diffusion[4][1 + a] = (viscosity - C1345) * velocity * inverse;
        diffusion[4][0] -= (viscosity - C1345) * velocity * velocity * inverse;
    }
    convection[1 + direction][0] += GAMMA_1 * at->kinetic;
    convection[1 + direction][4] = GAMMA_1;
    convection[4][1 + direction] += GAMMA * at->energy - GAMMA_1 * at->kinetic;
}

void flow_add_changes(double sum[QUANTITIES], const struct derived *at, int direction, const double change[QUANTITIES],
                      double convection, double diffusion)
{
    const double *velocity = at->velocity;
    double along = velocity[direction], mass = change[1 + direction];
    double enthalpy = GAMMA * at->energy - GAMMA_1 * at->kinetic;
    double pressure = at->kinetic * change[0] + change[4], viscous = C1345 * (change[4] - at->energy * change[0]);
    for (int a = 0; a < DIRECTIONS; a++)
        pressure -= velocity[a] * change[1 + a];
    pressure *= GAMMA_1;
    sum[0] += convection * mass;
    diffusion *= at->density_inverse;
    for (int a = 0; a < DIRECTIONS; a++) {
        double viscosity = a == direction ? ALONG * C3C4 : C3C4;
        double momentum = change[1 + a] - velocity[a] * change[0];
        viscous += (viscosity - C1345) * velocity[a] * momentum;
        sum[1 + a] += convection * (along * momentum + velocity[a] * mass) + diffusion * viscosity * momentum;
    }
    sum[1 + direction] += convection * pressure;
    sum[4] += convection * (enthalpy * (mass - along * change[0]) + along * (change[4] + pressure));
    sum[4] += diffusion * viscous;
}

/* The diagonal leads in these systems, so rows need no exchange. */
void flow_solve_block(double matrix[QUANTITIES][QUANTITIES], double *right, int columns)
{
    for (int pivot = 0; pivot < QUANTITIES; pivot++) {
        double inverse = 1 / matrix[pivot][pivot];
        for (int m = pivot + 1; m < QUANTITIES; m++)
            matrix[pivot][m] *= inverse;
        for (int m = 0; m < columns; m++)
            right[pivot * columns + m] *= inverse;
        for (int other = 0; other < QUANTITIES; other++) {
            if (other == pivot)
                continue;
            double factor = matrix[other][pivot];
            for (int m = pivot + 1; m < QUANTITIES; m++)
                matrix[other][m] -= factor * matrix[pivot][m];
            for (int m = 0; m < columns; m++)
                right[other * columns + m] -= factor * right[pivot * columns + m];
        }
    }
}

int flow_verify(const struct flow *flow, const struct flow_norms *specified, const char *label)
{
    int wrong = 0;
    for (int m = 0; m < QUANTITIES; m++)
        wrong += report_value(label, "norm of the residual", flow->residual_norms[m], specified->residual[m], 1e-8);
    for (int m = 0; m < QUANTITIES; m++)
        wrong += report_value(label, "norm of the error", flow->error_norms[m], specified->error[m], 1e-8);
    return wrong;
}
