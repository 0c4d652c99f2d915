/* Processes: the first one from an image, the others by fork; their end, and waiting for it.

   A task is 32 kB: the structure, its kernel backing store, its kernel stack (layout.h). */

#include "kernel.h"
#include "image.h"
#include "text.h"

#define TASKS_MAX 256
#define TASK_ORDER 1
/* Options of wait4, and its status of a child that goes on. */
#define WAIT_NOT 1
#define WAIT_STOPPED 2
#define WAIT_CONTINUED 8
#define STATUS_CONTINUED 0xffff

/* The idle tasks have their place in the image, as they run before there is any memory to allocate. */
struct task_area {
    _Alignas(TASK_SIZE) char bytes[TASK_SIZE];
};
struct task_area idle_areas[PROCESSORS] __asm__("idle_tasks");

static struct lock lock;
static struct task *tasks[TASKS_MAX];
static struct task *first_process; /* the orphans' parent */
static uint64_t next_identity = 1;

struct task *process_find(uint64_t identity)
{
    for (int i = 0; i < TASKS_MAX; i++)
        if (tasks[i] && tasks[i]->identity == identity)
            return tasks[i];
    return 0;
}

static struct task *task_new(void)
{
    struct task *task = 0;
    uint64_t saved = acquire(&lock);
    for (int i = 0; i < TASKS_MAX && !task; i++)
        if (!tasks[i]) {
            task = tasks[i] = kernel_pages(TASK_ORDER);
            task->identity = next_identity++;
        }
    release(&lock, saved);
    return task;
}

static void task_free(struct task *task)
{
    uint64_t saved = acquire(&lock);
    for (int i = 0; i < TASKS_MAX; i++)
        if (tasks[i] == task)
            tasks[i] = 0;
    kernel_pages_free(task, TASK_ORDER);
    release(&lock, saved);
}

/* Lets the first switch to `task` leave the kernel through its frame, with `dirty` bytes of its program's registers on
   the kernel backing store. */
static void prepare_first_switch(struct task *task, uint64_t dirty, uint64_t collection)
{
    struct context *context = (struct context *)((char *)user_frame(task) - 16 - CONTEXT_SIZE);
    memset(context, 0, sizeof *context);
    context->sp = (uint64_t)user_frame(task) - 16;
    context->b[0] = (uint64_t)new_task;
    context->bspstore = (uint64_t)task + TASK_BACKING_STORE + dirty;
    context->rnat = collection;
    context->fpsr = 0x9804c0270033f;
    task->context = context;
}

/* Puts strings and the argument vector at the top of the stack, as `_start` of guests/ia64/runtime finds them, and
   answers the stack pointer. */
static uint64_t push_arguments(int count, char *const *arguments)
{
    uint64_t strings = STACK_TOP - 1024, vector = strings - (count + 4) * 8;
    vector &= -16UL;
    int failed = 0;
    uint64_t argument_count = count, zero = 0;
    failed |= copy_to_user(vector, &argument_count, 8);
    for (int i = 0; i < count; i++) {
        failed |= copy_to_user(vector + 8 + i * 8, &strings, 8);
        failed |= copy_to_user(strings, arguments[i], strlen(arguments[i]) + 1);
        strings += strlen(arguments[i]) + 1;
    }
    failed |= copy_to_user(vector + 8 + count * 8, &zero, 8);
    failed |= copy_to_user(vector + 16 + count * 8, &zero, 8);
    if (failed)
        panic("the first program's stack cannot be written");
    return vector - 16;
}

