/* UA: heat from a ball that moves through a cube, on a mesh that is fine where the ball is (NPB 3, Feng and others,
   "Unstructured Adaptive (UA) NAS Parallel Benchmark", NAS-04-006).

   A step carries the temperature along, by a Runge-Kutta scheme in each element alone, and then lets it diffuse,
   implicitly and by a fixed number of conjugate gradients over all elements. These meet in the mortars' unknowns: each
   element sums up its part for them, and each unknown takes its parts from the elements in their order, so that the
   result does not hang on the number of threads. */

#include "adaptive_mesh.h"
#include "kernel.h"
#include "numbers.h"

enum { GRADIENTS = 10, STEPS_OF_A_MESH = 5 };

static const double VISCOSITY = 0.005, VELOCITY = 3, BEGIN[3] = {3.0 / 7, 2.0 / 7, 2.0 / 7};

static const struct {
    int levels, steps, capacity;
    double radius, integral;
} problems[CLASSES] = {
    [CLASS_S] = {4, 50, 250, 0.040, 0.1890013110962e-2},
    [CLASS_W] = {5, 100, 700, 0.060, 0.2569794837076e-4},
    [CLASS_A] = {6, 200, 2400, 0.076, 0.8939996281443e-4},
};

/* What a conjugate gradient has for the inner points of elements, and for the unknowns between them. */
struct field {
    double *points, *unknowns;
};

/* The diagonal of the stiffness and of the mass matrix on a cube of edge 2. */
struct diagonal {
    double stiffness, mass;
};

struct problem {
    enum problem_class class;
    struct spectral spectral;
    struct mesh mesh;
    /* The elements before the mesh was fitted last, and their temperatures. */
    struct mesh before;
    double *temperature, *temperature_before;
    double time_step, integral;
    struct field residual, direction, product, solution;
    double *inverse_diagonal; /* of unknowns */
    double *shares;           /* one over how many elements have a value for the unknown */
    double *parts;            /* of elements for the unknowns, as their surfaces are listed */
    int inner[INNER * INNER * INNER]; /* points of an element that no other has */
    struct diagonal points[ELEMENT], faces[FINE - 2][FINE - 2], edges[3][FINE - 2], corners[8][8];
};

static double edge_of(const struct element *element)
{
    return 1.0 / (1 << element->level);
}

/* What a column of values contributes to the diagonal. */
static struct diagonal diagonal_of(const struct spectral *spectral, const double *column)
{
    double product[ELEMENT];
    struct diagonal diagonal = {0, 0};
    spectral_stiffness(spectral, column, product);
    for (int point = 0; point < ELEMENT; point++) {
        diagonal.stiffness += column[point] * product[point];
        diagonal.mass += column[point] * column[point] * spectral->volumes[point];
    }
    return diagonal;
}

/* An unknown on a side that is split has values at several points of the larger element. All sides are alike, so one of
   each kind will do: the face and the edges at the origin. */
static void prepare_diagonals(struct problem *problem)
{
    static const int steps[3] = {1, POINTS, POINTS * POINTS};
    const struct spectral *spectral = &problem->spectral;
    const double(*mortar)[FINE] = spectral->mortar;
    double column[ELEMENT];
    for (int point = 0; point < ELEMENT; point++) {
        memset(column, 0, sizeof column);
        column[point] = 1;
        problem->points[point] = diagonal_of(spectral, column);
    }
    for (int t = 1; t < FINE - 1; t++)
        for (int s = 1; s < FINE - 1; s++) {
            memset(column, 0, sizeof column);
            for (int j = 0; j < INNER; j++)
                for (int i = 0; i < INNER; i++)
                    column[(i + 1) * steps[0] + (j + 1) * steps[1]] = mortar[i][s] * mortar[j][t];
            problem->faces[t - 1][s - 1] = diagonal_of(spectral, column);
        }
    for (int faces = 0; faces < 3; faces++)
        for (int s = 1; s < FINE - 1; s++) {
            memset(column, 0, sizeof column);
            for (int i = 0; i < INNER; i++) {
                column[(i + 1) * steps[0]] = mortar[i][s];
                for (int face = 0; face < faces; face++)
                    for (int j = 0; j < INNER; j++)
                        column[(i + 1) * steps[0] + (j + 1) * steps[face + 1]] = mortar[i][s] * mortar[j][0];
            }
            problem->edges[faces][s - 1] = diagonal_of(spectral, column);
        }
    for (int edges = 0; edges < 8; edges++)
        for (int faces = 0; faces < 8; faces++) {
            memset(column, 0, sizeof column);
            column[0] = 1;
            for (int axis = 0; axis < 3; axis++)
                for (int i = 0; i < INNER; i++) {
                    if (edges >> axis & 1)
                        column[(i + 1) * steps[axis]] = mortar[i][0];
                    for (int j = 0; faces >> axis & 1 && j < INNER; j++)
                        column[(i + 1) * steps[(axis + 1) % 3] + (j + 1) * steps[(axis + 2) % 3]] =
                            mortar[i][0] * mortar[j][0];
                }
            problem->corners[edges][faces] = diagonal_of(spectral, column);
        }
}

