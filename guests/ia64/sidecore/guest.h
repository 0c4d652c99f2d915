// What the guests of the monitor have in common: calls, words and the console.

#ifndef SIDECORE_GUEST_H
#define SIDECORE_GUEST_H

typedef unsigned long word;

enum { EXIT = 0, WAIT_FOR_INTERRUPT = 3, PUT_BYTES = 4, PARAMETERS = 6 };

extern long hypercall(word function, word first, word second, word third);

static word now(void)
{
	word time;
	asm volatile("mov %0 = ar.itc" : "=r"(time)::"memory");
	return time;
}

static void print(const char *text)
{
	word length = 0;
	while (text[length])
		length++;
	hypercall(PUT_BYTES, (word)text, length, 0);
}

static void print_number(word number)
{
	char digits[24], *place = digits + sizeof digits;
	*--place = 0;
	do
		*--place = '0' + number % 10;
	while (number /= 10);
	print(place);
}

static int is(const char *text, const char *other)
{
	while (*text && *text == *other)
		text++, other++;
	return *text == *other;
}

#endif
