/* Address spaces: region identifiers, the two-level page table, areas that are filled on demand, and what the chosen page
   table format and the switches ask for.

   Translations leave the TLB in two ways: a page whose translation changes is purged, and an address space that ends
   is forgotten, as its region identifiers are never used again. */

#include "kernel.h"
#include "sidecalls.h"
#include "text.h"

#define TABLE_ENTRIES (1UL << TABLE_ENTRIES_SHIFT)
#define DIRECTORY_ENTRIES (8UL << DIRECTORY_ENTRIES_SHIFT)
#define REGION_IDENTIFIERS (1UL << 24)
#define INVALID_TAG (1UL << 63)
/* Protection key registers: one for private pages (key 0), one for text, and one for each shared object (its number). */
#define KEY_PRIVATE 0
#define KEY_TEXT 1
#define KEY_VALID 1
#define KEY_WRITE_DISABLED 2

int hashed_table_in_use;

static struct lock lock;
static uint64_t next_region_identifier = RID_FIRST_PROCESS;
static uint64_t object_frames[OBJECT_LAST + 1][OBJECT_PAGES];

/* Sets this CPU up for the format: the page table address, and its own hashed table where there is one. */
void translation_start(void)
{
    hashed_table_in_use = parameters.format == FORMAT_LONG;
    reset_status(PSR_IC);
    if (hashed_table_in_use) {
        uint64_t size = 1UL << parameters.hashed_table_shift;
        uint64_t at = HASHED_TABLE_PHYSICAL + ((uint64_t)this_cpu->number << HASHED_TABLE_SHIFT_MAX);
        pin_data(DTR_HASHED_TABLE, HASHED_TABLE_ADDRESS, at | PTE_KERNEL, HASHED_TABLE_SHIFT_MAX);
        for (uint64_t entry = 0; entry < size; entry += 32)
            *(uint64_t *)(HASHED_TABLE_ADDRESS + entry + 16) = INVALID_TAG;
        write_cr_pta(HASHED_TABLE_ADDRESS | parameters.hashed_table_shift << 2 | PTA_LONG | parameters.walker);
    } else {
        write_cr_pta(LINEAR_TABLE_BASE | LINEAR_TABLE_SHIFT << 2 | parameters.walker);
    }
    set_status(PSR_IC);
    if (parameters.sharing == SHARING_KEY) {
        for (unsigned key = 0; key < 16; key++)
            write_protection_key_register(key, 0);
        write_protection_key_register(0, KEY_PRIVATE << 8 | KEY_VALID);
        write_protection_key_register(1, KEY_TEXT << 8 | KEY_VALID);
        set_status(PSR_PK);
    }
}

static uint64_t *directory_entry(struct task *task, uint64_t address)
{
    uint64_t region = address >> REGION_SHIFT;
    uint64_t index = address >> TABLE_REACH_SHIFT & ((1UL << DIRECTORY_ENTRIES_SHIFT) - 1);
    return &task->directory[region << DIRECTORY_ENTRIES_SHIFT | index];
}

/* The page table entry of an address; null if its table does not exist and is not to be made. */
static uint64_t *table_entry(struct task *task, uint64_t address, int make)
{
    uint64_t *entry = directory_entry(task, address);
    if (!*entry) {
        if (!make)
            return 0;
        *entry = physical(kernel_pages(0));
    }
    uint64_t *table = cached(*entry);
    return &table[address >> PAGE_SHIFT & (TABLE_ENTRIES - 1)];
}

void address_space_new(struct task *task)
{
    uint64_t saved = acquire(&lock);
    if (next_region_identifier + 8 > REGION_IDENTIFIERS)
        panic("out of region identifiers");
    task->region_identifiers = next_region_identifier;
    next_region_identifier += 8;
    release(&lock, saved);
    task->text_region_identifier = task->region_identifiers + REGION_TEXT;
    task->mapped_region_identifier = task->region_identifiers + REGION_MAPPED;
    if (parameters.sharing != SHARING_OFF)
        task->text_region_identifier = RID_SHARED_TEXT;
    if (parameters.sharing == SHARING_KEY)
        task->mapped_region_identifier = RID_SHARED_MAPPED;
    task->directory = kernel_pages(0);
    /* Where region 1 is one for all, private pages must be elsewhere. */
    task->mapped_end = parameters.sharing == SHARING_KEY ? PRIVATE_BASE : MAPPED_BASE;
}

