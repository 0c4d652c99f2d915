#include "tour.h"

long speculative_load(const long *address, long otherwise);
double speculative_double(const double *address, double otherwise);
long advanced_load(const long *load, long *store, long value, long *recoveries);
long checked_load(const long *load, long *store, long value);
long invalidated_load(const long *load);
long nat_through_memory(const long *address, long *spilled);
long nat_in_compare(const long *address);

void speculation_part(void)
{
    long here = 17, elsewhere = 0, spilled = 0, recoveries = 0;
    double number = 2.5;
    const long *nowhere = (const long *)NOWHERE;

    check(speculative_load(&here, 5) == 17, "a speculative load that succeeds");
    check(speculative_load(nowhere, 5) == 5, "a speculative load that defers its fault");
    check(speculative_double(&number, 8) == 3.5, "a speculative double that succeeds");
    check(speculative_double((const double *)nowhere, 8) == 8, "a NaTVal goes through arithmetic");

    check(advanced_load(&here, &elsewhere, 1, &recoveries) == 17, "a load ahead of an unrelated store");
    check(elsewhere == 1, "the unrelated store");
    check(advanced_load(&here, &here, 18, &recoveries) == 18 && recoveries > 0, "a load ahead of a store to it");
    check(checked_load(&here, &elsewhere, 2) == 18, "a check load after an unrelated store");
    check(checked_load(&here, &here, 19) == 19, "a check load after a store to it");
    check(invalidated_load(&here) == -1, "an advanced load after invala");

    check(nat_through_memory(&here, &spilled) == 1 && spilled == 20, "a value spilled and filled");
    check(nat_through_memory(nowhere, &spilled) == 2, "a NaT spilled and filled");
    check(nat_in_compare(&here) == 1, "a compare");
    check(nat_in_compare(nowhere) == 0, "a compare of a NaT");
}
