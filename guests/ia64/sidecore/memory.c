// A guest whose memory is the matter: what requests leave of its caches, and updates of one page table by several
// processors.
//
// The machine's parameters are a list of words:
//
//   pollution KIND L R    R times a request of KIND (`nothing`, `null` or `map`), then a walk over L cache lines of 64
//                         bytes, each of which says where the next is; only the walks are measured
//   updates N W           every processor creates N entries of the one page table, each after W rounds of computing on
//                         average, at random
//   tables N              N entries that this guest writes into its page table itself, asks to be filled and touches,
//                         then changes, asks to be purged and touches again
//
// It prints one line, `NAME CYCLES COUNT`: clock cycles of the interval time counter, for so many walks or entries.

#include "request.h"

enum { START = 8 };
enum { PAGE = 1 << 14, PROCESSORS_MAX = 8, PAGES = 1 << 12, FRAMES = 64, LINES_MAX = 1 << 15, LINE_WORDS = 8 };

#define REGION_1 (1ul << 61)
#define PAGE_ENTRY 0x661ul

extern word hashed(word address);
extern char _start[];

char stacks[PROCESSORS_MAX << 16] __attribute__((aligned(PAGE)));
// What the handlers of start.S name: no page is touched here that is not there, and no interrupt taken.
word page_entries[PAGES];
volatile word faults, files_by_exit, interrupts[PROCESSORS_MAX];

static volatile struct request_page pages[PROCESSORS_MAX] __attribute__((aligned(4096)));
static char frames[FRAMES][PAGE] __attribute__((aligned(PAGE)));
static word lines[LINES_MAX][LINE_WORDS] __attribute__((aligned(PAGE)));
static char parameters[128];
static const char *next = parameters;
static word count, computing;
static volatile word ready, done;

static const char *next_word(void)
{
	static char found[32];
	word length = 0;
	while (*next == ' ')
		next++;
	while (*next && *next != ' ' && length < sizeof found - 1)
		found[length++] = *next++;
	found[length] = 0;
	return found;
}