static struct field field_for(const struct mesh *mesh)
{
    return (struct field){
        allocate((size_t)mesh->capacity * ELEMENT * sizeof(double)),
        allocate((size_t)mesh->capacity * OWN * sizeof(double)),
    };
}

static void *prepare(enum problem_class class, const struct team *team)
{
    (void)team;
    struct problem *problem = allocate(sizeof *problem);
    struct mesh *mesh = &problem->mesh;
    int capacity = problems[class].capacity, levels = problems[class].levels;
    size_t points = (size_t)capacity * ELEMENT * sizeof(double);
    problem->class = class;
    problem->time_step = 0.04 / (1 << levels);
    spectral_initialize(&problem->spectral);
    mesh_initialize(mesh, levels, capacity);
    problem->before.elements = allocate(capacity * sizeof *mesh->elements);
    problem->temperature = allocate(points);
    problem->temperature_before = allocate(points);
    struct field *fields[] = {&problem->residual, &problem->direction, &problem->product, &problem->solution};
    for (int i = 0; i < 4; i++)
        *fields[i] = field_for(mesh);
    problem->inverse_diagonal = field_for(mesh).unknowns;
    problem->shares = field_for(mesh).unknowns;
    problem->parts = allocate((size_t)capacity * SURFACE_MAX * sizeof(double));
    for (int i = 0; i < INNER * INNER * INNER; i++)
        problem->inner[i] =
            (i % INNER + 1) + (i / INNER % INNER + 1) * POINTS + (i / (INNER * INNER) + 1) * POINTS * POINTS;
    prepare_diagonals(problem);
    return problem;
}

static struct ball ball_at(const struct problem *problem, double time)
{
    struct ball ball = {.radius = problems[problem->class].radius};
    for (int axis = 0; axis < 3; axis++)
        ball.center[axis] = BEGIN[axis] + VELOCITY * time;
    return ball;
}

/* The sum of the elements' parts for an unknown. */
static double gathered(const struct problem *problem, long unknown)
{
    const struct mesh *mesh = &problem->mesh;
    double sum = 0;
    for (int use = mesh->uses[unknown]; use < mesh->uses[unknown + 1]; use++)
        sum += problem->parts[mesh->used[use]];
    return sum;
}

/* The values at an element's surface, from the unknowns. */
static void set_surface(const struct problem *problem, const struct element *element, const double *unknowns,
                        double *points)
{
    const int *surface = problem->mesh.surface + element->first;
    double own[SURFACE_MAX];
    int size = mesh_surface_size(element);
    for (int i = 0; i < size; i++)
        own[i] = unknowns[surface[i]];
    mesh_to_points(&problem->mesh, &problem->spectral, element, own, points);
}

/* The implicit operator in an element: diffusion, and what there is over the time step. */
static void apply(const struct problem *problem, const struct element *element, const double *restrict values,
                  double *restrict result)
{
    double half = edge_of(element) / 2, mass = half * half * half / problem->time_step;
    spectral_stiffness(&problem->spectral, values, result);
    for (int point = 0; point < ELEMENT; point++)
        result[point] =
            VISCOSITY * half * result[point] + mass * problem->spectral.volumes[point] * values[point];
}