/* Makes an area for each segment of the image; answers the entry point. */
static uint64_t map_image(struct task *task, const struct program_image *image)
{
    const struct elf_header *header = (const void *)image->start;
    if (memcmp(header->identification, "\177ELF", 4) || header->machine != ELF_MACHINE_IA64)
        panic("program `%s` is no ia64 ELF image", image->name);
    const struct elf_segment *segment = (const void *)(image->start + header->segments);
    for (int i = 0; i < header->segment_count; i++, segment++) {
        if (segment->type != ELF_LOAD)
            continue;
        uint64_t start = segment->address & -PAGE_SIZE, skipped = segment->address - start;
        uint64_t end = (segment->address + segment->memory_size + PAGE_SIZE - 1) & -PAGE_SIZE;
        struct area *area = area_add(task, AREA_IMAGE, start, end, segment->flags & ELF_WRITABLE, segment->flags & ELF_EXECUTABLE);
        if (!area)
            panic("program `%s` has too many segments", image->name);
        area->image = image->start + segment->offset - skipped;
        area->image_bytes = segment->file_size + skipped;
    }
    return header->entry;
}

void process_start_first(void)
{
    const struct program_image *image = program_images;
    while (image->name && !text_equal(image->name, parameters.program))
        image++;
    if (!image->name) {
        print("kernel: no program is called `%s`; there are:", parameters.program);
        for (image = program_images; image->name; image++)
            print(" %s", image->name);
        print("\n");
        panic("parameter program");
    }
    struct task *task = first_process = task_new();
    task->parent = current;
    task->account = account_of(SUPERUSER);
    address_space_new(task);
    uint64_t entry = map_image(task, image);
    area_add(task, AREA_ZERO, STACK_TOP - STACK_SIZE, STACK_TOP, 1, 0);
    area_add(task, AREA_ZERO, BACKING_STORE_BASE, BACKING_STORE_BASE + BACKING_STORE_SIZE, 1, 0);
    task->files[0] = task->files[1] = task->files[2] = 1;

    /* The idle task borrows the address space to write the arguments. */
    current->directory = task->directory;
    memcpy(current->areas, task->areas, sizeof task->areas);
    address_space_use(task);
    uint64_t sp = push_arguments(parameters.argument_count, parameters.arguments);
    current->directory = 0;

    struct frame *frame = user_frame(task);
    frame->ipsr = PSR_IC | PSR_I | PSR_DT | PSR_RT | PSR_DFL | PSR_DFH | 1UL << PSR_IT_BIT | 1UL << PSR_BN_BIT | 3UL << PSR_CPL_SHIFT;
    if (parameters.sharing == SHARING_KEY)
        frame->ipsr |= PSR_PK;
    frame->iip = entry;
    frame->ifs = 1UL << 63;
    frame->rsc = 0xf; /* eager, level 3 */
    frame->bspstore = BACKING_STORE_BASE;
    frame->fpsr = 0x9804c0270033f;
    frame->r12 = sp;
    prepare_first_switch(task, 0, 0);
    uint64_t saved = acquire(&scheduler);
    make_ready(task);
    release(&scheduler, saved);
}

/* The whole of the caller's frame was saved and its registers are all on the kernel backing store up to `bsp`. */
long process_fork(struct frame *frame)
{
    struct task *child = task_new();
    if (!child)
        return -EAGAIN;
    uint64_t bsp, collection;
    __asm__ volatile("flushrs ;; mov ar.rsc = 0 ;; mov %0 = ar.bspstore ; mov %1 = ar.rnat ;; mov ar.rsc = 3"
                     : "=r"(bsp), "=r"(collection)::"memory");
    child->parent = current;
    child->users = current->users;
    child->account = account_of(child->users.real);
    child->blocked_signals = current->blocked_signals;
    child->signal_stack = current->signal_stack;
    work_add(child, current->work & WORK_TRACE);
    memcpy(child->actions, current->actions, sizeof child->actions);
    address_space_new(child);
    address_space_copy(current, child);
    files_copy(current, child);
    floating_point_copy(current, child);

    /* Where the program's registers end on the backing store, this kernel's own frames begin. */
    uint64_t begin = (uint64_t)current + TASK_BACKING_STORE, dirty = frame->loaded;
    if (begin + dirty > bsp)
        panic("fork: the program's registers reach beyond the backing store");
    memcpy((char *)child + TASK_BACKING_STORE, (void *)begin, (dirty + 511) & -512UL);
    /* The collection that is not full yet stands in memory if the RSE went past it, else in ar.rnat. */
    uint64_t collection_at = (begin + dirty) | 0x1f8;
    memcpy(user_frame(child), frame, sizeof *frame);
    user_frame(child)->r8 = 0;
    user_frame(child)->r10 = 0;
    user_frame(child)->ipsr |= PSR_DFL | PSR_DFH;
    prepare_first_switch(child, dirty, collection_at < bsp ? *(uint64_t *)collection_at : collection);
    child->processor = this_cpu->number;
    uint64_t identity = child->identity, saved = acquire(&scheduler);
    make_ready(child);
    release(&scheduler, saved);
    return identity;
}

