/* Memory that a watcher may have fault again: `build --offer` makes `offered-npb`, whose shared memory
   `sidestep gang watch --userfaultfd SOCKET` watches at a rate of its own, where NPB_OFFER names the socket.

   All memory of the benchmarks is a memfd's then. What threads wait for each other by is not offered. */

#ifndef OFFER_H
#define OFFER_H

#include "instances.h"

/* Offers the memory of all instances from now on, if NPB_OFFER asks for it. Answers 0, and says why, if it cannot be
   offered. */
int offer_begin(const char *name, const struct instances *instances);

#endif
