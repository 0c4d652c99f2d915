/* A bare machine, or a virtual machine of the monitor, of several processors: thread n of all instances is processor
   n's.

   The machine's parameters are the words of instances.h. Its exit code is 0 if all results are as specified, and 2 if
   the words are not. A thread that has nothing more to do stops its processor; the last one ends the machine. */

#include "environment.h"
#include "instances.h"

#include <asm/unistd.h>

#include "../ia64/machine/machine.h"

enum { PAGE = 1 << 14, MAPPED = 256 << 20, WORDS_MAX = 256, VECTOR = 0x41, VECTOR_MASKED = 1 << 16 };

/* How long a processor that yields leaves its core to others, in cycles of the interval time counter, unless an
   interrupt comes: no longer than a few times what an exit and an entry take. */
static const word YIELD_CYCLES = 20000;

/* The status of floating-point arithmetic that the software conventions demand: no traps, status field 0 rounding to
   nearest in the format that each instruction names. */
static const word ARITHMETIC = 0x9804c0270033f;

extern char _end[];

static struct instances instances;
static char parameters[2048];
static word memory_used;
static long working; /* threads that are not through yet */

void leave(int code)
{
    for (;;)
        hypercall(EXIT, code, 0, 0);
}

/* `print` writes by the one system call that a machine offers. */
long system_call(long number, ...)
{
    if (number != __NR_write)
        return -38; /* ENOSYS */
    va_list list;
    va_start(list, number);
    va_arg(list, long);
    word text = va_arg(list, word), bytes = va_arg(list, word);
    va_end(list);
    return hypercall(PUT_BYTES, text, bytes, 0) == 0 ? (long)bytes : -5; /* EIO */
}

/* Whether there is memory at an address: the host refuses to write elsewhere. */
static int is_memory(word address)
{
    return hypercall(PARAMETERS, address, sizeof parameters, 0) >= 0;
}

/* Pages from behind the image on, which nothing has written to before; none are given back. */
void *allocate(size_t bytes)
{
    word start = memory_used ? memory_used : ((word)_end + PAGE - 1) & -(word)PAGE;
    word end = (start + bytes + PAGE - 1) & -(word)PAGE;
    if (bytes > MAPPED || end > MAPPED || !is_memory(end - sizeof parameters)) {
        print("out of memory: %lu bytes more at %lu kB\n", bytes, start >> 10);
        leave(2);
    }
    memset((void *)(end - sizeof parameters), 0, sizeof parameters);
    memory_used = end;
    return (void *)start;
}

uint64_t environment_nanoseconds(void)
{
    return hypercall(TIME, 0, 0, 0);
}

void environment_step(void)
{
}

static word interval_time(void)
{
    word time;
    asm volatile("mov %0 = ar.itc" : "=r"(time));
    return time;
}

/* Waits in the monitor for an interrupt, the timer's at the latest: not at all if a processor that was without a core
   meanwhile has missed that. */
void environment_yield(void)
{
    word due = interval_time() + YIELD_CYCLES;
    asm volatile("mov cr.itv = %1;; mov cr.itm = %0;; srlz.d" ::"r"(due), "r"((word)VECTOR) : "memory");
    if ((long)(due - interval_time()) > 0)
        hypercall(WAIT_FOR_INTERRUPT, 0, 0, 0);
    asm volatile("mov cr.itv = %0;; ssm psr.i;; srlz.d;; rsm psr.i;; srlz.d" ::"r"((word)VECTOR_MASKED) : "memory");
}

static void prepare(void)
{
    if (hypercall(PARAMETERS, (word)parameters, sizeof parameters, 0) >= (long)sizeof parameters) {
        print("npb: the parameters are too long\n");
        leave(2);
    }
    const char *words[WORDS_MAX];
    int count = 0;
    for (char *place = parameters; *place && count < WORDS_MAX;) {
        while (*place == ' ')
            *place++ = 0;
        if (*place)
            words[count++] = place;
        while (*place && *place != ' ')
            place++;
    }
    if (!instances_read(&instances, "npb", count, words))
        leave(2);
}

int main(word me, word processors)
{
    asm volatile("mov ar.fpsr = %0;; mov ar.k0 = %1;; mov cr.tpr = r0;; srlz.d" ::"r"(ARITHMETIC), "r"(me) : "memory");
    if (me == 0) {
        prepare();
        if (instances.threads > (long)processors || processors > PROCESSORS_MAX) {
            print("npb: %ld threads on %lu processors: expected one processor for each, and at most %d\n",
                  instances.threads, processors, PROCESSORS_MAX);
            leave(2);
        }
        instances_prepare(&instances);
        working = instances.threads;
        for (long other = 1; other < instances.threads; other++)
            hypercall(START, other, (word)_start, 0);
    }
    instances_work(&instances, me);
    if (__atomic_sub_fetch(&working, 1, __ATOMIC_ACQ_REL) == 0)
        leave(instances_verdict(&instances));
    for (;;)
        hypercall(STOP, 0, 0, 0);
}
