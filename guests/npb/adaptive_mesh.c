/* The mesh: which cubes there are, and how the points between them are numbered. */

#include "adaptive_mesh.h"

#include "environment.h"
#include "numbers.h"

enum { PLANE = POINTS * POINTS, HALF = POINTS - 1 /* the middle of an edge that is split */ };

static const int point_steps[3] = {1, POINTS, PLANE};

static int bit(int bits, int number)
{
    return bits >> number & 1;
}

/* The two axes beside one, in order. */
static void others(int axis, int other[2])
{
    other[0] = axis == 0 ? 1 : 0;
    other[1] = axis == 2 ? 1 : 2;
}

static void describe_sides(struct mesh *mesh)
{
    for (int number = 0; number < EDGES; number++) {
        struct edge *edge = &mesh->edges[number];
        int other[2], axis = number / 4;
        others(axis, other);
        edge->axis = axis;
        edge->from = bit(number, 0) << other[0] | bit(number, 1) << other[1];
        edge->to = edge->from | 1 << axis;
        edge->step = point_steps[axis];
        edge->point = 0;
        for (int side = 0; side < 2; side++)
            edge->point += bit(number, side) * (POINTS - 1) * point_steps[other[side]];
    }
    for (int number = 0; number < FACES; number++) {
        struct face *face = &mesh->faces[number];
        int axis = number / 2, end = number % 2;
        face->axis = axis;
        others(axis, face->along);
        face->point = end * (POINTS - 1) * point_steps[axis];
        for (int which = 0; which < 2; which++) {
            int along = face->along[which], across = face->along[1 - which];
            face->steps[which] = point_steps[along];
            for (int side = 0; side < 2; side++) {
                int is_lower = across < axis;
                face->edges[which][side] = 4 * along + (is_lower ? side | end << 1 : end | side << 1);
            }
        }
    }
}

void mesh_initialize(struct mesh *mesh, int levels, int capacity)
{
    mesh->levels = levels;
    mesh->capacity = capacity;
    mesh->elements = allocate(capacity * sizeof *mesh->elements);
    for (int level = 0; level < levels; level++)
        mesh->is_split[level] = allocate((size_t)1 << 3 * level);
    size_t side = (2 << levels) + 1;
    mesh->numbers = allocate(side * side * side * sizeof *mesh->numbers);
    size_t surface = (size_t)capacity * SURFACE_MAX, unknowns = (size_t)capacity * OWN;
    mesh->surface = allocate(surface * sizeof *mesh->surface);
    mesh->used = allocate(surface * sizeof *mesh->used);
    mesh->uses = allocate((unknowns + 1) * sizeof *mesh->uses);
    mesh->is_outer = allocate(unknowns);
    describe_sides(mesh);
}

static size_t cube_index(int level, const int place[3])
{
    return ((size_t)place[2] << level | place[1]) << level | place[0];
}

static int touches(const struct ball *ball, int level, const int place[3])
{
    double edge = 1.0 / (1 << level), distance = 0;
    for (int axis = 0; axis < 3; axis++) {
        double low = place[axis] * edge, outside = 0;
        if (ball->center[axis] < low)
            outside = low - ball->center[axis];
        else if (ball->center[axis] > low + edge)
            outside = ball->center[axis] - (low + edge);
        distance += outside * outside;
    }
    return distance < ball->radius * ball->radius;
}

/* A cube that is in parts needs neighbours of its own size at its faces and edges, so the cubes that contain these are
   in parts too. */
static void split_around(struct mesh *mesh, int level, const int place[3])
{
    for (int number = 0; number < 27; number++) {
        int offset[3] = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1}, parent[3], is_inside = 1;
        int corner = offset[0] && offset[1] && offset[2];
        for (int axis = 0; axis < 3; axis++) {
            int neighbour = place[axis] + offset[axis];
            is_inside &= neighbour >= 0 && neighbour < 1 << level;
            parent[axis] = neighbour >> 1;
        }
        if (is_inside && !corner)
            mesh->is_split[level - 1][cube_index(level - 1, parent)] = 1;
    }
}