static uint64_t region_register(uint64_t identifier, uint64_t size_log2)
{
    return identifier << RID_SHIFT | size_log2 << 2 | (parameters.walker != 0);
}

/* Makes an address space the current one of this CPU: its directory and five region registers. */
void address_space_use(struct task *task)
{
    if (!task->directory)
        return; /* an idle task lives with any */
    set_page_table(physical(task->directory));
    write_region_registers(region_register(task->region_identifiers, PAGE_SHIFT),
                           region_register(task->mapped_region_identifier, PAGE_SHIFT),
                           region_register(task->text_region_identifier, PAGE_SHIFT),
                           region_register(task->region_identifiers + REGION_DATA, PAGE_SHIFT),
                           region_register(task->region_identifiers + REGION_STACK, PAGE_SHIFT));
    if (parameters.sharing == SHARING_KEY)
        for (unsigned key = OBJECT_FIRST; key <= OBJECT_LAST; key++) {
            uint64_t rights = task->keys[1] >> key & 1 ? KEY_VALID : KEY_VALID | KEY_WRITE_DISABLED;
            write_protection_key_register(key, (task->keys[0] >> key & 1) ? key << 8 | rights : 0);
        }
}

/* Forgets a translation everywhere: in the hashed tables and in the TLBs. */
static void forget(uint64_t address, int superpage)
{
    if (sidecalls_unmap(address, superpage))
        return;
    if (hashed_table_in_use) {
        uint64_t *entry = hashed_entry(address), tag = hashed_tag(address);
        for (unsigned number = 0; number < PROCESSORS; number++) {
            uint64_t offset = (uint64_t)entry - HASHED_TABLE_ADDRESS + ((uint64_t)number << HASHED_TABLE_SHIFT_MAX);
            uint64_t *same = cached(HASHED_TABLE_PHYSICAL + offset);
            if (same[2] == tag)
                __atomic_store_n(&same[2], INVALID_TAG, __ATOMIC_RELEASE);
        }
    }
    uint64_t size_log2 = superpage ? SUPERPAGE_SHIFT : PAGE_SHIFT;
    if (sidecalls_purge(address, size_log2))
        return;
    if (PROCESSORS > 1) {
        uint64_t saved = acquire(&lock); /* one global purge at a time */
        purge_global(address, size_log2);
        release(&lock, saved);
    } else {
        purge_local(address, size_log2);
    }
}

struct area *area_add(struct task *task, enum area_kind kind, uint64_t start, uint64_t end, int writable, int executable)
{
    for (struct area *area = task->areas; area < task->areas + AREAS_MAX; area++)
        if (area->kind == AREA_FREE) {
            *area = (struct area){.kind = kind, .start = start, .end = end, .writable = writable, .executable = executable};
            return area;
        }
    return 0;
}

static struct area *area_find(struct task *task, uint64_t address)
{
    for (struct area *area = task->areas; area < task->areas + AREAS_MAX; area++)
        if (area->kind != AREA_FREE && address >= area->start && address < area->end)
            return area;
    return 0;
}

int area_is_there(struct task *task, uint64_t address)
{
    return area_find(task, address) != 0;
}

static void drop_entry(uint64_t *entry)
{
    if (*entry & (PTE_PRESENT | PTE_SOFTWARE) && !(*entry & PTE_SHARED))
        frame_free(*entry & PTE_FRAME);
    *entry = 0;
}

void area_remove(struct task *task, uint64_t start, uint64_t end)
{
    for (struct area *area = task->areas; area < task->areas + AREAS_MAX; area++) {
        if (area->kind == AREA_FREE || area->start < start || area->end > end)
            continue;
        for (uint64_t address = area->start; address < area->end; address += PAGE_SIZE) {
            uint64_t *entry = table_entry(task, address, 0);
            if (entry && *entry) {
                int superpage = *entry >> PTE_SUPERPAGE_BIT & 1;
                drop_entry(entry);
                forget(address, superpage);
            }
        }
        area->kind = AREA_FREE;
    }
}

uint64_t page_frame(struct task *task, uint64_t address)
{
    const uint64_t *entry = table_entry(task, address, 0);
    return entry && *entry & (PTE_PRESENT | PTE_SOFTWARE) ? *entry & PTE_FRAME : 0;
}

/* The frame of a page of a shared object, made when it is first touched. */
static uint64_t object_frame(unsigned object, uint64_t page)
{
    uint64_t saved = acquire(&lock), *frame = &object_frames[object][page];
    if (!*frame && (*frame = frame_allocate()))
        memset(cached(*frame), 0, PAGE_SIZE);
    uint64_t found = *frame;
    release(&lock, saved);
    return found;
}

