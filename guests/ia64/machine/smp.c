// Several processors at work on one memory: spin locks, interrupts between processors, global purges, code that one
// changes and all execute; and a loop that only computes.
//
// The machine's parameters name the part to run, `lock`, `interrupt`, `purge`, `code` or `compute`, and the number of
// rounds. All
// processors run the same part. The machine ends with exit code 0 if every result is right.

#include "machine.h"

enum { PAGE = 1 << 14, VECTOR = 0x41, VARIANTS = 8 };

#define REGION_1 (1ul << 61)
#define PAGE_ENTRY 0x661ul
#define INTERRUPT_BLOCK 0xfee00000ul

extern word patched(void);
extern const char variants[];

static char pages[2 * PROCESSORS_MAX][PAGE] __attribute__((aligned(PAGE)));
static volatile word generation[PROCESSORS_MAX];
static volatile int lock;
word counter;
static word arrived;
static char parameters[64];
static word rounds = 1000;

static _Noreturn void fail(const char *text)
{
	print(text);
	for (;;)
		hypercall(EXIT, 1, 0, 0);
}

static void pause(void)
{
	asm volatile("hint @pause" ::: "memory");
}

// Comes back when all processors have come here; `number` counts the meetings from 1.
static void meet(word processors, word number)
{
	__atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < processors * number)
		pause();
}

static void count_under_lock(word processors)
{
	for (word round = 0; round < rounds; round++) {
		while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
			pause();
		counter++;
		__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	}
	meet(processors, 1);
	if (counter != rounds * processors)
		fail("lock: increments were lost\n");
}

// A ring: each processor waits for an interrupt from the one before it and sends one to the next.
static void pass_interrupts(word me, word processors)
{
	volatile word *next = (word *)(INTERRUPT_BLOCK | (me + 1) % processors << 12);
	asm volatile("mov ar.k0 = %0;; mov cr.tpr = r0;; srlz.d" ::"r"(me) : "memory");
	meet(processors, 1);
	for (word round = 0; round < rounds; round++) {
		if (me == 0)
			*next = VECTOR;
		// With interrupts masked, so that none comes between the look and the wait, which it ends all the same.
		while (interrupts[me] == round) {
			hypercall(WAIT_FOR_INTERRUPT, 0, 0, 0);
			asm volatile("ssm psr.i;; srlz.d;; rsm psr.i;; srlz.d" ::: "memory");
		}
		if (interrupts[me] != round + 1)
			fail("interrupt: one too many\n");
		if (me != 0)
			*next = VECTOR;
	}
	meet(processors, 2);
}

// Each processor moves a page of its own to and fro between two places, of which the one holds even numbers and the
// other odd ones, and looks at everyone's: a page that shows an older state than its owner has announced was read
// through a translation that the owner had purged.
static void move_pages(word me, word processors)
{
	for (word half = 0; half < 2; half++)
		*(volatile word *)pages[2 * me + half] = half;
	page_table[me] = (word)pages[2 * me] | PAGE_ENTRY;
	meet(processors, 1);
	for (word round = 1; round <= rounds; round++) {
		char *place = pages[2 * me + (round & 1)];
		volatile word *mine = (word *)(REGION_1 | me * PAGE);
		*(volatile word *)place = round;
		__atomic_store_n(&page_table[me], (word)place | PAGE_ENTRY, __ATOMIC_RELEASE);
		asm volatile("mf;; ptc.ga %0, %1;; srlz.i;;" ::"r"(mine), "r"(14l << 2) : "memory");
		__atomic_store_n(&generation[me], round, __ATOMIC_RELEASE);
		for (word other = 0; other < processors; other++) {
			word announced = __atomic_load_n(&generation[other], __ATOMIC_ACQUIRE);
			word seen = __atomic_load_n((word *)(REGION_1 | other * PAGE), __ATOMIC_ACQUIRE);
			if (seen < announced)
				fail("purge: a translation outlived its purge\n");
		}
	}
	meet(processors, 2);
}

// Processor 0 replaces a function of one bundle by another in each round; all processors call it.
static void change_code(word me, word processors)
{
	word *code = *(word **)patched;
	const word(*bundles)[2] = (const word(*)[2])variants;
	for (word round = 0; round < rounds; round++) {
		word variant = round % VARIANTS;
		if (me == 0) {
			code[0] = bundles[variant][0];
			code[1] = bundles[variant][1];
			asm volatile("fc.i %0;; sync.i;; srlz.i;;" ::"r"(code) : "memory");
		}
		meet(processors, 2 * round + 1);
		asm volatile("srlz.i;;" ::: "memory");
		if (patched() != variant)
			fail("code: an old instruction was executed\n");
		meet(processors, 2 * round + 2);
	}
}

static __attribute__((noinline)) word compute(void)
{
	word state = 1, sum = 0;
	for (word round = 0; round < rounds; round++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		if (state & 1)
			sum += state;
	}
	return sum;
}

static int begins(const char *text, const char *with)
{
	while (*with)
		if (*text++ != *with++)
			return 0;
	return 1;
}

static void read_parameters(void)
{
	hypercall(PARAMETERS, (word)parameters, sizeof parameters, 0);
	for (const char *text = parameters; *text; text++)
		if (*text == ' ') {
			rounds = 0;
			while (*++text >= '0' && *text <= '9')
				rounds = rounds * 10 + (*text - '0');
			break;
		}
}

int main(word me, word processors)
{
	if (me == 0) {
		if (processors > PROCESSORS_MAX)
			fail("too many processors\n");
		read_parameters();
		for (word other = 1; other < processors; other++)
			hypercall(START, other, (word)_start, 0);
	}
	if (begins(parameters, "lock"))
		count_under_lock(processors);
	else if (begins(parameters, "interrupt"))
		pass_interrupts(me, processors);
	else if (begins(parameters, "purge"))
		move_pages(me, processors);
	else if (begins(parameters, "code"))
		change_code(me, processors);
	else if (begins(parameters, "compute"))
		counter = compute();
	else
		fail("parameters: lock, interrupt, purge, code or compute, and a number of rounds\n");
	if (me != 0)
		for (;;)
			hypercall(STOP, 0, 0, 0);
	print("right\n");
	return 0;
}
