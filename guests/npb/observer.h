/* Who really shares memory with whom: every load and store of the benchmarks, counted by thread and page.

   `build --observe` has the compiler call out at each access (as it does for ThreadSanitizer), and makes
   `observed-npb`, which writes the matrix as a recording of `sidestep gang watch --save` into the file that
   NPB_SHARING names. */

#ifndef OBSERVER_H
#define OBSERVER_H

#include <stddef.h>

/* The calling thread is number `thread` of all from now on; what it has done before does not count. */
void observer_begin(long thread);

/* Writes the recording, with `set_of(thread)` as the set of each thread. Answers 0 when it could not be written. */
int observer_write(const char *path, long threads, int (*set_of)(long thread));

/* In place of the library's, whose accesses the compiler does not see. */
void *observer_memcpy(void *to, const void *from, size_t bytes);
void *observer_memset(void *to, int value, size_t bytes);

#endif