static word next_number(void)
{
	word number = 0;
	for (const char *text = next_word(); *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (*text - '0');
	return number;
}

static void report(const char *name, word cycles, word number)
{
	print(name);
	print(" ");
	print_number(cycles);
	print(" ");
	print_number(number);
	print("\n");
}

static word random_word(word *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static __attribute__((noinline)) void compute(word rounds)
{
	word state = 88172645463325252ul;
	asm volatile("" : "+r"(state));
	for (word round = 0; round < rounds; round++)
		random_word(&state);
	asm volatile("" ::"r"(state));
}

static void create(word page)
{
	ask(MAP, REGION_1 | page * PAGE, (word)frames[page % FRAMES] | PAGE_ENTRY, 0);
}

// One circle through all lines, in an order that no prefetch foresees.
static void link_lines(word number)
{
	static word order[LINES_MAX];
	word state = 88172645463325252ul;
	for (word line = 0; line < number; line++)
		order[line] = line;
	for (word line = number - 1; line > 0; line--) {
		word other = random_word(&state) % line, place = order[line];
		order[line] = order[other];
		order[other] = place;
	}
	for (word line = 0; line < number; line++)
		lines[order[line]][0] = (word)lines[order[(line + 1) % number]];
}

static __attribute__((noinline)) void walk(word number)
{
	volatile word *line = lines[0];
	while (number--)
		line = (volatile word *)*line;
	asm volatile("" ::"r"(line));
}

static void pollution(void)
{
	const char *kind = next_word();
	word asks = is(kind, "nothing") ? 0 : is(kind, "null") ? 1 : is(kind, "map") ? 2 : 3;
	word number = next_number(), rounds = next_number(), cycles = 0;
	if (asks == 3 || number == 0 || number > LINES_MAX || rounds > PAGES)
		fail("pollution: nothing, null or map; 1 to 32768 lines; 4096 rounds at most");
	link_lines(number);
	walk(2 * number);
	for (word round = 0; round < rounds; round++) {
		if (asks == 1)
			ask(NULL_REQUEST, 0, 0, 0);
		else if (asks == 2)
			create(round);
		word start = now();
		walk(number);
		cycles += now() - start;
	}
	report("pollution", cycles, rounds);
}

static void update(word me, word processors)
{
	word share = PAGES / PROCESSORS_MAX;
	__atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
	while (ready < processors)
		asm volatile("hint @pause" ::: "memory");
	word state = 88172645463325252ul + me;
	for (word page = 0; page < count; page++) {
		compute(random_word(&state) % (2 * computing + 1));
		create(me * share + page);
	}
	__atomic_fetch_add(&done, 1, __ATOMIC_ACQ_REL);
}

// Writes the entry of a page into the page table, as the hardware's walker reads it.
static void write_entry(word page, word frame)
{
	word address = REGION_1 | page * PAGE, tag;
	volatile word *entry = (volatile word *)hashed(address);
	asm("ttag %0 = %1" : "=r"(tag) : "r"(address));
	entry[0] = (word)frames[frame] | PAGE_ENTRY;
	entry[1] = 14 << 2;
	__atomic_store_n(&entry[2], tag, __ATOMIC_RELEASE);
}

static void tables(word number)
{
	if (number > FRAMES / 2)
		fail("tables: 32 entries at most");
	word start = now(), status;
	for (word page = 0; page < number; page++) {
		volatile word *there = (volatile word *)(REGION_1 | page * PAGE);
		word other = page + FRAMES / 2;
		*(volatile word *)frames[page] = page + 1;
		*(volatile word *)frames[other] = ~page;
		write_entry(page, page);
		ask(FILL, (word)there, 0, 0);
		if (*there != page + 1)
			fail("tables: a page reads wrong");
		write_entry(page, other);
		ask(PURGE, (word)there, 14, 0);
		if (*there != ~page)
			fail("tables: a page is the old one behind a purge");
	}
	request(FILL, REGION_1 | number * PAGE, 0, 0, &status);
	if (status != REFUSED)
		fail("tables: what no table has was filled");
	request(PURGE, REGION_1, 11, 0, &status);
	if (status != REFUSED)
		fail("tables: less than a page was purged");
	report("tables", now() - start, number);
}

// Every entry is there, and names its own frame.
static void check_updates(word processors)
{
	for (word me = 0; me < processors; me++)
		for (word page = me * (PAGES / PROCESSORS_MAX), end = page + count; page < end; page++) {
			*(volatile word *)frames[page % FRAMES] = page + 1;
			if (*(volatile word *)(REGION_1 | page * PAGE) != page + 1)
				fail("updates: an entry is wrong");
		}
	if (faults)
		fail("updates: an entry is missing");
}

word main(word me, word processors)
{
	if (processors > PROCESSORS_MAX)
		fail("too many processors");
	register_page(&pages[me]);
	if (me != 0) {
		update(me, processors);
		for (;;)
			hypercall(WAIT_FOR_INTERRUPT, 0, 0, 0);
	}
	hypercall(PARAMETERS, (word)parameters, sizeof parameters, 0);
	const char *what = next_word();
	if (is(what, "pollution"))
		pollution();
	else if (is(what, "tables"))
		tables(next_number());
	else if (is(what, "updates")) {
		count = next_number(), computing = next_number();
		if (count > PAGES / PROCESSORS_MAX)
			fail("updates: 512 entries a processor at most");
		for (word other = 1; other < processors; other++)
			hypercall(START, other, (word)_start, 0);
		while (ready < processors - 1)
			asm volatile("hint @pause" ::: "memory");
		word start = now();
		update(0, processors);
		while (done < processors)
			asm volatile("hint @pause" ::: "memory");
		report("updates", now() - start, processors * count);
		check_updates(processors);
	} else
		fail("the parameters name nothing that this guest does");
	end(0);
}
