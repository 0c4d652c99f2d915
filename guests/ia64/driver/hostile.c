// A kernel whose virtio network driver breaks every rule: descriptors that name what is no memory, chains that loop,
// counts that leap, rings moved under the device, registers written at random; and that never looks at an answer.
//
// Whoever runs it puts a number in the place of `seed`, which the file has once.

typedef unsigned long word;
typedef unsigned int half;
typedef unsigned short quarter;

enum { ENTRIES = 16, QUEUES = 2, ROUNDS = 2000 };
enum { CONFIGURATION_MESSAGE = 0x10, STATUS = 0x14, QUEUE_SELECT = 0x16, QUEUE_SIZE = 0x18, QUEUE_MESSAGE = 0x1a };
enum { QUEUE_ENABLE = 0x1c, DESCRIPTORS = 0x20, AVAILABLE = 0x28, USED = 0x30, DOORBELLS = 0x3000 };
enum { FEATURES_SELECT = 0x08, FEATURES = 0x0c, NO_MESSAGE = 0xffff };

// The device answers to its registers once the command in its configuration says so.
enum { CONFIGURATION_WRITE = 0x01000011, COMMAND = 2 << 11 | 4, MEMORY_AND_MASTER = 6 };

extern void firmware(word procedure, word address, word bytes, word value, word kind, word, word, word);

// The device's registers, uncacheable: the second on the bus, behind a source of entropy.
#define DEVICE (1ul << 63 | 0xe0008000ul)

char stack[1 << 16] __attribute__((aligned(16384)));
volatile word seed = 0x5eed5eed5eed5eedul;

struct descriptor {
	word address;
	half size;
	quarter flags, next;
};

static volatile struct descriptor descriptors[QUEUES][ENTRIES] __attribute__((aligned(4096)));
static volatile quarter available[QUEUES][ENTRIES + 3] __attribute__((aligned(4096)));
static volatile half used[QUEUES][2 * ENTRIES + 2] __attribute__((aligned(4096)));
static char buffers[ENTRIES][2048] __attribute__((aligned(4096)));
static word state;

static word random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void store(word offset, word value, word bytes)
{
	word address = DEVICE + offset;
	switch (bytes) {
	case 1:
		*(volatile unsigned char *)address = value;
		break;
	case 2:
		*(volatile quarter *)address = value;
		break;
	default:
		*(volatile half *)address = value;
	}
	asm volatile("mf.a" ::: "memory");
}

static void store_address(word offset, word value)
{
	store(offset, value, 4);
	store(offset + 4, value >> 32, 4);
}

static word now(void)
{
	word time;
	asm volatile("mov %0 = ar.itc" : "=r"(time)::"memory");
	return time;
}

static void set_up(void)
{
	store(STATUS, 0, 1);
	store(STATUS, 1 | 2, 1);
	store(FEATURES_SELECT, 1, 4);
	store(FEATURES, 1, 4);
	store(FEATURES_SELECT, 0, 4);
	store(FEATURES, random() & 1 ? 1 << 29 : 0, 4);
	store(STATUS, 1 | 2 | 8, 1);
	store(CONFIGURATION_MESSAGE, NO_MESSAGE, 2);
	for (word queue = 0; queue < QUEUES; queue++) {
		store(QUEUE_SELECT, queue, 2);
		store(QUEUE_SIZE, ENTRIES, 2);
		store(QUEUE_MESSAGE, NO_MESSAGE, 2);
		// Now and then a ring is where no memory is.
		store_address(DESCRIPTORS, random() % 64 ? (word)descriptors[queue] : random());
		store_address(AVAILABLE, random() % 64 ? (word)available[queue] : random());
		store_address(USED, random() % 64 ? (word)used[queue] : random());
		available[queue][1] = 0;
		store(QUEUE_ENABLE, 1, 2);
	}
	store(STATUS, 1 | 2 | 8 | 4, 1);
	// The card takes its time until it looks.
	for (word start = now(); now() - start < 200000;)
		asm volatile("hint @pause" ::: "memory");
}

static word some_address(void)
{
	switch (random() % 4) {
	case 0:
		return random();
	case 1:
		// The device itself, and where memory ends.
		return random() & 1 ? 0xe0008000ul + random() % 0x8000 : (256ul << 20) - random() % 4096;
	default:
		return (word)buffers[random() % ENTRIES];
	}
}

static void misbehave(void)
{
	word queue = random() % QUEUES, place = random() % ENTRIES;
	volatile struct descriptor *descriptor = &descriptors[queue][place];
	switch (random() % 10) {
	case 0:
	case 1:
	case 2:
		descriptor->address = some_address();
		descriptor->size = random() % 8 ? random() % 2048 : random();
		descriptor->flags = random() % 8 ? random() % 8 : random();
		descriptor->next = random() % 8 ? random() % ENTRIES : random();
		break;
	case 3:
		available[queue][2 + place] = random() % 8 ? random() % ENTRIES : random();
		break;
	case 4:
	case 5:
		available[queue][1] += random() % 16 ? random() % 4 : random();
		break;
	case 6:
		used[queue][random() % (2 * ENTRIES + 2)] = random();
		break;
	case 7:
		store(DOORBELLS, random() % 8 ? queue : random(), 2);
		break;
	case 8:
		if (random() % 64 == 0) {
			word bytes = 1ul << random() % 3;
			store(random() % 0x40 & -bytes, random(), bytes);
		}
		break;
	default:
		if (random() % 16 == 0)
			set_up();
	}
}

void main(void)
{
	state = seed | 1;
	firmware(CONFIGURATION_WRITE, COMMAND, 2, MEMORY_AND_MASTER, 0, 0, 0, 0);
	set_up();
	for (word round = 0; round < ROUNDS; round++) {
		misbehave();
		if (round % 4 == 0)
			store(DOORBELLS, round / 4 % QUEUES, 2);
	}
	// It never answers again.
}