/* The temperature in a cube that is an old element, or within one, or made of several. */
static void sample(const struct problem *problem, int level, const int place[3], double *restrict values)
{
    const struct mesh *before = &problem->before;
    const struct spectral *spectral = &problem->spectral;
    const struct element *old = mesh_find(before, place);
    int levels = problem->mesh.levels;
    if (old->level <= level) {
        memcpy(values, problem->temperature_before + (old - before->elements) * ELEMENT, ELEMENT * sizeof *values);
        for (int between = old->level + 1; between <= level; between++) {
            double coarse[ELEMENT];
            const double(*halves[3])[POINTS];
            for (int axis = 0; axis < 3; axis++)
                halves[axis] = spectral->refined[place[axis] >> (levels - between) & 1];
            memcpy(coarse, values, sizeof coarse);
            spectral_transform(halves[0], halves[1], halves[2], coarse, values);
        }
        return;
    }
    memset(values, 0, ELEMENT * sizeof *values);
    for (int part = 0; part < CORNERS; part++) {
        double fine[ELEMENT], merged[ELEMENT];
        int inner[3];
        const double(*halves[3])[POINTS];
        for (int axis = 0; axis < 3; axis++) {
            int half = part >> axis & 1;
            inner[axis] = place[axis] + (half << (levels - level - 1));
            halves[axis] = spectral->merged[half];
        }
        sample(problem, level + 1, inner, fine);
        spectral_transform(halves[0], halves[1], halves[2], fine, merged);
        for (int point = 0; point < ELEMENT; point++)
            values[point] += merged[point];
    }
}

static double scaled(struct diagonal diagonal, double half, double time_step)
{
    return VISCOSITY * half * diagonal.stiffness + half * half * half / time_step * diagonal.mass;
}

/* An element's parts of the diagonal of all unknowns, in the order of its surface's list. */
static void add_diagonal(const struct problem *problem, const struct element *element, double *parts)
{
    const struct mesh *mesh = &problem->mesh;
    double half = edge_of(element) / 2;
    for (int corner = 0; corner < CORNERS; corner++) {
        int edges = 0, faces = 0;
        for (int which = 0; which < EDGES; which++)
            if (mesh->edges[which].from == corner || mesh->edges[which].to == corner)
                edges |= (element->split_edges >> which & 1) << mesh->edges[which].axis;
        for (int axis = 0; axis < 3; axis++)
            faces |= (element->split_faces >> (2 * axis + (corner >> axis & 1)) & 1) << axis;
        *parts++ = scaled(problem->corners[edges][faces], half, problem->time_step);
    }
    for (int which = 0; which < EDGES; which++) {
        int faces = 0;
        for (int face = 0; face < FACES; face++)
            for (int i = 0; i < 4; i++)
                faces += mesh->faces[face].edges[i / 2][i % 2] == which ? element->split_faces >> face & 1 : 0;
        int is_split = element->split_edges >> which & 1;
        for (int i = 0; i < (is_split ? FINE - 2 : INNER); i++)
            *parts++ = scaled(is_split ? problem->edges[faces][i] : problem->points[i + 1], half, problem->time_step);
    }
    for (int which = 0; which < FACES; which++) {
        int is_split = element->split_faces >> which & 1, side = is_split ? FINE - 2 : INNER;
        for (int j = 0; j < side; j++)
            for (int i = 0; i < side; i++)
                *parts++ = scaled(is_split ? problem->faces[j][i] : problem->points[i + 1 + POINTS * (j + 1)], half,
                                  problem->time_step);
    }
}

/* An element's values for those unknowns that are its own points: 0 for others. Corners count as often as faces there
   are not split. With `values` zero: how much they count. */
static void add_own(const struct problem *problem, const struct element *element, const double *values, double *parts)
{
    const struct mesh *mesh = &problem->mesh;
    double ones[ELEMENT];
    for (int point = 0; !values && point < ELEMENT; point++)
        ones[point] = 1;
    const double *points = values ? values : ones;
    for (int corner = 0; corner < CORNERS; corner++) {
        int faces = 3, point = 0, step = POINTS - 1;
        for (int axis = 0; axis < 3; axis++, step *= POINTS) {
            int end = corner >> axis & 1;
            faces -= element->split_faces >> (2 * axis + end) & 1;
            point += end * step;
        }
        *parts++ = points[point] * faces / 3;
    }
    for (int which = 0; which < EDGES; which++) {
        const struct edge *edge = &mesh->edges[which];
        int is_split = element->split_edges >> which & 1;
        for (int i = 0; i < (is_split ? FINE - 2 : INNER); i++)
            *parts++ = is_split ? 0 : points[edge->point + (i + 1) * edge->step];
    }
    for (int which = 0; which < FACES; which++) {
        const struct face *face = &mesh->faces[which];
        int is_split = element->split_faces >> which & 1, side = is_split ? FINE - 2 : INNER;
        for (int j = 1; j <= side; j++)
            for (int i = 1; i <= side; i++)
                *parts++ = is_split ? 0 : points[face->point + i * face->steps[0] + j * face->steps[1]];
    }
}

