// A guest of the monitor with an interface of a self-virtualised card: a driver, and what is done with packets.
//
// The machine's parameters are a list of words: what to do, and numbers. What a guest measures it logs in memory, whose
// address it prints as `log ADDRESS`: a count, and as many cycles of the interval time counter. Where nothing else is said
// it goes on for ever.
//
//   probe H I P T         the client of psapp, from cycle T on: 64 bytes to interface I of host H, the next P rounds of
//                         computing after the echo has come; logs each round trip
//   echo                  the server of psapp: sends what comes back to its sender
//   sink W                takes what comes, W rounds of computing for each frame; logs how old each is then, by the
//                         time that the sender has put into it; asks for an interrupt when it has nothing to do
//   sink-interrupted W    the same, and asks for an interrupt for each frame
//   take N W              takes N frames, W rounds of computing for each, and ends; each frame must be younger than the one
//                         before by the number or the time that its sender has put into it
//   compute W             W rounds of computing at a time; logs what each time takes
//   talk H I N            sends N frames to interface I of host H as quickly as it can, takes what comes, and ends
//   garbage S             rings, counts and registrations made from seed S
//   deaf                  posts buffers, asks for an interrupt, and never looks

#include "guest.h"
#include "shared.h"

enum { REGISTER_INTERFACE = 0x43 };
enum { PROCESSORS_MAX = 8, PAGE = 1 << 14, PAGES = 1 << 12, VECTOR = 0x51, TIMER_VECTOR = 0x52, FRAME = 2048, LOG_MAX = 1 << 15 };
enum { FILLED = 1, PROBE = 64, HEADER = 14, STAMP = 16 };

// What start.S refers to: of pages on demand this guest has none.
char stacks[PROCESSORS_MAX << 16] __attribute__((aligned(PAGE)));
word page_entries[PAGES];
volatile word faults, files_by_exit;
volatile word interrupts[PROCESSORS_MAX];

static volatile struct interface_area area __attribute__((aligned(PAGE)));
static unsigned char buffers[RING_ENTRIES_MAX][FRAME] __attribute__((aligned(PAGE)));
static unsigned char outgoing[RING_ENTRIES_MAX][FRAME] __attribute__((aligned(PAGE)));
static volatile struct {
	word count, samples[LOG_MAX];
} log __attribute__((aligned(8)));
static char parameters[128];
static const char *next_parameter = parameters;
static word entries, taken, sent;

static _Noreturn void fail(const char *text)
{
	print(text);
	print("\n");
	for (;;)
		hypercall(EXIT, 1, 0, 0);
}

