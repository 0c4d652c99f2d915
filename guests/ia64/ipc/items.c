/* The typed items of a message: pages that the sender maps or grants to the receiver. Strings are not carried: a message
   with one arrives up to it, with an error. */

#include "kernel.h"

/* A power of two of addresses, as programs write it. */
struct pages {
    uint64_t base, size, rights;
};

static struct pages pages_of(uint64_t word)
{
    uint64_t size = word >> PAGES_SIZE_SHIFT & PAGES_SIZE;
    if ((word & ~(uint64_t)PAGES_RIGHTS) == PAGES_ALL)
        return (struct pages){0, SPACE_PAGES * PAGE_SIZE, word & PAGES_RIGHTS};
    if (size < PAGE_SHIFT || size > PAGE_SHIFT + SPACE_SHIFT) /* less than a page, more than there is */
        return (struct pages){0, 0, 0};
    return (struct pages){word & ~(((uint64_t)1 << size) - 1), (uint64_t)1 << size, word & PAGES_RIGHTS};
}

/* The rights in a page table's entry, as bits: whoever may write or execute may read. */
static uint64_t rights_of(uint64_t entry)
{
    static const uint64_t rights[] = {
        PAGES_READ,
        PAGES_READ | PAGES_EXECUTE,
        PAGES_READ | PAGES_WRITE,
        PAGES_READ | PAGES_WRITE | PAGES_EXECUTE,
    };
    return rights[entry >> PTE_RIGHTS_SHIFT & 3];
}

static uint64_t with_rights(uint64_t entry, uint64_t rights)
{
    uint64_t access = (rights & PAGES_WRITE ? 2 : 0) | (rights & PAGES_EXECUTE ? 1 : 0);
    return (entry & ~(uint64_t)(PTE_RIGHTS << PTE_RIGHTS_SHIFT)) | access << PTE_RIGHTS_SHIFT;
}

/* The control blocks' page is the kernel's to give. */
static uint64_t *entry_of(struct space *space, uint64_t address)
{
    return address < SPACE_PAGES * PAGE_SIZE && address != UTCBS_ADDRESS ? &space->table[address / PAGE_SIZE] : 0;
}

/* Maps `pages` of the sender where `base` is in the receiver's window; of the larger of the two, the part that `base` chooses.
   A page that the receiver has stays, unless it is the same one; a granted page leaves the sender. */
static void map(struct tcb *from, struct tcb *to, struct pages pages, uint64_t base, int grants)
{
    struct pages window = pages_of(to->utcb->acceptor & ~(uint64_t)1);
    if (!window.size || !pages.size || from->space == to->space)
        return;
    uint64_t source = pages.base, target = window.base, size = window.size;
    if (pages.size <= window.size) {
        size = pages.size;
        target += base & (window.size - 1) & ~(size - 1);
    } else {
        source += base & (pages.size - 1) & ~(size - 1);
    }
    for (uint64_t at = 0; at < size; at += PAGE_SIZE) {
        uint64_t *theirs = entry_of(to->space, target + at), *ours = entry_of(from->space, source + at);
        uint64_t rights = ours ? rights_of(*ours) & pages.rights : 0;
        if (!theirs || *theirs || !rights || !*ours)
            continue;
        *theirs = with_rights(*ours, rights);
        purge_page(to->space->region, target + at);
        if (grants) {
            *ours = 0;
            purge_page(from->space->region, source + at);
        }
    }
}

/* Whether all items of a message with this tag were carried. */
int transfer_items(struct tcb *from, struct tcb *to, uint64_t tag)
{
    const uint64_t *source = from->utcb->message;
    uint64_t *target = to->utcb->message;
    uint64_t at = 1 + (tag & TAG_UNTYPED), end = at + (tag >> TAG_TYPED_SHIFT & TAG_UNTYPED);
    for (; at < end; at += 2) {
        uint64_t type = source[at] & ITEM_TYPE;
        if (at + 1 >= end || end > 1 + WORDS_MAX || (type != ITEM_MAP && type != ITEM_GRANT))
            return 0;
        target[at] = source[at];
        target[at + 1] = source[at + 1];
        map(from, to, pages_of(source[at + 1]), source[at] & ~(((uint64_t)1 << ITEM_BASE_SHIFT) - 1), type == ITEM_GRANT);
    }
    return 1;
}
