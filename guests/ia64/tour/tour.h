/* The tour of the machine: each part tries one side of it and checks every result against one found another way. */

#ifndef TOUR_H
#define TOUR_H

#include "runtime.h"

/* Counts a check of the current part; says which when it does not hold. */
void check(int holds, const char *what);

void integer_part(void);
void floating_point_part(void);
void parallel_part(void);
void speculation_part(void);
void register_stack_part(void);
void rotation_part(void);
void semaphore_part(void);
void signal_part(void);
void thread_part(void);
void process_part(void);
void file_part(void);

/* An address in region 2 where the program has mapped nothing, below the 64 GB of a region that Linux offers a program
   where pages are of 4 kB. */
#define NOWHERE 0x4000000444000000

/* register_stack.S: recursion `depth` deep in frames of 91 registers; answers depth * (depth + 1) * 2. */
long pyramid(long depth);

#endif
