// A guest that asks a service of its user's own, and measures what that costs it.
//
// The machine's parameters are a list of words: `own`, then how many requests, how many rounds of computing before each,
// and two numbers that each request bears behind its own. It prints one line, `own CYCLES COUNT`: clock cycles of the
// interval time counter for all requests, without the computing.

#include "request.h"

enum { PAGE = 1 << 14 };

char stacks[1 << 16] __attribute__((aligned(PAGE)));
// What the handlers of start.S name. This guest touches no page that is not there, and takes no interrupt.
word page_entries[1];
volatile word faults, files_by_exit, interrupts[1];

static volatile struct request_page page __attribute__((aligned(4096)));
static char parameters[128];

static word next_number(char **next)
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

word main(word me, word processors)
{
	if (me != 0 || processors != 1)
		fail("this guest has one processor");
	register_page(&page);
	hypercall(PARAMETERS, (word)parameters, sizeof parameters, 0);
	char *next = parameters;
	while (*next && *next != ' ')
		next++;
	if (*next)
		*next++ = 0;
	if (!is(parameters, "own"))
		fail("the parameters name nothing that this guest does");
	word count = next_number(&next), computing = next_number(&next);
	word second = next_number(&next), third = next_number(&next), cycles = 0;
	for (word round = 0; round < count; round++) {
		compute(computing);
		word start = now();
		ask(OWN, round, second, third);
		cycles += now() - start;
	}
	print("own ");
	print_number(cycles);
	print(" ");
	print_number(count);
	print("\n");
	end(0);
}
