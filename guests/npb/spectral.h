/* Polynomials of the fourth degree in each direction of a cube, by their values at the points of Gauss and Lobatto.

   The point (x, y, z) of an element is number x + 5 y + 25 z of its 125. Integrals are sums over the points, with their
   weights; they are right for polynomials up to the seventh degree. */

#ifndef SPECTRAL_H
#define SPECTRAL_H

enum {
    POINTS = 5,                        /* of an edge */
    INNER = POINTS - 2,                /* of them without the ends */
    FINE = 2 * POINTS - 1,             /* of an edge that two shorter ones meet */
    ELEMENT = POINTS * POINTS * POINTS /* of an element */
};

/* On the interval from -1 to 1. */
struct spectral {
    double nodes[POINTS], weights[POINTS], volumes[ELEMENT];
    double derivative[POINTS][POINTS]; /* at the point of the row, by the values in the columns */
    double stiffness[POINTS][POINTS];  /* of two polynomials: the integral of the product of the derivatives */
    /* At the points of the left and the right half, by values on the whole; and at points of the whole, by values on
       the halves: at the middle by those on the left one. */
    double refined[2][POINTS][POINTS], merged[2][POINTS][POINTS];
    /* A mortar: of two polynomials on the halves the one on the whole that has the same ends, and the same integral
       with every polynomial of the second degree. At the inner points, by the values on the halves. */
    double mortar[INNER][FINE];
};

void spectral_initialize(struct spectral *spectral);

/* The gradients' part of the stiffness matrix on a cube of edge 2, times the values of an element. */
void spectral_stiffness(const struct spectral *spectral, const double *restrict values, double *restrict result);

/* Values by a matrix for each direction. */
void spectral_transform(const double (*x)[POINTS], const double (*y)[POINTS], const double (*z)[POINTS],
                        const double *restrict values, double *restrict result);

#endif