/* A page of an image: the image's own frame where nobody may write it (what follows the segment in the file shows, but
   is only more of the program), else a copy. */
static uint64_t image_page(const struct area *area, uint64_t page, uint64_t *shared)
{
    uint64_t offset = page - area->start;
    if (!area->writable) {
        *shared = PTE_SHARED;
        return physical(area->image + offset);
    }
    uint64_t frame = frame_allocate();
    if (frame) {
        size_t bytes = offset >= area->image_bytes ? 0 : area->image_bytes - offset;
        if (bytes > PAGE_SIZE)
            bytes = PAGE_SIZE;
        memcpy(cached(frame), area->image + offset, bytes);
        memset((char *)cached(frame) + bytes, 0, PAGE_SIZE - bytes);
    }
    return frame;
}

/* Fills a whole superpage of zeros; false if the area is too small there or memory is short. */
static int fill_superpage(struct task *task, const struct area *area, uint64_t address, uint64_t rights)
{
    uint64_t start = address & -SUPERPAGE_SIZE;
    if (!area->superpages || start < area->start || start + SUPERPAGE_SIZE > area->end)
        return 0;
    for (uint64_t page = start; page < start + SUPERPAGE_SIZE; page += PAGE_SIZE)
        if (*table_entry(task, page, 1))
            return 0;
    uint64_t frame = frame_allocate_superpage();
    if (!frame)
        return 0;
    memset(cached(frame), 0, SUPERPAGE_SIZE);
    /* The walker knows one page size for each region of a short-format table: it must not load these. */
    uint64_t kind = PTE_SUPERPAGE | (parameters.format == FORMAT_SHORT ? PTE_SOFTWARE : PTE_PRESENT);
    for (uint64_t page = start; page < start + SUPERPAGE_SIZE; page += PAGE_SIZE, frame += PAGE_SIZE)
        *table_entry(task, page, 1) = frame | rights | kind;
    return 1;
}

static uint64_t rights_of(const struct area *area)
{
    uint64_t rights = PTE_ACCESSED | PTE_LEVEL_USER;
    if (area->writable)
        rights |= PTE_DIRTY | (area->executable ? PTE_READ_WRITE_EXECUTE : PTE_READ_WRITE);
    else
        rights |= area->executable ? PTE_READ_EXECUTE : PTE_READ;
    uint64_t key = area->kind == AREA_SHARED ? area->object : area->start >> REGION_SHIFT == REGION_TEXT ? KEY_TEXT : KEY_PRIVATE;
    return parameters.sharing == SHARING_KEY ? rights | key << PTE_KEY_SHIFT : rights;
}

/* A write to a page whose frame is shared since fork: a frame of its own, unless the others are gone by now. */
static int copy_on_write(uint64_t address, uint64_t *entry)
{
    uint64_t frame = *entry & PTE_FRAME, copy = frame;
    if (frame_is_shared(frame)) {
        if (!(copy = frame_allocate()))
            return SIGKILL;
        memcpy(cached(copy), cached(frame), PAGE_SIZE);
        frame_free(frame);
    }
    *entry = (*entry & ~(PTE_FRAME | PTE_COPY_ON_WRITE | PTE_RIGHTS)) | copy | PTE_DIRTY | PTE_READ_WRITE;
    forget(address, 0);
    sidecalls_update(address, *entry);
    return 0;
}

int page_fault(struct task *task, uint64_t address, int write, int execute)
{
    this_cpu->page_faults++;
    struct area *area = area_find(task, address);
    if (!area || (write && !area->writable) || (execute && !area->executable))
        return SIGSEGV;
    uint64_t page = address & -PAGE_SIZE, *entry = table_entry(task, address, 1);
    if (*entry & (PTE_PRESENT | PTE_SOFTWARE)) {
        if (write && *entry & PTE_COPY_ON_WRITE)
            return copy_on_write(address, entry);
        /* The TLB lost it, or a bit was not set yet. */
        *entry |= PTE_ACCESSED | (write ? PTE_DIRTY : 0);
        forget(address, *entry >> PTE_SUPERPAGE_BIT & 1);
        /* Under a common region identifier the TLB may hold the page of another process's linear table, where the entry
           is not present. */
        if (parameters.sharing != SHARING_OFF && parameters.format == FORMAT_SHORT)
            forget((uint64_t)hashed_entry(address), 0);
        return 0;
    }
    uint64_t rights = rights_of(area), shared = 0, frame;
    if (area->kind == AREA_ZERO && fill_superpage(task, area, address, rights)) {
        sidecalls_update(address, *entry);
        return 0;
    }
    if (area->kind == AREA_IMAGE) {
        frame = image_page(area, page, &shared);
    } else if (area->kind == AREA_SHARED) {
        shared = PTE_SHARED;
        frame = object_frame(area->object, (page - area->start) >> PAGE_SHIFT);
    } else if ((frame = frame_allocate())) {
        memset(cached(frame), 0, PAGE_SIZE);
    }
    if (!frame)
        return SIGKILL;
    *entry = frame | rights | shared | PTE_PRESENT;
    sidecalls_update(address, *entry);
    return 0;
}