static const char *next_word(void)
{
	static char found[32];
	word length = 0;
	while (*next_parameter == ' ')
		++next_parameter;
	while (*next_parameter && *next_parameter != ' ' && length < sizeof found - 1)
		found[length++] = *next_parameter++;
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

static void note(word cycles)
{
	word count = log.count;
	if (count < LOG_MAX) {
		log.samples[count] = cycles;
		__atomic_store_n(&log.count, count + 1, __ATOMIC_RELEASE);
	}
}

static void store(volatile word *field, word value)
{
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}

static volatile struct descriptor *send_descriptor(word number)
{
	return &area.descriptors[number % entries];
}

static volatile struct descriptor *receive_descriptor(word number)
{
	return &area.descriptors[entries + number % entries];
}

static void post(word number)
{
	volatile struct descriptor *descriptor = receive_descriptor(number);
	descriptor->address = (word)buffers[number % entries];
	descriptor->length = FRAME;
	descriptor->status = 0;
}

static void open(void)
{
	if (hypercall(REGISTER_INTERFACE, (word)&area, VECTOR, 0) != 0)
		fail("the interface was refused");
	if (area.magic != INTERFACE_MAGIC || area.version != 1 || area.entries > RING_ENTRIES_MAX)
		fail("the interface is not as documented");
	entries = area.entries;
	taken = sent = 0;
	for (word number = 0; number < entries; number++)
		post(number);
	store(&area.posted, entries);
	asm volatile("mov cr.tpr = r0;; srlz.d" ::: "memory");
}

static int has_come(void)
{
	return __atomic_load_n(&area.received, __ATOMIC_ACQUIRE) != taken;
}

// Takes interrupts that have come.
static void listen(void)
{
	asm volatile("ssm psr.i;; srlz.d;; rsm psr.i;; srlz.d" ::: "memory");
}

static void ask(void)
{
	store(&area.wanted, taken);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void wait(void)
{
	while (!has_come()) {
		ask();
		if (has_come())
			return;
		hypercall(WAIT_FOR_INTERRUPT, 0, 0, 0);
		listen();
	}
}

// The next frame; its buffer is the driver's until give_back.
static unsigned char *take(word *length)
{
	volatile struct descriptor *descriptor = receive_descriptor(taken);
	if (descriptor->status != FILLED)
		fail("a buffer was refused");
	*length = descriptor->length;
	return (unsigned char *)descriptor->address;
}

static void give_back(void)
{
	post(taken);
	taken++;
	store(&area.posted, taken + entries);
}

// Room for the next frame to send: waits for the card if it has all.
static unsigned char *room(void)
{
	while (sent - __atomic_load_n(&area.transmitted, __ATOMIC_ACQUIRE) >= entries)
		asm volatile("hint @pause" ::: "memory");
	return outgoing[sent % entries];
}

static void send(word length)
{
	volatile struct descriptor *descriptor = send_descriptor(sent);
	descriptor->address = (word)outgoing[sent % entries];
	descriptor->length = length;
	descriptor->status = 0;
	store(&area.sent, ++sent);
}

static void copy(unsigned char *to, const unsigned char *from, word bytes)
{
	while (bytes--)
		*to++ = *from++;
}

// The header of a frame to an interface.
static void head(unsigned char *frame, word host, word interface)
{
	word own = area.address;
	const unsigned char to[6] = { 0x02, 'S', host >> 8, host, interface >> 8, interface };
	copy(frame, to, 6);
	copy(frame + 6, (const unsigned char *)&own, 6);
	frame[12] = 0x88;	// of local experiments (IEEE 802)
	frame[13] = 0xb5;
}

static void sleep_until(word time)
{
	asm volatile("mov cr.itm = %0;; mov cr.itv = %1;; srlz.d" ::"r"(time), "r"((word)TIMER_VECTOR) : "memory");
	while (now() < time) {
		hypercall(WAIT_FOR_INTERRUPT, 0, 0, 0);
		listen();
	}
	asm volatile("mov cr.itv = %0;; srlz.d" ::"r"(1ul << 16) : "memory");	// masked
}

static _Noreturn void probe(word host, word interface, word pause)
{
	for (word number = 0;; number++) {
		word start = now(), length;
		unsigned char *frame = room();
		head(frame, host, interface);
		*(word *)(frame + STAMP) = number;
		send(PROBE);
		for (int found = 0; !found;) {
			wait();
			unsigned char *echo = take(&length);
			found = length == PROBE && *(word *)(echo + STAMP) == number;
			give_back();
		}
		note(now() - start);
		compute(pause);
	}
}

static _Noreturn void echo(void)
{
	for (;;) {
		word length;
		wait();
		unsigned char *frame = take(&length), *answer = room();
		copy(answer + HEADER, frame + HEADER, length - HEADER);
		copy(answer, frame + 6, 6);
		copy(answer + 6, frame, 6);
		copy(answer + 12, frame + 12, 2);
		give_back();
		send(length);
		log.count++;
	}
}

static _Noreturn void sink(word work, int interrupted)
{
	for (;;) {
		word length;
		wait();
		word stamp = *(word *)(take(&length) + STAMP);
		give_back();
		if (interrupted) {
			ask();
			asm volatile("ssm psr.i;; srlz.d" ::: "memory");
		}
		compute(work);
		asm volatile("rsm psr.i;; srlz.d" ::: "memory");
		note(now() - stamp);
	}
}

static _Noreturn void take_some(word count, word work)
{
	word length, before = 0;
	for (word number = 0; number < count; number++) {
		wait();
		word stamp = *(word *)(take(&length) + STAMP);
		give_back();
		if (number && stamp <= before)
			fail("a frame came twice, or too late");
		before = stamp;
		compute(work);
	}
	print("taken ");
	print_number(count);
	print("\n");
	for (;;)
		hypercall(EXIT, 0, 0, 0);
}

static _Noreturn void steadily(word work)
{
	for (;;) {
		word start = now();
		compute(work);
		note(now() - start);
	}
}

static _Noreturn void talk(word host, word interface, word count)
{
	word length;
	for (word number = 0; number < count; number++) {
		unsigned char *frame = room();
		head(frame, host, interface);
		*(word *)(frame + STAMP) = number;
		send(PROBE);
		while (has_come()) {
			take(&length);
			give_back();
			log.count++;
		}
	}
	while (__atomic_load_n(&area.transmitted, __ATOMIC_ACQUIRE) != sent)
		asm volatile("hint @pause" ::: "memory");
	for (;;)
		hypercall(EXIT, 0, 0, 0);
}

static word random_word(word *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static _Noreturn void garbage(word seed)
{
	word state = seed * 2654435761ul + 88172645463325252ul;
	for (;;) {
		word value = random_word(&state), number = random_word(&state);
		switch (random_word(&state) % 8) {
		case 0:
			value %= 2 * RING_ENTRIES_MAX;
			area.descriptors[value].address = random_word(&state);
			break;
		case 1:
			area.descriptors[value % (2 * RING_ENTRIES_MAX)].length = number;
			break;
		case 2:
			store(&area.sent, value % 3 ? area.transmitted + number % 300 : value);
			break;
		case 3:
			store(&area.posted, value % 3 ? area.received + number % 300 : value);
			break;
		case 4:
			store(&area.wanted, value % 3 ? area.received - number % 3 : value);
			break;
		case 5:
			((volatile word *)&area)[number % (sizeof area / 8)] = value;
			break;
		case 6:
			hypercall(REGISTER_INTERFACE, value % 3 ? (word)&area : value, number % 3 ? VECTOR : number, 0);
			break;
		default:
			compute(number % 100);
			listen();
		}
	}
}

void main(word me, word processors)
{
	(void)processors;
	if (me != 0)
		fail("one processor is enough");
	hypercall(PARAMETERS, (word)parameters, sizeof parameters, 0);
	print("log ");
	print_number((word)&log);
	print("\n");
	static char what[32];
	const char *word_0 = next_word();
	for (word place = 0; (what[place] = word_0[place]); place++)
		;
	open();
	if (is(what, "probe")) {
		word host = next_number(), interface = next_number(), pause = next_number();
		sleep_until(next_number());
		probe(host, interface, pause);
	} else if (is(what, "echo")) {
		echo();
	} else if (is(what, "sink") || is(what, "sink-interrupted")) {
		sink(next_number(), is(what, "sink-interrupted"));
	} else if (is(what, "take")) {
		word count = next_number();
		take_some(count, next_number());
	} else if (is(what, "compute")) {
		steadily(next_number());
	} else if (is(what, "talk")) {
		word host = next_number(), interface = next_number();
		talk(host, interface, next_number());
	} else if (is(what, "garbage")) {
		garbage(next_number());
	} else if (is(what, "deaf")) {
		ask();
		for (;;)
			compute(1000);
	}
	fail("nothing of that name can be done");
}
