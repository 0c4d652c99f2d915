/* A mesh of cubes that are small where they touch a ball, and what its elements share.

   The unit cube is halved in each direction again and again wherever a part touches the ball, down to the smallest
   size; and where two elements that share a face or a part of an edge would differ by more than a factor of two.
   Elements are in the order of a Morton curve.

   Elements meet in mortars: corners, edges and faces of the smaller of the elements that meet there. Their points have
   one value each, a global unknown. The values of a larger element at an edge or a face that smaller ones meet are
   those of a projection of these unknowns (spectral.h); all its others are unknowns themselves. */

#ifndef ADAPTIVE_MESH_H
#define ADAPTIVE_MESH_H

#include "spectral.h"
#include "team.h"

enum {
    CORNERS = 8,
    EDGES = 12,
    FACES = 6,
    LEVELS_MAX = 6,
    /* The points of an element's surface; every unknown is one of some element. */
    OWN = CORNERS + EDGES * INNER + FACES * INNER * INNER,
    /* The unknowns of an element's surface, if smaller elements meet all of it. */
    SURFACE_MAX = CORNERS + EDGES * (FINE - 2) + FACES * (FINE - 2) * (FINE - 2),
};

struct ball {
    double center[3], radius;
};

struct element {
    int level;    /* its edge is 2 to minus this power */
    int place[3]; /* of its lowest corner, in edges of the smallest elements */
    /* Which of its edges and faces smaller elements meet, and which of its faces bound the domain: a bit for each. */
    int split_edges, split_faces, outer_faces;
    int first; /* of its surface among all surfaces */
};

/* Edge `4 axis + i` of an element goes along an axis; bit 0 of i says at which end it is of the lower one of the other
   two axes, bit 1 of the higher one. Corner bits are of x, y and z. Face `2 axis + end` bounds an axis. */
struct edge {
    int axis, from, to;   /* corners */
    int point, step;      /* its first point among those of an element, and from one to the next */
};

struct face {
    int axis, along[2];   /* the axes that it extends in */
    int edges[2][2];      /* along the first of them at each end of the second, and the other way round */
    int point, steps[2];
};

struct mesh {
    int levels, capacity;
    int count; /* of elements */
    struct element *elements;
    /* Of the cubes of each level above the last whether they are in parts. */
    unsigned char *is_split[LEVELS_MAX];
    /* The first unknown of what has its center at a place, in halves of the smallest edges; -1: none. */
    int *numbers;
    /* Unknowns: first those at corners. */
    int corners, unknowns;
    unsigned char *is_outer; /* whether they bound the domain */
    /* The unknowns of all elements' surfaces: of each its corners, edges and faces. */
    int *surface;
    /* Where each unknown is in them: those of unknown i from `uses[i]` on, up to `uses[i + 1]`. */
    int *uses, *used;
    struct edge edges[EDGES];
    struct face faces[FACES];
};

/* Room for so many elements. */
void mesh_initialize(struct mesh *mesh, int levels, int capacity);

/* Makes the elements and numbers the unknowns; one thread calls it. */
void mesh_fit(struct mesh *mesh, const struct ball *ball);

/* Lists the unknowns of some of the elements. */
void mesh_list_surfaces(struct mesh *mesh, struct range elements);

/* Notes where each unknown is in the lists; one thread calls it. */
void mesh_invert(struct mesh *mesh);

/* The element that contains a smallest one's place. */
const struct element *mesh_find(const struct mesh *mesh, const int place[3]);

/* How many unknowns an element's surface has. */
int mesh_surface_size(const struct element *element);

/* From the values of an element's unknowns, as they are listed, to those at the points of its surface. */
void mesh_to_points(const struct mesh *mesh, const struct spectral *spectral, const struct element *element,
                    const double *restrict unknowns, double *restrict points);

/* The transpose of it: from what is at the points of the surface to sums for the unknowns. */
void mesh_to_unknowns(const struct mesh *mesh, const struct spectral *spectral, const struct element *element,
                      const double *restrict points, double *restrict unknowns);

#endif