/* From the smallest cubes up, as those that are in parts need others. */
static void split(struct mesh *mesh, const struct ball *ball)
{
    for (int level = 0; level < mesh->levels; level++)
        memset(mesh->is_split[level], 0, (size_t)1 << 3 * level);
    for (int level = mesh->levels - 1; level >= 0; level--) {
        int place[3];
        for (place[2] = 0; place[2] < 1 << level; place[2]++)
            for (place[1] = 0; place[1] < 1 << level; place[1]++)
                for (place[0] = 0; place[0] < 1 << level; place[0]++) {
                    unsigned char *is_split = &mesh->is_split[level][cube_index(level, place)];
                    *is_split |= touches(ball, level, place);
                    if (*is_split && level > 0)
                        split_around(mesh, level, place);
                }
    }
}

static void list_elements(struct mesh *mesh, int level, const int place[3])
{
    if (level < mesh->levels && mesh->is_split[level][cube_index(level, place)]) {
        for (int part = 0; part < CORNERS; part++) {
            int inner[3];
            for (int axis = 0; axis < 3; axis++)
                inner[axis] = 2 * place[axis] + bit(part, axis);
            list_elements(mesh, level + 1, inner);
        }
        return;
    }
    if (mesh->count == mesh->capacity) {
        print("the mesh has more than %d elements\n", mesh->capacity);
        leave(2);
    }
    struct element *element = &mesh->elements[mesh->count++];
    element->level = level;
    for (int axis = 0; axis < 3; axis++)
        element->place[axis] = place[axis] << (mesh->levels - level);
}

static int *number_at(const struct mesh *mesh, const int center[3])
{
    size_t side = (2 << mesh->levels) + 1;
    return &mesh->numbers[(center[2] * side + center[1]) * side + center[0]];
}

/* The place of a part of an element: 0, 1 or 2 for the low end, the middle and the high end of each axis. */
static void center_of(const struct mesh *mesh, const struct element *element, const int part[3], int center[3])
{
    for (int axis = 0; axis < 3; axis++)
        center[axis] = 2 * element->place[axis] + (part[axis] << (mesh->levels - element->level));
}

static void corner_part(int corner, int part[3])
{
    for (int axis = 0; axis < 3; axis++)
        part[axis] = 2 * bit(corner, axis);
}

static void edge_part(const struct edge *edge, int part[3])
{
    corner_part(edge->from, part);
    part[edge->axis] = 1;
}

static void face_part(const struct face *face, int part[3])
{
    part[face->axis] = face->point ? 2 : 0;
    part[face->along[0]] = part[face->along[1]] = 1;
}

/* Numbers the unknowns of a part, unless it has numbers. */
static void number(struct mesh *mesh, const int center[3], int unknowns)
{
    int *first = number_at(mesh, center);
    if (*first >= 0)
        return;
    *first = mesh->unknowns;
    int most = 2 << mesh->levels, is_outer = 0;
    for (int axis = 0; axis < 3; axis++)
        is_outer |= center[axis] == 0 || center[axis] == most;
    memset(mesh->is_outer + mesh->unknowns, is_outer, unknowns);
    mesh->unknowns += unknowns;
}

/* Whether a smaller element has a corner there. */
static int is_corner(const struct mesh *mesh, const int center[3])
{
    int first = *number_at(mesh, center);
    return first >= 0 && first < mesh->corners;
}

int mesh_surface_size(const struct element *element)
{
    int edges = __builtin_popcount(element->split_edges), faces = __builtin_popcount(element->split_faces);
    return CORNERS + EDGES * INNER + edges * (FINE - 2 - INNER) + FACES * INNER * INNER +
           faces * ((FINE - 2) * (FINE - 2) - INNER * INNER);
}

static void number_sides(struct mesh *mesh, struct element *element)
{
    int part[3], center[3];
    element->split_edges = element->split_faces = element->outer_faces = 0;
    for (int i = 0; i < EDGES; i++) {
        edge_part(&mesh->edges[i], part);
        center_of(mesh, element, part, center);
        if (is_corner(mesh, center))
            element->split_edges |= 1 << i;
        else
            number(mesh, center, INNER);
    }
    for (int i = 0; i < FACES; i++) {
        face_part(&mesh->faces[i], part);
        center_of(mesh, element, part, center);
        int across = center[i / 2];
        if (across == 0 || across == 2 << mesh->levels)
            element->outer_faces |= 1 << i;
        if (is_corner(mesh, center))
            element->split_faces |= 1 << i;
        else
            number(mesh, center, INNER * INNER);
    }
}

