/* What the programs have of a C library of 2004: three system calls, each by `break` and by `epc`, reached directly or through
   an import stub (calls.S), and a `getpid` that asks the kernel once (getpid.c).

   `library_start` comes first: it sets the thread pointer, r13. */

#ifndef LIBRARY_H
#define LIBRARY_H

/* The thread control block ends at r13. */
#define THREAD_IDENTITY 0
#define THREAD_ERROR 4
#define THREAD_GATE 8
#define THREAD_SIZE 16

#ifndef __ASSEMBLER__

typedef long library_function(void *first, void *second);

#define LIBRARY_FUNCTION(name) library_function name, name##_import

LIBRARY_FUNCTION(getpid_break);
LIBRARY_FUNCTION(getpid_epc);
LIBRARY_FUNCTION(getppid_break);
LIBRARY_FUNCTION(getppid_epc);
LIBRARY_FUNCTION(gettimeofday_break);
LIBRARY_FUNCTION(gettimeofday_epc);
/* The kernel is asked once in each process; a child after `library_fork` anew. */
LIBRARY_FUNCTION(getpid_kept);

void library_start(void);
long library_fork(void);
int library_error(void); /* of the last call that answered -1 */

#endif
#endif
