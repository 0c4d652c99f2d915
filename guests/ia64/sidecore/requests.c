// A guest that asks the monitor for things, and measures what that costs it.
//
// The machine's parameters are a list of words: what to do, and numbers. A measurement prints one line, `NAME CYCLES
// COUNT`: clock cycles of the interval time counter for so many operations. The guest ends with exit code 0 if all it
// asked for was done and every result is right.
//
//   null N                    requests that do nothing
//   identification N          reading a processor identification register by request
//   map N                     creating page table entries
//   change N                  changing one that exists
//   unmap N                   removing one
//   fault N                   touching pages that are not there
//   context P R               P address spaces in turn, R times, each with a working set of 16 kB
//   build J A F W             J jobs: A anonymous and F file pages touched, W rounds of computing
//   build-files-by-exit ...   the same, with file pages mapped by exit in any mode
//   bursts N I                bursts of N null requests, I rounds of computing between them, 20 times
//   ring N                    N asynchronous requests, as many at once as there are slots, and one more
//   disk N                    sectors of the block device, read, changed, written and read again
//   blocks R Q                R rounds over the whole block device, Q requests at once, of 1 to 7 sectors each: written,
//                             read again and checked; the answers come by interrupt
//   timer N                   interrupts after a delay
//   interrupts N              interrupts to the next processor, by request
//   send V N, receive N       packets to virtual machine V
//   compute-receive W N       the same, after computing: the first packets wait
//   sensitive N               unprivileged instructions that concern the processor's own state
//   compute W                 computes, and asks for nothing
//   hostile S N               N rounds of garbage made from seed S in the request page and in calls
//   silent N                  rings and never looks
//   script                    what the block device says: see `script` below

#include "request.h"

enum { STOP = 7, START = 8, SUBMIT = 0x42 };
enum { PROCESSORS_MAX = 8, PAGE = 1 << 14, PAGES = 1 << 12, FRAMES = 256, SECTOR = 512, VECTOR = 0x41, SECTORS_AT_ONCE = 7 };

#define REGION_1 (1ul << 61)
#define PAGE_ENTRY 0x661ul
#define FILE_PAGE (1ul << 53)

extern word covered(void);
extern word hashed(word address);
extern char _start[];

char stacks[PROCESSORS_MAX << 16] __attribute__((aligned(PAGE)));
word page_entries[PAGES];
volatile word faults, files_by_exit;
volatile word interrupts[PROCESSORS_MAX];

static volatile struct request_page pages[PROCESSORS_MAX] __attribute__((aligned(4096)));
static char frames[FRAMES][PAGE] __attribute__((aligned(PAGE)));
static char buffer[4 * SECTOR] __attribute__((aligned(PAGE)));
static word buffers[SLOTS][SECTORS_AT_ONCE * SECTOR / 8] __attribute__((aligned(PAGE)));
static char parameters[128];
static const char *next_parameter[PROCESSORS_MAX];
static volatile word finished;

static void report(const char *name, word cycles, word count)
{
	print(name);
	print(" ");
	print_number(cycles);
	print(" ");
	print_number(count);
	print("\n");
}

static word my_number(void)
{
	word number;
	asm("mov %0 = ar.k0" : "=r"(number));
	return number;
}

static const char *next_word(void)
{
	static char found[PROCESSORS_MAX][32];
	char *here = found[my_number()];
	const char **next = &next_parameter[my_number()];
	word length = 0;
	while (**next == ' ')
		++*next;
	while (**next && **next != ' ' && length < sizeof found[0] - 1)
		here[length++] = *(*next)++;
	here[length] = 0;
	return here;
}

