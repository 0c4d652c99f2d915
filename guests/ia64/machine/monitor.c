// The performance monitor as an operating system uses it. The machine's parameters name the part to run:
//
//   sample     counts retired instructions with an overflow interrupt every PERIOD; prints how many interrupts came and
//              how many instructions too late they came at most
//   masked     the same with the interrupt masked in cr.pmv
//   threshold  counts the cycles with more than 0 to 6 retired instructions of a loop
//   events     counts every event select code and unit mask over a round of work; prints `CODE COUNT` for those that
//              counted anything
//   data       keeps loads that take long by the data event address register; prints how many of them there were and how many
//              of the addresses, instructions and latencies kept are right, for caches and for TLBs
//   branches   traces a loop's branches; prints the trace
//   fetches    keeps fetches that take long by the instruction event address register, and prints the same as `data`
//   pages      keeps fetches of pages that the first instruction TLB does not have; prints how many, and where the last was found
//   opcodes    counts retired instructions of a loop by unit and, on another channel, by what they write; prints unit and count
//   code       counts them by their addresses: a range by mask, a range by bounds, and all but a range
//   addresses  counts loads by the address of their data, and those of them that the data event address register keeps
//   checks     counts checks of advanced loads, failed ones, and failed ones kept; prints whether the one kept is right
//   served     keeps loads whose translation software inserts; prints how many, and how many are right, cold and warm
//
// The machine ends with exit code 0; with 1 where the parameters are wrong.

#include "machine.h"

enum { PERIOD = 5000, SAMPLES = 20, VECTOR = 0x41, ROUNDS = 64 };

// PMC4..7: all privilege levels, PSR.up; with an interrupt on overflow.
#define COUNTS 0xful
#define INTERRUPTS (1ul << 5)
#define ENABLED (1ul << 23)
#define INSTRUCTIONS (0x08ul << 8)
#define CYCLES (0x12ul << 8)
#define THRESHOLD(events) ((word)(events) << 20)
#define MASKED (1ul << 16)
#define COUNTER_MASK ((1ul << 47) - 1)

static word read_data(word index)
{
	word value;
	asm volatile("mov %0 = pmd[%1]" : "=r"(value) : "r"(index) : "memory");
	return value;
}

static void write_data(word index, word value)
{
	asm volatile("mov pmd[%0] = %1" ::"r"(index), "r"(value) : "memory");
}

static word status(void)
{
	word value;
	asm volatile("mov %0 = pmc[%1]" : "=r"(value) : "r"(0ul) : "memory");
	return value;
}

static void configure(word index, word value)
{
	asm volatile("mov pmc[%0] = %1;; srlz.d;;" ::"r"(index), "r"(value) : "memory");
}

static void freeze(void)
{
	configure(0, 1);
}

static void go_on(void)
{
	configure(0, 0);
}

static void print_number(word value)
{
	char digits[20];
	int at = sizeof digits;
	do
		digits[--at] = '0' + value % 10;
	while (value /= 10);
	hypercall(PUT_BYTES, (word)(digits + at), sizeof digits - at, 0);
}

static void print_result(word first, word second)
{
	print_number(first);
	print(" ");
	print_number(second);
	print("\n");
}

// Something of everything: dependent arithmetic, loads, stores, floating point, calls, predicates.
static volatile double share = 1.5;
static volatile word table[512];

static __attribute__((noinline)) word work(word rounds)
{
	word state = 88172645463325252ul, sum = 0;
	for (word round = 0; round < rounds; round++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		table[state % 512] += round;
		sum += state & 1 ? table[round % 512] : state >> 3;
		share = share * 1.25 - 0.5;
	}
	return sum;
}

static void sample(word mask)
{
	word seen = 0, late = 0, turns = 0;
	asm volatile("mov cr.tpr = r0;; mov cr.pmv = %0;; srlz.d;; ssm psr.i;; srlz.d;;" ::"r"(VECTOR | mask) : "memory");
	configure(4, COUNTS | INSTRUCTIONS | INTERRUPTS | ENABLED);
	while (seen < SAMPLES && turns < 100000) {
		word before = interrupts[0];
		write_data(4, -(word)PERIOD & COUNTER_MASK);
		go_on();
		while (interrupts[0] == before && turns < 100000)
			work(1), turns++;
		// Frozen since the overflow: bit 0, and bit 4 for counter 4.
		if (interrupts[0] != before + 1 || status() != 0x11)
			break;
		word more = read_data(4) & COUNTER_MASK;
		late = more > late ? more : late;
		seen++;
	}
	print_result(seen, late);
	print_result(status(), turns < 100000);
}