void process_end(int status)
{
    files_close(current);
    signals_forget(current);
    floating_point_forget(current);
    if (current->identity == 1) {
        /* The first program's end is the machine's. */
        hypercall(HYPERCALL_EXIT, status >> 8 & 0xff ? status >> 8 & 0xff : status & 0x7f ? 128 + (status & 0x7f) : 0, 0, 0);
        panic("the machine goes on after its end");
    }
    address_space_free(current);
    acquire(&scheduler);
    for (int i = 0; i < TASKS_MAX; i++)
        if (tasks[i] && tasks[i]->parent == current)
            tasks[i]->parent = first_process;
    current->exit_status = status;
    current->state = TASK_ENDED;
    account_leave(current->account);
    signal_child_ended(current);
    schedule();
    panic("an ended process runs");
}

/* What wait4 has to tell of a child, or 0: its status, and whether it is gone. */
static int news(struct task *child, int options, uint32_t *status)
{
    *status = child->exit_status;
    if (child->state == TASK_ENDED)
        return 1;
    if (child->change == CHANGE_STOPPED && options & WAIT_STOPPED) {
        child->change = CHANGE_NONE;
        return 1;
    }
    if (child->change == CHANGE_CONTINUED && options & WAIT_CONTINUED) {
        child->change = CHANGE_NONE;
        *status = STATUS_CONTINUED;
        return 1;
    }
    return 0;
}

long process_wait(long which, uint64_t status_address, int options)
{
    for (;;) {
        int children = 0;
        uint64_t saved = acquire(&scheduler);
        for (int i = 0; i < TASKS_MAX; i++) {
            struct task *child = tasks[i];
            uint32_t status;
            if (!child || child->parent != current || (which != -1 && child->identity != (uint64_t)which))
                continue;
            children++;
            if (!news(child, options, &status))
                continue;
            long identity = child->identity;
            int is_gone = child->state == TASK_ENDED;
            release(&scheduler, saved);
            if (is_gone)
                task_free(child);
            if (status_address && copy_to_user(status_address, &status, sizeof status))
                return -EFAULT;
            return identity;
        }
        long answer = children ? 0 : -ECHILD;
        int must_wait = children && !(options & WAIT_NOT);
        if (must_wait && current->pending_signals & ~current->blocked_signals)
            answer = signal_interrupts_call();
        else if (must_wait)
            sleep_on(&current->children, 0, 0);
        release(&scheduler, saved);
        if (!must_wait || answer)
            return answer;
    }
}

/* Nobody ends and is forgotten while `lock` is held. */
long process_signal(uint64_t identity, const struct signal_information *information)
{
    uint64_t saved = acquire(&lock);
    struct task *task = process_find(identity);
    long answer = task && task->state != TASK_ENDED ? signal_send(task, information) : -ESRCH;
    release(&lock, saved);
    return answer;
}

long process_become(uint32_t user)
{
    struct identities *own = &current->users;
    if (own->effective == SUPERUSER) {
        struct account *account = account_of(user), *before = current->account;
        if (!account)
            return -EAGAIN;
        current->account = account;
        account_leave(before);
        *own = (struct identities){user, user, user};
        return 0;
    }
    if (user != own->real && user != own->saved)
        return -EPERM;
    own->effective = user;
    return 0;
}
