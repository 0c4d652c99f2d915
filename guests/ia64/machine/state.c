// The processor's state where it is hard to virtualise: what instructions without privilege tell of it, references that are
// translated differently from each other, and register frames that a fault leaves incomplete ("Itanium: a system
// implementor's tale", section 4).
//
// Prints what it finds: a virtual machine must print what the bare machine does. Ends with exit code 0 if it is right.

#include "machine.h"

enum { PAGE = 1 << 14, PAGES = 16, DEPTH = 300, STACK_PAGE = 8 };

#define REGION(number) ((word)(number) << 61)
#define PAGE_ENTRY 0x661ul
#define DT (1ul << 17)
#define RT (1ul << 27)
#define IT (1ul << 36)

extern char state_vectors[];
extern volatile word misses, incomplete_frames, covers;
extern word in_mode(word mode, word address, word backing_store);
extern word on_backing_store(word (*entry)(word), word argument, word backing_store);
extern word covered(void);

static char pages[PAGES][PAGE] __attribute__((aligned(PAGE)));

static void print_number(const char *name, word number)
{
	char digits[20] = "0x";
	for (int place = 0; place < 16; place++)
		digits[2 + place] = "0123456789abcdef"[number >> (60 - 4 * place) & 15];
	digits[18] = '\n';
	digits[19] = 0;
	print(name);
	print(" ");
	print(digits);
}

static _Noreturn void fail(const char *text)
{
	print(text);
	for (;;)
		hypercall(EXIT, 1, 0, 0);
}

static void set_region(word region, word identifier)
{
	asm volatile("mov rr[%0] = %1;; srlz.d;;" ::"r"(REGION(region)), "r"(identifier << 8 | 14 << 2) : "memory");
}

static void purge(word address, word bytes)
{
	for (word page = 0; page < bytes; page += PAGE)
		asm volatile("ptc.l %0, %1;; srlz.i;;" ::"r"(address + page), "r"(14 << 2) : "memory");
}

static word hashed(word address)
{
	word place;
	asm volatile("thash %0 = %1" : "=r"(place) : "r"(address));
	return place;
}

static word tagged(word address)
{
	word tag;
	asm volatile("ttag %0 = %1" : "=r"(tag) : "r"(address));
	return tag;
}

// The processor tells of the tables that the guest has set, in both formats.
static void tell_of_tables(void)
{
	static const word formats[] = {0, 1 << 8};
	static const word addresses[] = {REGION(1) | 0x123456789, REGION(4) | 0x7654321000, REGION(1) | 0xfedcba9876};
	for (int format = 0; format < 2; format++) {
		word table = REGION(1) | 1ul << 40 | 20 << 2 | formats[format];
		asm volatile("mov cr.pta = %0;; srlz.d;;" ::"r"(table) : "memory");
		print(format ? "long format\n" : "short format\n");
		for (int place = 0; place < 3; place++) {
			print_number("thash", hashed(addresses[place]));
			print_number("ttag", tagged(addresses[place]));
		}
	}
	print_number("cover", covered());
}

// An address with bit 63: addressed physically it is in page n, without the cache; virtually it is in
// region 4, where page n is another one.
static word twofold(word page)
{
	return REGION(4) | (word)pages[page];
}

static word *virtually(word page)
{
	return (word *)(page_table[(word)pages[page] >> 14 & 255] & ~0xffful & ((1ul << 50) - 1));
}

static void translate_differently(void)
{
	for (word page = 0; page < PAGES; page++)
		page_table[(word)pages[page] >> 14 & 255] = (word)pages[page ^ 1] | PAGE_ENTRY;
	for (word mode = 0; mode < 8; mode++) {
		word bits = (mode & 1 ? DT : 0) | (mode & 2 ? RT : 0) | (mode & 4 ? IT : 0);
		for (word page = 0; page < 4; page++)
			for (word place = 0; place < PAGE / 8; place++)
				((word *)pages[page])[place] = page << 32 | place;
		purge(REGION(4) | (word)pages, 4 * PAGE);
		word before = misses, found = in_mode(bits, twofold(0) + 64, twofold(2));
		print_number("split", found);
		word *read = mode & 1 ? virtually(0) : (word *)pages[0];
		word *stored = mode & 2 ? virtually(2) : (word *)pages[2];
		if (found != read[8])
			fail("split: a load was translated as another reference is\n");
		if (stored[0] != bits || stored[1] != twofold(0) + 64 || stored[2] != twofold(2))
			fail("split: registers were stored where they do not belong\n");
		for (word place = 1; place <= 8; place++)
			if (stored[2 + place] != place)
				fail("split: a stored register is wrong\n");
		if (misses - before != (mode & 1) + (mode >> 1 & 1))
			fail("split: not one miss for each virtual page\n");
	}
}

static __attribute__((noinline)) word deep(word depth)
{
	if (depth == 0) {
		// All that memory holds of the callers comes back through misses.
		purge(REGION(1) | STACK_PAGE * PAGE, (PAGES - STACK_PAGE) * PAGE);
		return 0;
	}
	word first = depth * 3, second = depth ^ 0x5555, third = ~depth;
	asm volatile("" : "+r"(first), "+r"(second), "+r"(third));
	word result = deep(depth - 1);
	asm volatile("" : "+r"(first), "+r"(second), "+r"(third));
	if (first != depth * 3 || second != (depth ^ 0x5555) || third != ~depth)
		fail("frames: a register is wrong\n");
	// Every few frames the page that is in use goes away, so that misses find frames half filled.
	if (depth % 7 == 0)
		purge(REGION(1) | STACK_PAGE * PAGE, (PAGES - STACK_PAGE) * PAGE);
	return result + 1;
}

static void leave_frames_incomplete(void)
{
	for (word page = STACK_PAGE; page < PAGES; page++)
		page_table[page] = (word)pages[page] | PAGE_ENTRY;
	for (word covering = 0; covering < 2; covering++) {
		covers = covering;
		incomplete_frames = 0;
		// Not at the beginning of a page, so that frames lie across its end.
		word start = REGION(1) | (STACK_PAGE * PAGE + PAGE - 1024 + 40 * covering);
		if (on_backing_store(deep, DEPTH, start) != DEPTH)
			fail("frames: a return came to the wrong place\n");
		if (incomplete_frames == 0)
			fail("frames: no fault has left a frame incomplete\n");
		print_number("incomplete frames", incomplete_frames);
	}
	covers = 0;
}

word main(void)
{
	set_region(1, 2);
	set_region(4, 3);
	asm volatile("rsm psr.ic;; srlz.i;; mov cr.iva = %0;; ssm psr.ic;; srlz.i;;" ::"r"(state_vectors) : "memory");
	tell_of_tables();
	translate_differently();
	leave_frames_incomplete();
	return 0;
}