/* Fits the mesh to the ball, and takes the temperature along unless it is zero anyway. */
static void adapt(struct problem *problem, struct team *team, int thread, double time, int begins)
{
    struct mesh *mesh = &problem->mesh;
    team_barrier(team);
    if (thread == 0) {
        struct element *elements = mesh->elements;
        double *temperature = problem->temperature;
        struct ball ball = ball_at(problem, time);
        problem->before.count = mesh->count;
        mesh->elements = problem->before.elements;
        problem->before.elements = elements;
        problem->temperature = problem->temperature_before;
        problem->temperature_before = temperature;
        mesh_fit(mesh, &ball);
    }
    team_barrier(team);
    struct range elements = team_share(team, thread, mesh->count), unknowns = team_share(team, thread, mesh->unknowns);
    mesh_list_surfaces(mesh, elements);
    for (long i = elements.first; i < elements.end; i++) {
        const struct element *element = &mesh->elements[i];
        double *values = problem->temperature + i * ELEMENT;
        if (begins)
            memset(values, 0, ELEMENT * sizeof *values);
        else
            sample(problem, element->level, element->place, values);
        add_diagonal(problem, element, problem->parts + element->first);
    }
    team_barrier(team);
    if (thread == 0)
        mesh_invert(mesh);
    team_barrier(team);
    for (long i = unknowns.first; i < unknowns.end; i++)
        problem->inverse_diagonal[i] = mesh->is_outer[i] ? 0 : 1 / gathered(problem, i);
    team_barrier(team);
    for (long i = elements.first; i < elements.end; i++)
        add_own(problem, &mesh->elements[i], NULL, problem->parts + mesh->elements[i].first);
    team_barrier(team);
    for (long i = unknowns.first; i < unknowns.end; i++)
        problem->shares[i] = 1 / gathered(problem, i);
}

/* What heats and what carries away, at the points of an element. */
static void rate_of_change(const struct problem *problem, const struct element *element, const struct ball *ball,
                           const double *restrict values, double *restrict rates)
{
    static const int steps[3] = {1, POINTS, POINTS * POINTS};
    const struct spectral *spectral = &problem->spectral;
    double edge = edge_of(element), smallest = 1.0 / (1 << problem->mesh.levels);
    double squares[3][POINTS];
    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < POINTS; i++) {
            double place = element->place[axis] * smallest + (spectral->nodes[i] + 1) / 2 * edge - ball->center[axis];
            squares[axis][i] = place * place;
        }
    double along = VELOCITY * 2 / edge;
    for (int z = 0; z < POINTS; z++)
        for (int y = 0; y < POINTS; y++)
            for (int x = 0; x < POINTS; x++) {
                const double *x_line = values + y * steps[1] + z * steps[2], *y_line = values + x + z * steps[2],
                             *z_line = values + x + y * steps[1];
                double slope = 0;
                for (int i = 0; i < POINTS; i++)
                    slope += spectral->derivative[x][i] * x_line[i] +
                             spectral->derivative[y][i] * y_line[i * steps[1]] +
                             spectral->derivative[z][i] * z_line[i * steps[2]];
                double square = squares[0][x] + squares[1][y] + squares[2][z], heat = 0;
                if (square <= ball->radius * ball->radius)
                    heat = cosine(square_root(square) / ball->radius * PI) + 1;
                rates[x + y * steps[1] + z * steps[2]] = heat - along * slope;
            }
}

static void clear_outer_faces(const struct mesh *mesh, const struct element *element, double *points)
{
    for (int which = 0; which < FACES; which++) {
        const struct face *face = &mesh->faces[which];
        for (int i = 0; element->outer_faces >> which & 1 && i < POINTS * POINTS; i++)
            points[face->point + i % POINTS * face->steps[0] + i / POINTS * face->steps[1]] = 0;
    }
}