void mesh_fit(struct mesh *mesh, const struct ball *ball)
{
    const int origin[3] = {0, 0, 0};
    split(mesh, ball);
    mesh->count = 0;
    list_elements(mesh, 0, origin);
    size_t side = (2 << mesh->levels) + 1;
    memset(mesh->numbers, -1, side * side * side * sizeof *mesh->numbers);
    mesh->unknowns = 0;
    for (int i = 0; i < mesh->count; i++)
        for (int corner = 0; corner < CORNERS; corner++) {
            int part[3], center[3];
            corner_part(corner, part);
            center_of(mesh, &mesh->elements[i], part, center);
            number(mesh, center, 1);
        }
    mesh->corners = mesh->unknowns;
    for (int i = 0, first = 0; i < mesh->count; i++) {
        struct element *element = &mesh->elements[i];
        number_sides(mesh, element);
        element->first = first;
        first += mesh_surface_size(element);
    }
}

/* Along an edge that is split the points 1 to 7: which half, and which inner point of it; the middle belongs to
   neither. */
static int half_of(int point)
{
    return point > HALF;
}

static int inner_of(int point)
{
    return (point - 1) % HALF;
}

static int *list_edge(const struct mesh *mesh, const struct element *element, int which, int *list)
{
    const struct edge *edge = &mesh->edges[which];
    int part[3], center[3];
    edge_part(edge, part);
    center_of(mesh, element, part, center);
    int first = *number_at(mesh, center);
    if (!bit(element->split_edges, which)) {
        for (int i = 0; i < INNER; i++)
            *list++ = first + i;
        return list;
    }
    int quarter = 1 << (mesh->levels - element->level - 1), middle = center[edge->axis];
    for (int i = 1; i < FINE - 1; i++) {
        center[edge->axis] = middle + (half_of(i) ? quarter : -quarter);
        *list++ = i == HALF ? first : *number_at(mesh, center) + inner_of(i);
    }
    return list;
}

static int *list_face(const struct mesh *mesh, const struct element *element, int which, int *list)
{
    const struct face *face = &mesh->faces[which];
    int part[3], middle[3];
    face_part(face, part);
    center_of(mesh, element, part, middle);
    int first = *number_at(mesh, middle);
    if (!bit(element->split_faces, which)) {
        for (int i = 0; i < INNER * INNER; i++)
            *list++ = first + i;
        return list;
    }
    /* Four smaller faces, the four edges between them, and the corner in the middle. */
    int quarter = 1 << (mesh->levels - element->level - 1);
    for (int j = 1; j < FINE - 1; j++)
        for (int i = 1; i < FINE - 1; i++) {
            int center[3] = {middle[0], middle[1], middle[2]}, inner = 0;
            if (i != HALF) {
                center[face->along[0]] += half_of(i) ? quarter : -quarter;
                inner = inner_of(i);
            }
            if (j != HALF) {
                center[face->along[1]] += half_of(j) ? quarter : -quarter;
                inner += inner_of(j) * (i == HALF ? 1 : INNER);
            }
            *list++ = *number_at(mesh, center) + inner;
        }
    return list;
}

void mesh_list_surfaces(struct mesh *mesh, struct range elements)
{
    for (long i = elements.first; i < elements.end; i++) {
        const struct element *element = &mesh->elements[i];
        int *list = mesh->surface + element->first;
        for (int corner = 0; corner < CORNERS; corner++) {
            int part[3], center[3];
            corner_part(corner, part);
            center_of(mesh, element, part, center);
            *list++ = *number_at(mesh, center);
        }
        for (int edge = 0; edge < EDGES; edge++)
            list = list_edge(mesh, element, edge, list);
        for (int face = 0; face < FACES; face++)
            list = list_face(mesh, element, face, list);
    }
}

