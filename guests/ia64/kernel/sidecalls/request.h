/* The request pages, for the files of this folder. */

#ifndef REQUEST_H
#define REQUEST_H

#include "../../sidecore/shared.h"
#include "sidecalls.h"

extern struct request_page request_pages[PROCESSORS];

static inline struct request_page *request_page(void)
{
    return &request_pages[this_cpu->number];
}

/* Writes a request into a slot, and hands the slot over to whoever serves it. */
void request_write(struct slot *slot, enum request_kind kind, const uint64_t *arguments, uint64_t vector);
void request_make(struct slot *slot);

#endif