/* The classical scheme of fourth order. */
static void convect(const struct problem *problem, const struct element *element, const struct ball balls[3],
                    double *restrict values)
{
    static const struct {
        int ball;
        double ahead, weight;
    } stages[] = {{0, 0, 1.0 / 6}, {1, 0.5, 1.0 / 3}, {1, 0.5, 1.0 / 3}, {2, 1, 1.0 / 6}};
    double rates[ELEMENT] = {0}, ahead[ELEMENT], sum[ELEMENT] = {0};
    for (int stage = 0; stage < 4; stage++) {
        for (int point = 0; point < ELEMENT; point++)
            ahead[point] = values[point] + stages[stage].ahead * problem->time_step * rates[point];
        rate_of_change(problem, element, &balls[stages[stage].ball], ahead, rates);
        for (int point = 0; point < ELEMENT; point++)
            sum[point] += stages[stage].weight * rates[point];
    }
    clear_outer_faces(&problem->mesh, element, sum);
    for (int point = 0; point < ELEMENT; point++)
        values[point] += problem->time_step * sum[point];
}

/* Carries the temperature along, and leaves what the implicit part is still off by in `residual`: first for the mean of
   what neighbours have between them. */
static void carry(struct problem *problem, struct team *team, int thread, double time)
{
    const struct mesh *mesh = &problem->mesh;
    struct range elements = team_share(team, thread, mesh->count), unknowns = team_share(team, thread, mesh->unknowns);
    const struct ball balls[3] = {ball_at(problem, time), ball_at(problem, time + problem->time_step / 2),
                                  ball_at(problem, time + problem->time_step)};
    team_barrier(team);
    for (long i = elements.first; i < elements.end; i++) {
        const struct element *element = &mesh->elements[i];
        double *values = problem->temperature + i * ELEMENT, *residual = problem->residual.points + i * ELEMENT;
        double half = edge_of(element) / 2, mass = half * half * half / problem->time_step;
        convect(problem, element, balls, values);
        for (int point = 0; point < ELEMENT; point++)
            residual[point] = mass * problem->spectral.volumes[point] * values[point];
        add_own(problem, element, values, problem->parts + element->first);
    }
    team_barrier(team);
    for (long i = unknowns.first; i < unknowns.end; i++)
        problem->solution.unknowns[i] = gathered(problem, i) * problem->shares[i];
    team_barrier(team);
    for (long i = elements.first; i < elements.end; i++) {
        const struct element *element = &mesh->elements[i];
        double *values = problem->temperature + i * ELEMENT, *residual = problem->residual.points + i * ELEMENT;
        double product[ELEMENT];
        set_surface(problem, element, problem->solution.unknowns, values);
        apply(problem, element, values, product);
        for (int point = 0; point < ELEMENT; point++)
            residual[point] -= product[point];
        mesh_to_unknowns(mesh, &problem->spectral, element, residual, problem->parts + element->first);
    }
    team_barrier(team);
    for (long i = unknowns.first; i < unknowns.end; i++)
        problem->residual.unknowns[i] = mesh->is_outer[i] ? 0 : gathered(problem, i);
}

/* Turns the direction of search: by so much of the one before. Answers the residual's length in the metric of the
   diagonal. */
static double turn(struct problem *problem, struct team *team, int thread, double before)
{
    const struct mesh *mesh = &problem->mesh;
    struct range elements = team_share(team, thread, mesh->count), unknowns = team_share(team, thread, mesh->unknowns);
    double sum = 0, *product = problem->product.points;
    for (long i = elements.first; i < elements.end; i++) {
        double half = edge_of(&mesh->elements[i]) / 2;
        for (int inner = 0; inner < INNER * INNER * INNER; inner++) {
            int point = problem->inner[inner];
            double residual = problem->residual.points[i * ELEMENT + point];
            double step = residual / scaled(problem->points[point], half, problem->time_step);
            product[i * ELEMENT + point] = step;
            sum += residual * step;
        }
    }
    for (long i = unknowns.first; i < unknowns.end; i++) {
        double residual = problem->residual.unknowns[i];
        problem->product.unknowns[i] = residual * problem->inverse_diagonal[i];
        sum += residual * problem->product.unknowns[i];
    }
    sum = team_sum(team, thread, sum);
    double keep = before > 0 ? sum / before : 0;
    for (long i = elements.first * ELEMENT; i < elements.end * ELEMENT; i++)
        problem->direction.points[i] = product[i] + (before > 0 ? keep * problem->direction.points[i] : 0);
    for (long i = unknowns.first; i < unknowns.end; i++)
        problem->direction.unknowns[i] =
            problem->product.unknowns[i] + (before > 0 ? keep * problem->direction.unknowns[i] : 0);
    return sum;
}