void mesh_invert(struct mesh *mesh)
{
    const struct element *last = &mesh->elements[mesh->count - 1];
    int size = last->first + mesh_surface_size(last), *uses = mesh->uses;
    memset(uses, 0, (mesh->unknowns + 1) * sizeof *uses);
    for (int i = 0; i < size; i++)
        uses[mesh->surface[i]]++;
    for (int unknown = 0, end = 0; unknown <= mesh->unknowns; unknown++)
        uses[unknown] = end += uses[unknown];
    /* From the back, so that what stood at the end of each goes down to its beginning. */
    for (int i = size - 1; i >= 0; i--)
        mesh->used[--uses[mesh->surface[i]]] = i;
}

/* The low bits of a number, two places apart. */
static unsigned spread(unsigned value)
{
    unsigned result = 0;
    for (int i = 0; i < LEVELS_MAX; i++)
        result |= (value >> i & 1) << 3 * i;
    return result;
}

static unsigned curve(const int place[3])
{
    return spread(place[0]) | spread(place[1]) << 1 | spread(place[2]) << 2;
}

const struct element *mesh_find(const struct mesh *mesh, const int place[3])
{
    unsigned on_curve = curve(place);
    int first = 0, end = mesh->count;
    while (end - first > 1) {
        int middle = (first + end) / 2;
        if (curve(mesh->elements[middle].place) <= on_curve)
            first = middle;
        else
            end = middle;
    }
    return &mesh->elements[first];
}

/* Where the unknowns of an element's sides begin in its list. */
struct sides {
    int edges[EDGES], faces[FACES];
};

static struct sides sides_of(const struct element *element)
{
    struct sides sides;
    int place = CORNERS;
    for (int edge = 0; edge < EDGES; edge++) {
        sides.edges[edge] = place;
        place += bit(element->split_edges, edge) ? FINE - 2 : INNER;
    }
    for (int face = 0; face < FACES; face++) {
        sides.faces[face] = place;
        place += bit(element->split_faces, face) ? (FINE - 2) * (FINE - 2) : INNER * INNER;
    }
    return sides;
}

static void read_line(const struct edge *edge, const double *unknowns, const double *inner, double line[FINE])
{
    line[0] = unknowns[edge->from];
    memcpy(line + 1, inner, (FINE - 2) * sizeof *line);
    line[FINE - 1] = unknowns[edge->to];
}

static void add_line(const struct edge *edge, double *unknowns, double *inner, const double line[FINE])
{
    unknowns[edge->from] += line[0];
    for (int i = 1; i < FINE - 1; i++)
        inner[i - 1] += line[i];
    unknowns[edge->to] += line[FINE - 1];
}

static void split_face_to_points(const struct mesh *mesh, const struct spectral *spectral, const struct face *face,
                                 const struct sides *sides, const double *unknowns, const double *inner, double *points)
{
    double grid[FINE][FINE], across[FINE][INNER];
    for (int end = 0; end < 2; end++) {
        int along = face->edges[0][end], upwards = face->edges[1][end], far = end * (FINE - 1);
        read_line(&mesh->edges[along], unknowns, unknowns + sides->edges[along], grid[far]);
        double line[FINE];
        read_line(&mesh->edges[upwards], unknowns, unknowns + sides->edges[upwards], line);
        for (int j = 0; j < FINE; j++)
            grid[j][far] = line[j];
    }
    for (int j = 1; j < FINE - 1; j++)
        memcpy(&grid[j][1], inner + (FINE - 2) * (j - 1), (FINE - 2) * sizeof(double));
    for (int j = 0; j < FINE; j++)
        for (int i = 0; i < INNER; i++) {
            double sum = 0;
            for (int k = 0; k < FINE; k++)
                sum += spectral->mortar[i][k] * grid[j][k];
            across[j][i] = sum;
        }
    for (int j = 0; j < INNER; j++)
        for (int i = 0; i < INNER; i++) {
            double sum = 0;
            for (int k = 0; k < FINE; k++)
                sum += spectral->mortar[j][k] * across[k][i];
            points[face->point + (i + 1) * face->steps[0] + (j + 1) * face->steps[1]] = sum;
        }
}

