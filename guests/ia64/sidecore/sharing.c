// A guest whose processors share memory in pairs, and say how long that took them.
//
// The machine's parameters are words: what to do, and numbers. Processor P works with processor P ^ M: in each round both
// write to the pages that the two share, read what the other has written there, write to pages of their own, compute,
// and wait for each other. When all have ended processor 0 prints one line, `NAME CYCLES ROUNDS`, in clock cycles of the
// interval time counter, and ends with exit code 0 if all that was read was right.
//
//   pairs M R W      R rounds, each with W rounds of computing; who waits spins
//   halting M R W    the same; who has waited for long halts until the other interrupts it
//   phases R W       R rounds with M = 2, then R rounds with M = 1
//   churn M R W      as `pairs`, and each round purges every translation of what it has touched, for itself and for all
//   alone R W        no pairs: each writes to pages of its own

#include "guest.h"

enum { STOP = 7, START = 8 };
enum { PROCESSORS_MAX = 8, PAGE = 1 << 14, PAGE_LOG2 = 14, SHARED = 16, OWN = 8, SPINS = 2000, VECTOR = 0x41, WORD = 8 };

#define INTERRUPT_BLOCK 0xfee00000ul

extern char _start[];

char stacks[PROCESSORS_MAX << 16] __attribute__((aligned(PAGE)));
word page_entries[1 << 12];
volatile word faults, files_by_exit;
volatile word interrupts[PROCESSORS_MAX];

// A page holds a word of each processor. What a pair shares has the number of the lower of the two.
static volatile word shared[PROCESSORS_MAX][SHARED][PAGE / 8] __attribute__((aligned(PAGE)));
static volatile word own[PROCESSORS_MAX][OWN][PAGE / 8] __attribute__((aligned(PAGE)));
// How many rounds each has done, and whether it has halted: each in pages of its pair.
static struct {
	volatile word done, halted, unused[(PAGE - 16) / 8];
} progress[PROCESSORS_MAX] __attribute__((aligned(PAGE)));
static char parameters[128] __attribute__((aligned(PAGE)));
static volatile word ended, wrong;

// The first word, without the blank behind it.
static void first_word(const char **next, char found[WORD])
{
	word length = 0;
	while (**next && **next != ' ' && length < WORD - 1)
		found[length++] = *(*next)++;
	found[length] = 0;
}

static word next_number(const char **next)
{
	word number = 0;
	while (**next == ' ')
		++*next;
	while (**next >= '0' && **next <= '9')
		number = number * 10 + (*(*next)++ - '0');
	return number;
}

static __attribute__((noinline)) void compute(word rounds)
{
	word state = 88172645463325252ul;
	asm volatile("" : "+r"(state));
	for (word round = 0; round < rounds; round++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	asm volatile("" ::"r"(state));
}

// Takes the interrupt that is pending, which only woke this processor.
static void accept(void)
{
	word vector;
	asm volatile("mov %0 = cr.ivr;; srlz.d;; mov cr.eoi = r0;; srlz.d" : "=r"(vector)::"memory");
	(void)vector;
}

static void wait_for(word other, word me, word rounds, word halts)
{
	for (word spins = 0; progress[other].done < rounds; spins++) {
		if (!halts || spins < SPINS) {
			asm volatile("hint @pause" ::: "memory");
			continue;
		}
		progress[me].halted = 1;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (progress[other].done < rounds) {
			hypercall(WAIT_FOR_INTERRUPT, 0, 0, 0);
			accept();
		}
		progress[me].halted = 0;
	}
}

static void has_done(word me, word other, word rounds)
{
	__atomic_store_n(&progress[me].done, rounds, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (progress[other].halted)
		*(volatile word *)(INTERRUPT_BLOCK | other << 12) = VECTOR;
}

static void purge(volatile void *address, word everywhere)
{
	word size = PAGE_LOG2 << 2;
	if (everywhere)
		asm volatile("ptc.ga %0, %1;; srlz.d" ::"r"(address), "r"(size) : "memory");
	else
		asm volatile("ptc.l %0, %1;; srlz.d" ::"r"(address), "r"(size) : "memory");
}

// Rounds `first` to `last` with a partner, or alone if that is the processor itself.
static void work(word me, word other, word first, word last, word computing, word halts, word churns)
{
	word pair = me < other ? me : other;
	for (word round = first; round < last; round++) {
		for (word page = 0; page < SHARED && other != me; page++) {
			shared[pair][page][me] = round + 1;
			word seen = shared[pair][page][other];
			// The other is in this round as well, or at the end of the one before.
			if (round > first && seen != round && seen != round + 1)
				wrong = 1;
		}
		for (word page = 0; page < OWN; page++)
			own[me][page][me]++;
		compute(computing);
		for (word page = 0; page < SHARED && churns; page++)
			purge(shared[pair][page], page % 4 == 0);
		for (word page = 0; page < OWN && churns; page++)
			purge(own[me][page], 0);
		if (other != me) {
			has_done(me, other, round + 1);
			wait_for(other, me, round + 1, halts);
		}
	}
}

static void perform(word me)
{
	const char *next = parameters;
	char name[WORD];
	first_word(&next, name);
	word mask = is(name, "phases") || is(name, "alone") ? 0 : next_number(&next);
	word rounds = next_number(&next), computing = next_number(&next);
	if (is(name, "phases")) {
		work(me, me ^ 2, 0, rounds, computing, 0, 0);
		work(me, me ^ 1, rounds, 2 * rounds, computing, 0, 0);
	} else {
		work(me, me ^ mask, 0, rounds, computing, is(name, "halting"), is(name, "churn"));
	}
}

word main(word me, word processors)
{
	asm volatile("mov cr.tpr = r0;; srlz.d" ::: "memory");
	if (processors > PROCESSORS_MAX || processors % 4) {
		print("sharing takes 4 or 8 processors\n");
		hypercall(EXIT, 1, 0, 0);
	}
	if (me == 0) {
		hypercall(PARAMETERS, (word)parameters, sizeof parameters, 0);
		for (word other = 1; other < processors; other++)
			hypercall(START, other, (word)_start, 0);
	}
	word start = now();
	perform(me);
	__atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
	if (me != 0)
		for (;;)
			hypercall(STOP, 0, 0, 0);
	while (ended < processors)
		asm volatile("hint @pause" ::: "memory");
	const char *next = parameters;
	char name[WORD];
	first_word(&next, name);
	print(name);
	print(" ");
	print_number(now() - start);
	print(" ");
	print_number(progress[0].done);
	print("\n");
	hypercall(EXIT, wrong, 0, 0);
	return 0;
}
