/* Requests to the monitor of a virtual machine: each CPU has a page that it shares with whoever serves them, a sidecore where
   there is one. What nobody serves, the kernel does itself, as it does on a bare machine.

   The first slot of a page is for what is waited for at once: a page table update or a purge. No interrupt handler makes such a
   request, and a CPU is not preempted while one is under way. The others are the disk's (disk.c). */

#include "kernel.h"
#include "request.h"
#include "text.h"

struct request_page request_pages[PROCESSORS] __attribute__((aligned(4096)));

static unsigned wanted;

int sidecalls_choose(const char *value)
{
    static const char *const words[] = {"updates", "purges", "disk"};
    wanted = 0;
    if (text_equal(value, "off"))
        return 1;
    for (;;) {
        size_t length = 0, i = 0;
        while (value[length] && value[length] != ',')
            length++;
        while (i < sizeof words / sizeof *words && (strlen(words[i]) != length || memcmp(value, words[i], length)))
            i++;
        if (i == sizeof words / sizeof *words)
            return 0;
        wanted |= 1u << i;
        if (!value[length])
            return 1;
        value += length + 1;
    }
}

void sidecalls_start(void)
{
    struct request_page *page = request_page();
    if (hypercall(HYPERCALL_REGISTER_PAGE, physical(page), 0, 0) && wanted)
        panic("parameter `sidecalls`: this machine has no monitor that takes requests; leave it out");
    if (page->magic && (page->magic != REQUEST_MAGIC || page->version != 1 || page->slots != REQUEST_SLOTS))
        panic("the request page is not as documented");
}

int sidecalls_are_made(enum sidecalls what)
{
    return wanted & what && *(volatile unsigned long *)&request_page()->mode;
}

void request_write(struct slot *slot, enum request_kind kind, const uint64_t *arguments, uint64_t vector)
{
    slot->kind = kind;
    for (int i = 0; i < 3; i++)
        slot->arguments[i] = arguments[i];
    slot->vector = vector;
}

void request_make(struct slot *slot)
{
    __atomic_store_n(&slot->status, REQUESTED, __ATOMIC_RELEASE);
}

/* Makes a request and waits for it; whether it was served. */
static int ask(enum request_kind kind, uint64_t first, uint64_t second, uint64_t third)
{
    struct slot *slot = &request_page()->slot[0];
    uint64_t status;
    request_write(slot, kind, (const uint64_t[]){first, second, third}, 0);
    request_make(slot);
    while ((status = __atomic_load_n(&slot->status, __ATOMIC_ACQUIRE)) == REQUESTED)
        relax();
    slot->status = FREE;
    return status == DONE;
}

/* With the long format the monitor writes the hashed table's entry and its own. With the short one the entry is in the table
   already, as the page table is the table. What is refused, the next reference finds out by itself. */
void sidecalls_update(uint64_t address, uint64_t entry)
{
    if (!sidecalls_are_made(SIDECALLS_UPDATES) || !(entry & PTE_PRESENT))
        return;
    if (!hashed_table_in_use) {
        ask(FILL, address, 0, 0);
        return;
    }
    uint64_t size_log2 = entry >> PTE_SUPERPAGE_BIT & 1 ? SUPERPAGE_SHIFT : PAGE_SHIFT;
    uint64_t key = entry >> PTE_KEY_SHIFT & ((1UL << PTE_KEY_BITS) - 1);
    ask(MAP, address, entry, key << 8 | size_log2 << 2);
}

/* The monitor knows one hashed table: that of the CPU that asks. */
int sidecalls_unmap(uint64_t address, int superpage)
{
    uint64_t size_log2 = superpage ? SUPERPAGE_SHIFT : PAGE_SHIFT;
    return PROCESSORS == 1 && hashed_table_in_use && sidecalls_are_made(SIDECALLS_PURGES) && ask(UNMAP, address, size_log2, 0);
}

int sidecalls_purge(uint64_t address, uint64_t size_log2)
{
    return sidecalls_are_made(SIDECALLS_PURGES) && ask(PURGE, address, size_log2, 0);
}