static void diffuse(struct problem *problem, struct team *team, int thread)
{
    const struct mesh *mesh = &problem->mesh;
    struct range elements = team_share(team, thread, mesh->count), unknowns = team_share(team, thread, mesh->unknowns);
    long first = elements.first * ELEMENT, count = (elements.end - elements.first) * ELEMENT;
    struct field *residual = &problem->residual, *direction = &problem->direction, *product = &problem->product,
                 *solution = &problem->solution;
    memset(solution->points + first, 0, count * sizeof(double));
    memset(solution->unknowns + unknowns.first, 0, (unknowns.end - unknowns.first) * sizeof(double));
    double length = 0;
    for (int iteration = 0; iteration < GRADIENTS; iteration++) {
        length = turn(problem, team, thread, length);
        team_barrier(team);
        double sum = 0;
        for (long i = elements.first; i < elements.end; i++) {
            const struct element *element = &mesh->elements[i];
            double *along = direction->points + i * ELEMENT, *result = product->points + i * ELEMENT;
            set_surface(problem, element, direction->unknowns, along);
            apply(problem, element, along, result);
            mesh_to_unknowns(mesh, &problem->spectral, element, result, problem->parts + element->first);
            for (int inner = 0; inner < INNER * INNER * INNER; inner++)
                sum += along[problem->inner[inner]] * result[problem->inner[inner]];
        }
        team_barrier(team);
        for (long i = unknowns.first; i < unknowns.end; i++) {
            product->unknowns[i] = mesh->is_outer[i] ? 0 : gathered(problem, i);
            sum += direction->unknowns[i] * product->unknowns[i];
        }
        double step = length / team_sum(team, thread, sum);
        for (long i = first; i < first + count; i++) {
            solution->points[i] += step * direction->points[i];
            residual->points[i] -= step * product->points[i];
        }
        for (long i = unknowns.first; i < unknowns.end; i++) {
            solution->unknowns[i] += step * direction->unknowns[i];
            residual->unknowns[i] -= step * product->unknowns[i];
        }
    }
    team_barrier(team);
    for (long i = elements.first; i < elements.end; i++) {
        double *change = solution->points + i * ELEMENT, *values = problem->temperature + i * ELEMENT;
        set_surface(problem, &mesh->elements[i], solution->unknowns, change);
        for (int point = 0; point < ELEMENT; point++)
            values[point] += change[point];
    }
}

static void start(void *state, struct team *team, int thread)
{
    adapt(state, team, thread, 0, 1);
}

static void work(void *state, struct team *team, int thread)
{
    struct problem *problem = state;
    long all = problems[problem->class].steps;
    double time = 0;
    for (long step = 1; step <= team_steps(team, all); step++) {
        carry(problem, team, thread, time);
        diffuse(problem, team, thread);
        time += problem->time_step;
        if (step % STEPS_OF_A_MESH == 0 && step < all)
            adapt(problem, team, thread, time, 0);
        if (thread == 0)
            environment_step();
    }
}

static void finish(void *state, struct team *team, int thread)
{
    struct problem *problem = state;
    const struct mesh *mesh = &problem->mesh;
    struct range elements = team_share(team, thread, mesh->count);
    double sum = 0;
    for (long i = elements.first; i < elements.end; i++) {
        double half = edge_of(&mesh->elements[i]) / 2, part = 0;
        for (int point = 0; point < ELEMENT; point++)
            part += problem->spectral.volumes[point] * problem->temperature[i * ELEMENT + point];
        sum += half * half * half * part;
    }
    sum = team_sum(team, thread, sum);
    if (thread == 0)
        problem->integral = sum;
}

static int verify(void *state, const char *label)
{
    const struct problem *problem = state;
    return report_value(label, "integral of the temperature", problem->integral, problems[problem->class].integral,
                        1e-8);
}

const struct kernel unstructured_adaptive = {"ua", "unstructured adaptive mesh", prepare, start, work, finish, verify};