static word next_number(void)
{
	word number = 0;
	for (const char *text = next_word(); *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (*text - '0');
	return number;
}

static __attribute__((noinline)) word compute(word rounds)
{
	word state = 88172645463325252ul;
	asm volatile("" : "+r"(state));
	for (word round = 0; round < rounds; round++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	asm volatile("" ::"r"(state));
	return state;
}

static word entry(word page)
{
	return (word)frames[page % FRAMES] | PAGE_ENTRY;
}

static volatile word *address(word page)
{
	return (volatile word *)(REGION_1 | page * PAGE);
}

// All pages of region 1 are gone from the page table.
static void unmap_all(void)
{
	for (word page = 0; page < PAGES; page += 64)
		ask(UNMAP, (word)address(page), 20, 0);
}

static void simple(const char *name, word kind, word count)
{
	word expected = ask(kind, 3, 0, 0);
	word start = now();
	for (word round = 0; round < count; round++)
		if (ask(kind, 3, 0, 0) != expected)
			fail("another answer than before");
	report(name, now() - start, count);
}

static void map(word count)
{
	word cycles = 0;
	for (word round = 0; round < count; round++) {
		word page = round % PAGES;
		if (round && page == 0)
			unmap_all();
		word start = now();
		ask(MAP, (word)address(page), entry(page), 0);
		cycles += now() - start;
	}
	report("map", cycles, count);
	*address(0) = 1;
	if (*(word *)frames[0] != 1 || faults)
		fail("map: the page is not mapped");
}

static void change(word count)
{
	ask(MAP, (word)address(0), entry(0), 0);
	word start = now();
	for (word round = 1; round <= count; round++) {
		*(volatile word *)frames[round & 1] = round;
		if (ask(MAP, (word)address(0), entry(round & 1), 0) != 1)
			fail("change: the entry was not there");
		if (*address(0) != round)
			fail("change: the old page is still there");
	}
	report("change", now() - start, count);
}

static void unmap(word count)
{
	word cycles = 0;
	page_entries[0] = entry(0);
	for (word round = 0; round < count; round++) {
		*address(0) = round;
		word start = now();
		if (ask(UNMAP, (word)address(0), 14, 0) != 1)
			fail("unmap: the entry was not there");
		cycles += now() - start;
		if (faults != round + 1)
			fail("unmap: the page was still there");
	}
	report("unmap", cycles, count);
}

static void fault(word count)
{
	word cycles = 0;
	for (word page = 0; page < PAGES; page++)
		page_entries[page] = entry(page);
	for (word done = 0; done < count;) {
		word some = count - done < PAGES ? count - done : PAGES;
		word start = now();
		for (word page = 0; page < some; page++)
			*address(page) = page;
		cycles += now() - start;
		done += some;
		unmap_all();
	}
	if (faults != count)
		fail("fault: not one for each page");
	report("fault", cycles, count);
}

static void context(word processes, word rounds)
{
	for (word page = 0; page < PAGES; page++)
		page_entries[page] = entry(page);
	word start = now();
	for (word round = 0; round < rounds; round++)
		for (word process = 0; process < processes; process++) {
			word region = (2 + process) << 8 | 14 << 2 | 1;
			asm volatile("mov rr[%0] = %1;; srlz.d;;" ::"r"(REGION_1), "r"(region) : "memory");
			for (word line = 0; line < PAGE / 128; line++)
				address(process)[line * 16] += 1;
		}
	report("context", now() - start, processes * rounds);
	for (word process = 0; process < processes; process++)
		if (*(word *)frames[process] != rounds)
			fail("context: a process saw another one's memory");
}

static void build(word jobs, word anonymous, word files, word work)
{
	word start = now(), size_log2 = 14;
	while (1ul << size_log2 < (anonymous + files) * PAGE)
		size_log2++;
	for (word job = 0; job < jobs; job++) {
		for (word page = 0; page < anonymous + files; page++) {
			page_entries[page] = entry(page) | (page < anonymous ? 0 : FILE_PAGE);
			*address(page) = page;
			compute(work);
		}
		ask(UNMAP, (word)address(0), size_log2, 0);
	}
	report("build", now() - start, jobs);
}

static void bursts(word count, word idle)
{
	word start = now();
	for (word burst = 0; burst < 20; burst++) {
		for (word round = 0; round < count; round++)
			ask(NULL_REQUEST, 0, 0, 0);
		compute(idle);
	}
	report("bursts", now() - start, 20 * count);
}

// As many requests at once as there are slots: none is lost, and each is answered once.
static void ring(word count)
{
	volatile struct request_page *page = my_page();
	word made = 0, done = 0;
	if (!page->mode)
		fail("ring: nobody serves sidecalls");
	word start = now();
	while (done < count) {
		for (word slot = 0; slot < SLOTS; slot++) {
			volatile struct slot *place = &page->slot[slot];
			word status = place->status;
			if (status == DONE) {
				if (place->result != 0)
					fail("ring: a wrong answer");
				place->status = status = FREE;
				done++;
			}
			if (status == REFUSED)
				fail("ring: a request was refused");
			if (status == FREE && made < count)
				make(place, NULL_REQUEST, 0, 0, 0, 0), made++;
		}
	}
	report("ring", now() - start, count);
}

static void disk(word sectors)
{
	word start = now();
	for (word sector = 0; sector < sectors; sector++) {
		ask(READ, sector, (word)buffer, 1);
		for (word byte = 0; byte < SECTOR; byte++)
			if (buffer[byte] != (char)(sector + byte))
				fail("disk: a sector reads wrong");
			else
				buffer[byte] ^= 0x55;
		ask(WRITE, sector, (word)buffer, 1);
		ask(READ, sector, (word)buffer + SECTOR, 1);
		for (word byte = 0; byte < SECTOR; byte++)
			if (buffer[SECTOR + byte] != buffer[byte])
				fail("disk: a written sector reads wrong");
	}
	word status;
	request(READ, 1ul << 60, (word)buffer, 1, &status);
	if (status != REFUSED)
		fail("disk: a sector that is not there was read");
	report("disk", now() - start, sectors);
}

static void wait_for_interrupts(word me, word number)
{
	while (interrupts[me] < number) {
		hypercall(WAIT_FOR_INTERRUPT, 0, 0, 0);
		asm volatile("ssm psr.i;; srlz.d;; rsm psr.i;; srlz.d" ::: "memory");
	}
}

static word random_word(word *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

// A transfer of the block device under way: which sectors, in which slot.
struct transfer {
	word first, sectors;
};

static struct transfer transfers[SLOTS];

// Fills a sector with numbers that follow from its place and the round, the last of which is the sum of the others; or
// checks that they are there.
static int sector(word *words, word place, word round, int fill)
{
	word state = (place + 1) * 2654435761u + round, sum = 0;
	for (word at = 0; at < SECTOR / 8; at++) {
		word expected = at < SECTOR / 8 - 1 ? random_word(&state) : sum;
		sum += expected;
		if (fill)
			words[at] = expected;
		else if (words[at] != expected)
			return 0;
	}
	return 1;
}

// Hands a slot's request over: by its status, or by exit, as the mode says.
static void hand_over(word slot, word kind, const struct transfer *transfer)
{
	volatile struct request_page *page = my_page();
	volatile struct slot *place = &page->slot[slot];
	if (page->mode) {
		make(place, kind, transfer->first, (word)buffers[slot], transfer->sectors, VECTOR);
		return;
	}
	place->kind = kind;
	place->arguments[0] = transfer->first;
	place->arguments[1] = (word)buffers[slot];
	place->arguments[2] = transfer->sectors;
	place->vector = VECTOR;
	if (hypercall(SUBMIT, slot, 0, 0) != 0)
		fail("blocks: a slot was refused");
}

// Moves all sectors once, `most` requests at a time. Returns how often a full queue pushed back.
static word move_blocks(word kind, word sectors, word most, word round)
{
	volatile struct request_page *page = my_page();
	word next = 0, under_way = 0, room = 0, pushed_back = 0, state = round + 1;
	for (word slot = 0; slot < SLOTS; slot++)
		page->slot[slot].status = FREE;
	while (next < sectors || under_way) {
		word seen = interrupts[0], progress = 0, working = 0;
		for (word slot = 0; slot < most; slot++)
			working += page->slot[slot].status == REQUESTED;
		for (word slot = 0; slot < most; slot++) {
			struct transfer *transfer = &transfers[slot];
			word status = __atomic_load_n(&page->slot[slot].status, __ATOMIC_ACQUIRE);
			if (status == REFUSED) {
				word result = page->slot[slot].result;
				if (result != FULL && result != NOT_SERVED)
					fail("blocks: a request was refused");
				// A full queue has room again for each answer that came.
				if (result == FULL && !room && working)
					continue;
				room -= result == FULL && room;
				pushed_back += result == FULL;
				page->slot[slot].status = FREE;
				hand_over(slot, kind, transfer);
				progress = 1;
			} else if (status == DONE) {
				for (word at = 0; kind == READ && at < transfer->sectors; at++)
					if (!sector(buffers[slot] + at * SECTOR / 8, transfer->first + at, round, 0))
						fail("blocks: a sector reads wrong");
				page->slot[slot].status = status = FREE;
				under_way--;
				room++;
				progress = 1;
			}
			if (status == FREE && next < sectors) {
				word some = 1 + random_word(&state) % SECTORS_AT_ONCE;
				transfer->first = next;
				transfer->sectors = some < sectors - next ? some : sectors - next;
				next += transfer->sectors;
				for (word at = 0; at < transfer->sectors; at++)
					if (kind == WRITE)
						sector(buffers[slot] + at * SECTOR / 8, transfer->first + at, round, 1);
				hand_over(slot, kind, transfer);
				under_way++;
				progress = 1;
			}
		}
		// Interrupts of one vector merge: the answers count, not the interrupts.
		while (!progress && under_way && interrupts[0] == seen) {
			hypercall(WAIT_FOR_INTERRUPT, 0, 0, 0);
			asm volatile("ssm psr.i;; srlz.d;; rsm psr.i;; srlz.d" ::: "memory");
		}
	}
	return pushed_back;
}

static void blocks(word rounds, word most)
{
	word sectors = 0, status, start, pushed_back = 0;
	while (request(READ, sectors, (word)buffer, 1, &status), status == DONE)
		sectors++;
	if (most == 0 || most > SLOTS)
		fail("blocks: 1 to 63 requests at once");
	start = now();
	for (word round = 0; round < rounds; round++) {
		pushed_back += move_blocks(WRITE, sectors, most, round);
		pushed_back += move_blocks(READ, sectors, most, round);
	}
	report("blocks", now() - start, rounds * sectors);
	report("pushed-back", 0, pushed_back);
}

static void timer(word count)
{
	word start = now();
	for (word round = 1; round <= count; round++) {
		word before = now();
		ask(TIMER, 100000, VECTOR, 0);
		wait_for_interrupts(0, round);
		if (now() - before < 100000)
			fail("timer: too early");
	}
	report("timer", now() - start, count);
}

static void pass_interrupts(word me, word processors, word count)
{
	word start = now();
	for (word round = 1; round <= count; round++) {
		if (me == 0)
			ask(INTERRUPT, 1 % processors, VECTOR, 0);
		wait_for_interrupts(me, round);
		if (me != 0)
			ask(INTERRUPT, (me + 1) % processors, VECTOR, 0);
	}
	if (me == 0)
		report("interrupts", now() - start, count);
}

static void send(word to, word count)
{
	for (word packet = 0; packet < count; packet++) {
		word status, result;
		for (word byte = 0; byte < 64; byte++)
			buffer[byte] = (char)(packet + byte);
		do {
			result = request(SEND, to, (word)buffer, 64, &status);
			if (status == REFUSED && result != FULL)
				fail("send: refused");
		} while (status == REFUSED);
		compute(1000);
	}
	report("send", 0, count);
}

static void receive(word count)
{
	word start = now();
	for (word packet = 0; packet < count;) {
		word status, result = request(RECEIVE, (word)buffer, sizeof buffer, 0, &status);
		if (status == REFUSED) {
			if (result != EMPTY)
				fail("receive: refused");
			compute(1000);
			continue;
		}
		if (result != 64)
			fail("receive: a packet of another size");
		for (word byte = 0; byte < 64; byte++)
			if (buffer[byte] != (char)(packet + byte))
				fail("receive: a packet is damaged or out of order");
		packet++;
	}
	report("receive", now() - start, count);
}

static void sensitive(word count)
{
	const word table = 12 << 20, frame = 4 | 4 << 7;
	word start = now();
	for (word round = 0; round < count; round++) {
		if (covered() != (1ul << 63 | frame))
			fail("sensitive: cover has not left the frame in IFS");
		word place = hashed((word)address(round));
		if (place < table || place >= table + (1 << 20))
			fail("sensitive: thash shows another page table");
	}
	report("sensitive", now() - start, count);
}

// Garbage: in slots, in the page's header, in calls. What is answered does not matter.
static void hostile(word seed, word count)
{
	word state = seed * 2654435761u + 1;
	volatile word *words = (volatile word *)my_page();
	for (word round = 0; round < count; round++) {
		word choice = random_word(&state), value = random_word(&state) >> (random_word(&state) & 63), status;
		switch (choice % 5) {
		case 0:
			words[value % 512] = random_word(&state);
			break;
		case 1:
			words[value % 512] = REQUESTED;
			break;
		case 2:
			make(&my_page()->slot[value % SLOTS], random_word(&state) % 12, random_word(&state),
			     random_word(&state) % 100000, random_word(&state) % 70, 0);
			break;
		case 3: {
			word kind = random_word(&state) % 12;
			// A page of the kernel's own is not for mapping: only region 1.
			word first = kind == MAP || kind == UNMAP ? REGION_1 | random_word(&state) % (1ul << 26) : value;
			if (kind != READ && kind != RECEIVE && kind != TIMER && kind != INTERRUPT)
				request_by_exit(kind, first, random_word(&state) % (1ul << 24), value, &status);
			break;
		}
		default:
			hypercall(0x42 + value % 1000, value, random_word(&state), random_word(&state));
		}
	}
	print("hostile done\n");
}

// Does what the block device says, in operations of eight words: what, a slot or a place, and up to six arguments. Whoever
// wrote it may have meant anything by it.
enum { BY_EXIT, BY_SLOT, BY_STATUS, WRITE_PAGE, CALL, REST };
enum { SCRIPT_SECTORS = 32, OPERATION = 8 };

static word operations[SCRIPT_SECTORS * SECTOR / 8] __attribute__((aligned(PAGE)));

static void script(void)
{
	word sectors = 0, status;
	while (sectors < SCRIPT_SECTORS) {
		request(READ, sectors, (word)operations + sectors * SECTOR, 1, &status);
		if (status != DONE)
			break;
		sectors++;
	}
	for (word *at = operations; at < operations + sectors * SECTOR / 8; at += OPERATION) {
		volatile struct slot *slot = &my_page()->slot[at[1] % SLOTS];
		switch (at[0] % (REST + 1)) {
		case BY_EXIT:
			request_by_exit(at[2], at[3], at[4], at[5], &status);
			break;
		case BY_SLOT:
			slot->kind = at[2];
			slot->arguments[0] = at[3];
			slot->arguments[1] = at[4];
			slot->arguments[2] = at[5];
			slot->vector = at[6];
			hypercall(SUBMIT, at[1], 0, 0);
			break;
		case BY_STATUS:
			make(slot, at[2], at[3], at[4], at[5], at[6]);
			break;
		case WRITE_PAGE:
			((volatile word *)my_page())[at[1] % 512] = at[2];
			break;
		case CALL:
			hypercall(at[2], at[3], at[4], at[5]);
			break;
		default:
			compute(at[2] % 10000);
		}
	}
	print("script done\n");
}

static void silent(word count)
{
	for (word round = 0; round < count; round++) {
		for (word slot = 0; slot < SLOTS; slot++)
			make(&my_page()->slot[slot], NULL_REQUEST, 0, 0, 0, 0);
		compute(1000);
	}
}

static void perform(word me, word processors)
{
	const char *what = next_word();
	if (is(what, "null"))
		simple(what, NULL_REQUEST, next_number());
	else if (is(what, "identification"))
		simple(what, IDENTIFICATION, next_number());
	else if (is(what, "map"))
		map(next_number());
	else if (is(what, "change"))
		change(next_number());
	else if (is(what, "unmap"))
		unmap(next_number());
	else if (is(what, "fault"))
		fault(next_number());
	else if (is(what, "context")) {
		word processes = next_number();
		context(processes, next_number());
	} else if (is(what, "build") || is(what, "build-files-by-exit")) {
		files_by_exit = what[5] != 0;
		word jobs = next_number(), anonymous = next_number(), files = next_number();
		build(jobs, anonymous, files, next_number());
	} else if (is(what, "bursts")) {
		word count = next_number();
		bursts(count, next_number());
	} else if (is(what, "ring"))
		ring(next_number());
	else if (is(what, "disk"))
		disk(next_number());
	else if (is(what, "blocks")) {
		word rounds = next_number();
		blocks(rounds, next_number());
	} else if (is(what, "timer"))
		timer(next_number());
	else if (is(what, "interrupts"))
		pass_interrupts(me, processors, next_number());
	else if (is(what, "send")) {
		word to = next_number();
		send(to, next_number());
	} else if (is(what, "receive"))
		receive(next_number());
	else if (is(what, "compute-receive")) {
		compute(next_number());
		receive(next_number());
	} else if (is(what, "sensitive"))
		sensitive(next_number());
	else if (is(what, "compute")) {
		word start = now(), rounds = next_number();
		compute(rounds);
		report(what, now() - start, rounds);
	} else if (is(what, "hostile")) {
		word seed = next_number();
		hostile(seed, next_number());
	} else if (is(what, "script"))
		script();
	else if (is(what, "silent"))
		silent(next_number());
	else
		fail("the parameters name nothing that this guest does");
}

word main(word me, word processors)
{
	if (processors > PROCESSORS_MAX)
		fail("too many processors");
	register_page(&pages[me]);
	next_parameter[me] = parameters;
	if (me == 0) {
		hypercall(PARAMETERS, (word)parameters, sizeof parameters, 0);
		for (word other = 1; other < processors; other++)
			hypercall(START, other, (word)_start, 0);
	}
	if (me == 0 || is(next_word(), "interrupts")) {
		next_parameter[me] = parameters;
		perform(me, processors);
	} else {
		// The others compute on memory of the same guest, so that purges concern them.
		while (!finished)
			compute(100);
	}
	if (me == 0) {
		finished = 1;
		end(0);
	}
	hypercall(STOP, 0, 0, 0);
	return 0;
}
