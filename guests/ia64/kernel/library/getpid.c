/* The part of the library that is C (library.h): the thread's block, and the process's identity kept in it, as the C library did
   from its first threads on. */

#include "layout.h"
#include "library.h"
#include "system.h"

/* Laid out as library.h says. */
struct thread_control {
    int identity; /* of the process; 0 before it was asked for */
    int error;
    unsigned long gate;
};

static struct thread_control control __attribute__((aligned(16)));

register struct thread_control *thread_pointer __asm__("r13");

void library_start(void)
{
    control.gate = GATE_ADDRESS;
    thread_pointer = &control + 1;
}

int library_error(void)
{
    return thread_pointer[-1].error;
}

/* The system call inline, as the library's macros had it: the compiler keeps ar.pfs, from the function's beginning on. */
static inline __attribute__((always_inline)) long ask(void)
{
    register long number __asm__("r15") = __NR_getpid;
    register long answer __asm__("r8");
    register unsigned long gate __asm__("b7") = thread_pointer[-1].gate;
    __asm__ volatile("br.call.sptk.many b6 = %1 ;;"
                     : "=r"(answer), "+b"(gate), "+r"(number)
                     :
                     : "memory", "ar.pfs", "b6", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "r2", "r3", "r9",
                       "r10", "r11", "r14", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28",
                       "r29", "r30", "r31");
    return thread_pointer[-1].identity = answer;
}

/* GCC of 2004 made the frame at the function's beginning also where, as here, it is hardly ever needed. */
long __attribute__((optimize("no-shrink-wrap"))) getpid_kept(void *first, void *second)
{
    (void)first;
    (void)second;
    long identity = thread_pointer[-1].identity;
    if (__builtin_expect(identity <= 0, 0))
        identity = ask();
    return identity;
}

long library_fork(void)
{
    long child = fork();
    if (child == 0)
        thread_pointer[-1].identity = 0;
    return child;
}
