/* Memory in two parts: frames for the pages of processes, counted because fork shares them, and pages of the
   kernel's own granule, which nothing ever translates but one pinned translation.

   Frames come one at a time or as superpages of four; a free superpage is split when single frames run out, and never
   put together again. */

#include "kernel.h"
#include "text.h"

#define FRAMES_MAX (((uint64_t)4096 << 20) >> PAGE_SHIFT)
#define ORDERS 3

extern char image_end[];

/* A free page or superpage begins with a pointer to the next. */
struct free_page {
    struct free_page *next;
};

static struct lock lock;
static struct free_page *free_frames, *free_superpages, *free_kernel_pages[ORDERS];
static uint64_t untouched, memory_end, kernel_untouched;
static size_t free_count;
static uint16_t references[FRAMES_MAX];

static uint16_t *reference_count(uint64_t frame)
{
    return &references[(frame - FRAMES_PHYSICAL) >> PAGE_SHIFT];
}

static struct free_page *take(struct free_page **list)
{
    struct free_page *page = *list;
    if (page)
        *list = page->next;
    return page;
}

static void give(struct free_page **list, void *address)
{
    struct free_page *page = address;
    page->next = *list;
    *list = page;
}

void memory_start(void)
{
    untouched = FRAMES_PHYSICAL;
    memory_end = parameters.memory << 20;
    free_count = (memory_end - untouched) >> PAGE_SHIFT;
    kernel_untouched = ((uint64_t)image_end + TASK_SIZE - 1) & -(uint64_t)TASK_SIZE;
}

size_t frames_free(void)
{
    return free_count;
}

/* Four frames side by side, or null; the lock is held. */
static void *superpage(void)
{
    void *page = take(&free_superpages);
    if (!page && untouched + SUPERPAGE_SIZE <= memory_end) {
        page = cached(untouched);
        untouched += SUPERPAGE_SIZE;
    }
    return page;
}

uint64_t frame_allocate(void)
{
    uint64_t saved = acquire(&lock), frame = 0;
    void *page = take(&free_frames);
    if (!page && (page = superpage()))
        for (uint64_t offset = PAGE_SIZE; offset < SUPERPAGE_SIZE; offset += PAGE_SIZE)
            give(&free_frames, (char *)page + offset);
    if (page) {
        frame = physical(page);
        *reference_count(frame) = 1;
        free_count--;
    }
    release(&lock, saved);
    return frame;
}

uint64_t frame_allocate_superpage(void)
{
    uint64_t saved = acquire(&lock), frame = 0;
    void *page = superpage();
    if (page) {
        frame = physical(page);
        for (uint64_t part = frame; part < frame + SUPERPAGE_SIZE; part += PAGE_SIZE, free_count--)
            *reference_count(part) = 1;
    }
    release(&lock, saved);
    return frame;
}

void frame_share(uint64_t frame)
{
    uint64_t saved = acquire(&lock);
    ++*reference_count(frame);
    release(&lock, saved);
}

int frame_is_shared(uint64_t frame)
{
    return *reference_count(frame) > 1;
}

void frame_free(uint64_t frame)
{
    uint64_t saved = acquire(&lock);
    if (*reference_count(frame) == 0)
        panic("frame %lx is freed twice", frame);
    if (--*reference_count(frame) == 0) {
        give(&free_frames, cached(frame));
        free_count++;
    }
    release(&lock, saved);
}

void *kernel_pages(unsigned order)
{
    size_t bytes = PAGE_SIZE << order;
    uint64_t saved = acquire(&lock);
    void *pages = take(&free_kernel_pages[order]);
    if (!pages) {
        uint64_t start = (kernel_untouched + bytes - 1) & -(uint64_t)bytes;
        if (start + bytes > KERNEL_BASE + (1UL << KERNEL_SIZE_SHIFT))
            panic("the kernel's granule is full");
        for (; kernel_untouched < start; kernel_untouched += PAGE_SIZE)
            give(&free_kernel_pages[0], (void *)kernel_untouched);
        kernel_untouched = start + bytes;
        pages = (void *)start;
    }
    release(&lock, saved);
    return memset(pages, 0, bytes);
}

void kernel_pages_free(void *pages, unsigned order)
{
    uint64_t saved = acquire(&lock);
    give(&free_kernel_pages[order], pages);
    release(&lock, saved);
}