/* The child gets the parent's pages; what either may write is copied when it does. Superpages are copied at once. */
static void copy_entry(struct task *child, uint64_t address, uint64_t *entry)
{
    uint64_t *copy = table_entry(child, address, 1);
    if (*entry & PTE_SUPERPAGE) {
        if (address & (SUPERPAGE_SIZE - 1))
            return;
        uint64_t frame = frame_allocate_superpage();
        if (!frame)
            panic("out of memory");
        memcpy(cached(frame), cached(*entry & PTE_FRAME), SUPERPAGE_SIZE);
        for (unsigned part = 0; part < SUPERPAGE_SIZE / PAGE_SIZE; part++)
            copy[part] = (entry[part] & ~PTE_FRAME) | (frame + part * PAGE_SIZE);
        return;
    }
    if (!(*entry & PTE_SHARED)) {
        frame_share(*entry & PTE_FRAME);
        if ((*entry & PTE_RIGHTS) == PTE_READ_WRITE) {
            *entry = (*entry & ~PTE_RIGHTS) | PTE_READ | PTE_COPY_ON_WRITE;
            forget(address, 0);
        }
    }
    *copy = *entry;
}

void address_space_copy(struct task *parent, struct task *child)
{
    memcpy(child->areas, parent->areas, sizeof parent->areas);
    child->mapped_end = parent->mapped_end;
    child->keys[0] = parent->keys[0];
    child->keys[1] = parent->keys[1];
    for (uint64_t index = 0; index < DIRECTORY_ENTRIES; index++) {
        if (!parent->directory[index])
            continue;
        uint64_t region = index >> DIRECTORY_ENTRIES_SHIFT;
        uint64_t base = REGION_BASE(region) | (index & ((1UL << DIRECTORY_ENTRIES_SHIFT) - 1)) << TABLE_REACH_SHIFT;
        uint64_t *table = cached(parent->directory[index]);
        for (uint64_t page = 0; page < TABLE_ENTRIES; page++)
            if (table[page])
                copy_entry(child, base + (page << PAGE_SHIFT), &table[page]);
    }
}

void address_space_free(struct task *task)
{
    for (uint64_t index = 0; index < DIRECTORY_ENTRIES; index++) {
        if (!task->directory[index])
            continue;
        uint64_t *table = cached(task->directory[index]);
        for (uint64_t page = 0; page < TABLE_ENTRIES; page++)
            drop_entry(&table[page]);
        kernel_pages_free(table, 0);
    }
    kernel_pages_free(task->directory, 0);
    task->directory = 0;
}

long address_space_open_gate(struct task *task, uint64_t start, size_t bytes)
{
    for (uint64_t page = start & -PAGE_SIZE; page < start + bytes; page += PAGE_SIZE) {
        uint64_t *entry = table_entry(task, page, 1);
        if (!(*entry & PTE_PRESENT) && page_fault(task, page, 0, 1))
            return -EFAULT;
        *entry = (*entry & ~(PTE_RIGHTS | PTE_LEVEL_USER)) | PTE_GATE;
        forget(page, 0);
    }
    return 0;
}

int user_range(uint64_t address, size_t bytes)
{
    return address + bytes >= address && address + bytes <= REGION_BASE(USER_REGIONS);
}

int copy_from_user(void *to, uint64_t from, size_t bytes)
{
    return user_range(from, bytes) && copy_user(to, (const void *)from, bytes) == 0 ? 0 : -EFAULT;
}

int copy_to_user(uint64_t to, const void *from, size_t bytes)
{
    return user_range(to, bytes) && copy_user((void *)to, from, bytes) == 0 ? 0 : -EFAULT;
}