// Six instructions that issue together, and three in the next cycle. A call, as the compiler counts rounds in ar.lc as well.
static __attribute__((noinline)) void count_loop(word rounds)
{
	asm volatile("mov.i ar.lc = %0;;\n"
		     ".balign 64\n[count_loop_first:]\n"
		     "1: { .mii; add r14 = 1, r0; add r15 = 1, r0; add r16 = 1, r0 }\n"
		     "{ .mii; add r17 = 1, r0; add r18 = 1, r0; add r19 = 1, r0;; }\n"
		     "{ .mfb; add r20 = 1, r0; nop.f 0; br.cloop.sptk.few 1b;; }\n" ::"r"(rounds - 1)
		     : "ar.lc", "r14", "r15", "r16", "r17", "r18", "r19", "r20");
}

static void thresholds(void)
{
	for (word threshold = 0; threshold < 7; threshold++) {
		freeze();
		configure(4, COUNTS | INSTRUCTIONS | THRESHOLD(threshold) | ENABLED);
		write_data(4, 0);
		go_on();
		count_loop(1000);
		freeze();
		print_result(threshold, read_data(4));
	}
}

static void events(void)
{
	work(ROUNDS); // warms the caches
	for (word code = 0; code < 256; code++)
		for (word masks = 0; masks < 16; masks += 4) {
			freeze();
			for (word counter = 4; counter < 8; counter++) {
				configure(counter, COUNTS | code << 8 | (masks + counter - 4) << 16 | ENABLED);
				write_data(counter, 0);
			}
			go_on();
			work(ROUNDS);
			freeze();
			for (word counter = 4; counter < 8; counter++)
				if (read_data(counter))
					print_result(code | (masks + counter - 4) << 16, read_data(counter));
		}
}

// Lines of memory that nothing has touched, and an instruction that reads one word of each.
enum { LINES = 64, LINE = 1024 };
static char memory[LINES * LINE] __attribute__((aligned(LINES * LINE)));
extern char read_line_load[], read_line_end[];

static __attribute__((noinline)) word read_line(const char *address)
{
	word value;
	asm volatile("[read_line_load:] ld8 %0 = [%1];;\n.global read_line_load, read_line_end\nread_line_end:"
	             : "=r"(value) : "r"(address) : "memory");
	return value;
}

#define DATA_CACHE(mask) (COUNTS | (word)(mask) << 16)
#define FETCH_CACHE(mask) (COUNTS | (word)(mask) << 5 | 1ul << 13)
#define DATA_EVENTS (0xc8ul << 8)
#define FETCH_EVENTS (0x43ul << 8)

// Mask 2: 16 cycles and more, which is beyond the second-level cache.
static void data(void)
{
	for (int again = 0; again < 2; again++) {
		word right = 0;
		freeze();
		configure(4, COUNTS | DATA_EVENTS | ENABLED);
		configure(11, DATA_CACHE(2));
		write_data(4, 0);
		for (word line = 0; line < LINES; line++) {
			write_data(2, 0);
			go_on();
			read_line(memory + line * LINE);
			freeze();
			word latency = read_data(3) & 0x1fff, instruction = read_data(17);
			word bundle = (instruction & -32ul) + (instruction & 4 ? 16 : 0);
			right += read_data(2) == (word)(memory + line * LINE) && latency >= 16 && (instruction & 8)
				 && bundle + (instruction & 3) == (word)read_line_load;
		}
		print_result(read_data(4), right);
		configure(11, 0);
	}
}

static __attribute__((noinline)) void twice(word rounds)
{
	asm volatile("mov.i ar.lc = %0;;\n"
		     "1: { .mib; nop.m 0; nop.i 0; br.cloop.sptk.few 1b;; }" ::"r"(rounds - 1)
		     : "ar.lc");
}

// All taken branches, whatever was predicted.
static void branches(void)
{
	freeze();
	for (word index = 8; index <= 16; index++)
		write_data(index, 0);
	configure(12, COUNTS | 2ul << 8 | 3ul << 10 | 3ul << 12);
	go_on();
	twice(40);
	freeze();
	word index = read_data(16);
	print_result(index & 7, index >> 3 & 1);
	for (word entry = 0; entry < 8; entry++) {
		word value = read_data(8 + (index + entry) % 8), more = read_data(16) >> (4 + 4 * ((index + entry) % 8)) & 0xf;
		print_result(value & 1, (value & -16ul) + (value & 1 ? (more & 1) * 16 : 0));
	}
	configure(12, 0);
}

