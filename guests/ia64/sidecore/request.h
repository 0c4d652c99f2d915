// Requests to the monitor, through memory or by exit as the request page's mode says.

#ifndef SIDECORE_REQUEST_H
#define SIDECORE_REQUEST_H

#include "guest.h"
#include "shared.h"

enum { REGISTER = 0x40, SLOTS = REQUEST_SLOTS };

extern word request_by_exit(word kind, word first, word second, word third, word *status);

static _Noreturn void end(word code)
{
	for (;;)
		hypercall(EXIT, code, 0, 0);
}

static _Noreturn void fail(const char *text)
{
	print(text);
	print("\n");
	end(1);
}

static volatile struct request_page *my_page(void)
{
	word page;
	asm("mov %0 = ar.k1" : "=r"(page));
	return (volatile struct request_page *)page;
}

static void make(volatile struct slot *slot, word kind, word first, word second, word third, word vector)
{
	slot->kind = kind;
	slot->arguments[0] = first;
	slot->arguments[1] = second;
	slot->arguments[2] = third;
	slot->vector = vector;
	__atomic_store_n(&slot->status, REQUESTED, __ATOMIC_RELEASE);
}

static word wait(volatile struct slot *slot)
{
	word status;
	while ((status = __atomic_load_n(&slot->status, __ATOMIC_ACQUIRE)) == REQUESTED)
		asm volatile("hint @pause" ::: "memory");
	return status;
}

// Makes a request as the mode says and waits for it; made again by exit if nobody serves sidecalls any more.
static word request(word kind, word first, word second, word third, word *status)
{
	volatile struct request_page *page = my_page();
	if (page->mode) {
		volatile struct slot *slot = &page->slot[0];
		make(slot, kind, first, second, third, 0);
		*status = wait(slot);
		word result = slot->result;
		slot->status = FREE;
		if (*status != REFUSED || result != NOT_SERVED)
			return result;
	}
	return request_by_exit(kind, first, second, third, status);
}

static word ask(word kind, word first, word second, word third)
{
	word status, result = request(kind, first, second, third, &status);
	if (status != DONE)
		fail("a request was refused");
	return result;
}

// Makes a page this processor's request page.
static void register_page(volatile struct request_page *page)
{
	if (hypercall(REGISTER, (word)page, 0, 0) != 0)
		fail("the request page was refused");
	asm volatile("mov ar.k1 = %0;; mov cr.tpr = r0;; srlz.d" ::"r"(page) : "memory");
	if (page->magic != REQUEST_MAGIC || page->version != 1 || page->slots != SLOTS)
		fail("the request page is not as documented");
}

#endif