static void split_face_to_unknowns(const struct mesh *mesh, const struct spectral *spectral, const struct face *face,
                                   const struct sides *sides, const double *points, double *unknowns, double *inner)
{
    double grid[FINE][FINE], across[FINE][INNER];
    for (int k = 0; k < FINE; k++)
        for (int i = 0; i < INNER; i++) {
            double sum = 0;
            for (int j = 0; j < INNER; j++)
                sum += spectral->mortar[j][k] *
                       points[face->point + (i + 1) * face->steps[0] + (j + 1) * face->steps[1]];
            across[k][i] = sum;
        }
    for (int j = 0; j < FINE; j++)
        for (int k = 0; k < FINE; k++) {
            double sum = 0;
            for (int i = 0; i < INNER; i++)
                sum += spectral->mortar[i][k] * across[j][i];
            grid[j][k] = sum;
        }
    for (int end = 0; end < 2; end++) {
        int along = face->edges[0][end], upwards = face->edges[1][end], far = end * (FINE - 1);
        add_line(&mesh->edges[along], unknowns, unknowns + sides->edges[along], grid[far]);
        /* Without its ends, which the other two edges have brought. */
        for (int j = 1; j < FINE - 1; j++)
            unknowns[sides->edges[upwards] + j - 1] += grid[j][far];
    }
    for (int j = 1; j < FINE - 1; j++)
        for (int i = 1; i < FINE - 1; i++)
            inner[(FINE - 2) * (j - 1) + i - 1] += grid[j][i];
}

static int corner_point(int corner)
{
    int point = 0;
    for (int axis = 0; axis < 3; axis++)
        point += bit(corner, axis) * (POINTS - 1) * point_steps[axis];
    return point;
}

void mesh_to_points(const struct mesh *mesh, const struct spectral *spectral, const struct element *element,
                    const double *restrict unknowns, double *restrict points)
{
    struct sides sides = sides_of(element);
    for (int corner = 0; corner < CORNERS; corner++)
        points[corner_point(corner)] = unknowns[corner];
    for (int which = 0; which < EDGES; which++) {
        const struct edge *edge = &mesh->edges[which];
        const double *inner = unknowns + sides.edges[which];
        double line[FINE];
        int is_split = bit(element->split_edges, which);
        if (is_split)
            read_line(edge, unknowns, inner, line);
        for (int i = 0; i < INNER; i++) {
            double value = is_split ? 0 : inner[i];
            for (int k = 0; is_split && k < FINE; k++)
                value += spectral->mortar[i][k] * line[k];
            points[edge->point + (i + 1) * edge->step] = value;
        }
    }
    for (int which = 0; which < FACES; which++) {
        const struct face *face = &mesh->faces[which];
        const double *inner = unknowns + sides.faces[which];
        if (bit(element->split_faces, which)) {
            split_face_to_points(mesh, spectral, face, &sides, unknowns, inner, points);
            continue;
        }
        for (int j = 1; j <= INNER; j++)
            for (int i = 1; i <= INNER; i++)
                points[face->point + i * face->steps[0] + j * face->steps[1]] = *inner++;
    }
}

void mesh_to_unknowns(const struct mesh *mesh, const struct spectral *spectral, const struct element *element,
                      const double *restrict points, double *restrict unknowns)
{
    struct sides sides = sides_of(element);
    memset(unknowns, 0, mesh_surface_size(element) * sizeof *unknowns);
    for (int corner = 0; corner < CORNERS; corner++)
        unknowns[corner] = points[corner_point(corner)];
    for (int which = 0; which < EDGES; which++) {
        const struct edge *edge = &mesh->edges[which];
        double *inner = unknowns + sides.edges[which], line[FINE] = {0};
        int is_split = bit(element->split_edges, which);
        for (int i = 0; i < INNER; i++) {
            double value = points[edge->point + (i + 1) * edge->step];
            for (int k = 0; is_split && k < FINE; k++)
                line[k] += spectral->mortar[i][k] * value;
            if (!is_split)
                inner[i] = value;
        }
        if (is_split)
            add_line(edge, unknowns, inner, line);
    }
    for (int which = 0; which < FACES; which++) {
        const struct face *face = &mesh->faces[which];
        double *inner = unknowns + sides.faces[which];
        if (bit(element->split_faces, which)) {
            split_face_to_unknowns(mesh, spectral, face, &sides, points, unknowns, inner);
            continue;
        }
        for (int j = 1; j <= INNER; j++)
            for (int i = 1; i <= INNER; i++)
                *inner++ = points[face->point + i * face->steps[0] + j * face->steps[1]];
    }
}