// 300 lines of code with a branch to the next in each.
void far_code(void);
asm(".text\n.align 128\n.global far_code\n.proc far_code\nfar_code:\n"
    ".rept 300\n{ .mib; nop.m 0; nop.i 0; br.sptk.few 2f;; }\n.skip 112\n2:\n.endr\n"
    "br.ret.sptk.few b0;;\n.endp far_code\n");

static void fetches(void)
{
	for (int again = 0; again < 2; again++) {
		word line;
		freeze();
		configure(4, COUNTS | FETCH_EVENTS | ENABLED);
		configure(10, FETCH_CACHE(0xff));
		write_data(4, 0);
		write_data(0, 0);
		go_on();
		far_code();
		freeze();
		line = read_data(0);
		print_result(read_data(4), line & 1);
		configure(10, 0);
	}
}

static void pages(void)
{
	for (int again = 0; again < 2; again++) {
		freeze();
		configure(4, COUNTS | FETCH_EVENTS | ENABLED);
		configure(10, COUNTS | 7ul << 5);
		write_data(4, 0);
		write_data(0, 0);
		go_on();
		far_code();
		freeze();
		print_result(read_data(4), read_data(0) & 3);
		configure(10, 0);
	}
}

// What restricts counting, and its values at power-up.
enum { OPCODES_FIRST = 8, OPCODES_SECOND = 9, DATA_RANGES = 13, CODE_RANGES = 14, BY_OPCODE = 15 };
#define ANY_OPCODE 0xffffffff3ffffffful
#define ANY_DATA 0x2078fefefefeul
#define ANY_CODE 0x0db60db60db60db6ul
#define FINE (1ul << 13)
#define CHANNEL(number) ((word)(number) << 16)

// The bits of an instruction that are matched; those that `compared` has not do not matter.
#define OPCODE_BITS(slot) (((slot) >> 27 & 0x3ffful) << 13 | ((slot) & 0x1ffful))
#define OPCODE(units, slot, compared) \
	((word)(units) << 60 | OPCODE_BITS(slot) << 33 | (~OPCODE_BITS(compared) & 0x7fffffful) << 3 | 5)

extern char count_loop_first[];

static void write_pair(int is_data, word pair, word address, word mask)
{
	word control = (mask & ~(0xfful << 56)) | 0xful << 56;
	if (is_data)
		asm volatile("mov dbr[%0] = %1;; mov dbr[%2] = %3;; srlz.d;;" ::"r"(2 * pair), "r"(address), "r"(2 * pair + 1), "r"(control) : "memory");
	else
		asm volatile("mov ibr[%0] = %1;; mov ibr[%2] = %3;; srlz.d;;" ::"r"(2 * pair), "r"(address), "r"(2 * pair + 1), "r"(control) : "memory");
}

static word counted_loop(void)
{
	write_data(4, 0);
	write_data(5, 0);
	go_on();
	count_loop(1000);
	freeze();
	return read_data(4);
}

static void opcodes(void)
{
	freeze();
	configure(4, COUNTS | INSTRUCTIONS | ENABLED);
	configure(5, COUNTS | INSTRUCTIONS | CHANNEL(1));
	// The assembler takes addl, of major opcode 9; r17 is in bits 6 to 12.
	configure(OPCODES_SECOND, OPCODE(0xf, 9ul << 37 | 17 << 6, 0xful << 37 | 0x7f << 6));
	for (word unit = 0; unit < 4; unit++) {
		configure(OPCODES_FIRST, OPCODE(1 << unit, 0, 0));
		print_result(unit, counted_loop());
	}
	print_result(4, read_data(5));
	configure(OPCODES_FIRST, ANY_OPCODE);
	configure(OPCODES_SECOND, ANY_OPCODE);
}

static void code(void)
{
	word first = (word)count_loop_first;
	freeze();
	configure(4, COUNTS | INSTRUCTIONS | ENABLED);
	configure(OPCODES_FIRST, ANY_OPCODE & ~3ul);
	configure(CODE_RANGES, ANY_CODE & ~(1ul << 1));
	write_pair(0, 0, first, ~63ul);
	print_result(0, counted_loop());
	write_pair(0, 0, first, ~4095ul);
	write_pair(0, 2, first + 32, ~4095ul);
	configure(CODE_RANGES, (ANY_CODE & ~(1ul << 1)) | FINE);
	print_result(1, counted_loop());
	// The second pair of bundles alone.
	write_pair(0, 0, first + 32, ~4095ul);
	print_result(2, counted_loop());
	configure(OPCODES_FIRST, (ANY_OPCODE & ~3ul) | 2);
	print_result(3, counted_loop());
	configure(OPCODES_FIRST, ANY_OPCODE);
	configure(CODE_RANGES, ANY_CODE);
}

