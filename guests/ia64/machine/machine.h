// What every image for bare machines has: the hypercalls, and what start.S does for C code.

#pragma once

typedef unsigned long word;

enum { PROCESSORS_MAX = 16 };

// The functions of the hypercall (docs/src/itanium/machine.md).
enum {
	EXIT = 0,
	PUT_CHARACTER = 1,
	GET_CHARACTER = 2,
	WAIT_FOR_INTERRUPT = 3,
	PUT_BYTES = 4,
	IDENTIFY = 5,
	PARAMETERS = 6,
	STOP = 7,
	START = 8,
	TIME = 9,
};

extern long hypercall(word function, word first, word second, word third);

// Where a processor that is started begins; it comes to main as the first one does.
extern char _start[];

// The translations of region 1, page by page (16 kB), as itc takes them.
extern word page_table[256];

// External interrupts taken, by the processor that kernel register 0 numbers.
extern volatile word interrupts[PROCESSORS_MAX];

#ifndef RUNTIME_H // whose `print` knows numbers too
static inline void print(const char *text)
{
	word length = 0;
	while (text[length])
		length++;
	hypercall(PUT_BYTES, (word)text, length, 0);
}
#endif
