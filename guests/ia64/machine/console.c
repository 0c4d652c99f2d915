// The smallest image: greets, then gives back each line that is typed, in capitals, until a line is empty or the input
// ends. The machine ends with the number of lines as its exit code.

#include "machine.h"

// The next character; a line feed behind the end of the input.
static char next(void)
{
	long character;
	while ((character = hypercall(GET_CHARACTER, 0, 0, 0)) == -1)
		asm volatile("hint @pause" ::: "memory");
	return character < 0 ? '\n' : character;
}

int main(void)
{
	int lines = 0;
	print("Type a line:\n");
	for (;;) {
		word length = 0;
		char character;
		while ((character = next()) != '\n') {
			if (character >= 'a' && character <= 'z')
				character -= 'a' - 'A';
			hypercall(PUT_CHARACTER, character, 0, 0);
			length++;
		}
		hypercall(PUT_CHARACTER, '\n', 0, 0);
		if (length == 0)
			return lines;
		lines++;
	}
}