static void addresses(void)
{
	freeze();
	configure(4, COUNTS | 0xcdul << 8 | ENABLED); // retired loads
	configure(5, COUNTS | DATA_EVENTS);
	configure(11, DATA_CACHE(2));
	configure(DATA_RANGES, (ANY_DATA & ~(3ul << 3)) | 2ul << 3);
	write_pair(1, 0, (word)memory, ~(LINES / 2 * LINE - 1ul));
	write_data(4, 0);
	write_data(5, 0);
	go_on();
	for (word line = 0; line < LINES; line++)
		read_line(memory + line * LINE);
	freeze();
	print_result(read_data(4), read_data(5));
	configure(DATA_RANGES, ANY_DATA);
	configure(11, 0);
}

extern char check_load[];

static __attribute__((noinline)) void load_in_advance(word *from, word *to)
{
	word value;
	asm volatile("ld8.a %0 = [%1];; st8 [%2] = r0;;\n[check_load:] chk.a.clr %0, 1f;;\n1:\n.global check_load" : "=&r"(value) : "r"(from), "r"(to) : "memory");
}

static void checks(void)
{
	word other, bundle;
	freeze();
	configure(4, COUNTS | 0x56ul << 8 | CHANNEL(1) | ENABLED);
	configure(5, COUNTS | 0x57ul << 8 | CHANNEL(1));
	configure(6, COUNTS | DATA_EVENTS);
	configure(11, COUNTS | 2ul << 7);
	for (word counter = 4; counter < 7; counter++)
		write_data(counter, 0);
	go_on();
	for (word round = 0; round < ROUNDS; round++)
		load_in_advance((word *)table, round & 1 ? (word *)table : &other);
	freeze();
	print_result(read_data(4), read_data(5));
	bundle = (read_data(17) & -32ul) + (read_data(17) & 4 ? 16 : 0);
	print_result(read_data(6), bundle + (read_data(17) & 3) == (word)check_load);
	configure(11, 0);
}

// Region 1 has pages of 16 kB, which its handler inserts from `page_table`.
enum { PAGE_LOG2 = 14, PAGES = LINES * LINE >> PAGE_LOG2, PAGE_ENTRY = 0x661 };
#define REGION (1ul << 61)

static void served(void)
{
	for (word page = 0; page < PAGES; page++)
		page_table[page] = ((word)memory + (page << PAGE_LOG2)) | PAGE_ENTRY;
	for (int again = 0; again < 2; again++) {
		word right = 0;
		freeze();
		configure(4, COUNTS | DATA_EVENTS | ENABLED);
		configure(11, COUNTS | 1ul << 7 | 8ul << 16);
		write_data(4, 0);
		for (word page = 0; page < PAGES; page++) {
			word address = REGION + (page << PAGE_LOG2) + 8 * page, bundle;
			write_data(2, 0);
			go_on();
			read_line((char *)address);
			freeze();
			bundle = (read_data(17) & -32ul) + (read_data(17) & 4 ? 16 : 0);
			right += read_data(2) == address && (read_data(3) >> 14 & 3) == 3 && bundle + (read_data(17) & 3) == (word)read_line_load;
		}
		print_result(read_data(4), right);
		configure(11, 0);
	}
}

static int is(const char *text, const char *name)
{
	while (*name)
		if (*text++ != *name++)
			return 0;
	return !*text;
}

int main(void)
{
	static char parameters[64];
	hypercall(PARAMETERS, (word)parameters, sizeof parameters - 1, 0);
	asm volatile("mov ar.k0 = r0;; sum 4;; srlz.d;;" ::: "memory");
	if (is(parameters, "sample"))
		sample(0);
	else if (is(parameters, "masked"))
		sample(MASKED);
	else if (is(parameters, "threshold"))
		thresholds();
	else if (is(parameters, "events"))
		events();
	else if (is(parameters, "data"))
		data();
	else if (is(parameters, "branches"))
		branches();
	else if (is(parameters, "fetches"))
		fetches();
	else if (is(parameters, "pages"))
		pages();
	else if (is(parameters, "opcodes"))
		opcodes();
	else if (is(parameters, "code"))
		code();
	else if (is(parameters, "addresses"))
		addresses();
	else if (is(parameters, "checks"))
		checks();
	else if (is(parameters, "served"))
		served();
	else
		return 1;
	return 0;
}
