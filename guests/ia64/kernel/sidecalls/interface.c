/* A driver for the interface of a self-virtualised network card: frames go through two rings that the card polls, so sending asks
   nobody for anything, and what has come is told by an interrupt, however the host delivers it. Set up by the first call. */

#include "kernel.h"
#include "request.h"
#include "text.h"

#define FRAME_SIZE_MAX 1514
#define FRAME_SIZE_LEAST 14
#define BUFFER 2048
#define FILLED 1

static struct interface_area area __attribute__((aligned(PAGE_SIZE)));
static char incoming[RING_ENTRIES_MAX][BUFFER], outgoing[RING_ENTRIES_MAX][BUFFER];
static struct lock lock;
static struct wait_queue receivers;
static uint64_t taken, sent;
static int is_open;

void interface_interrupt(void)
{
    uint64_t saved = acquire(&lock), outer = acquire(&scheduler);
    wake_all(&receivers);
    release(&scheduler, outer);
    release(&lock, saved);
}

/* Puts the buffer of frame `number` into the receive ring. */
static void post(uint64_t number)
{
    struct descriptor *descriptor = &area.descriptors[area.entries + number % area.entries];
    descriptor->address = physical(incoming[number % area.entries]);
    descriptor->length = BUFFER;
    descriptor->status = 0;
}

/* With the lock held; 0 or a negative error. */
static long open(void)
{
    if (is_open)
        return 0;
    if (hypercall(HYPERCALL_REGISTER_INTERFACE, physical(&area), VECTOR_INTERFACE, 0))
        return -ENODEV;
    if (area.magic != INTERFACE_MAGIC || area.version != 1 || area.entries > RING_ENTRIES_MAX)
        panic("the interface is not as documented");
    for (uint64_t number = 0; number < area.entries; number++)
        post(number);
    __atomic_store_n(&area.posted, area.entries, __ATOMIC_RELEASE);
    is_open = 1;
    return 0;
}

/* The address of this machine's interface, as its six bytes stand in a frame. */
__attribute__((syscall_linkage)) long call_frame_address(void)
{
    uint64_t saved = acquire(&lock);
    long error = open();
    release(&lock, saved);
    return error ? error : (long)area.address;
}

/* Sends a frame; waits while the card has not taken those before. */
__attribute__((syscall_linkage)) long call_frame_send(uint64_t address, size_t bytes)
{
    char frame[FRAME_SIZE_MAX];
    if (bytes < FRAME_SIZE_LEAST || bytes > FRAME_SIZE_MAX)
        return -EINVAL;
    if (copy_from_user(frame, address, bytes))
        return -EFAULT;
    uint64_t saved = acquire(&lock);
    long error = open();
    while (!error && sent - __atomic_load_n(&area.transmitted, __ATOMIC_ACQUIRE) >= area.entries) {
        release(&lock, saved);
        yield();
        saved = acquire(&lock);
    }
    if (!error) {
        struct descriptor *descriptor = &area.descriptors[sent % area.entries];
        memcpy(outgoing[sent % area.entries], frame, bytes);
        descriptor->address = physical(outgoing[sent % area.entries]);
        descriptor->length = bytes;
        descriptor->status = 0;
        __atomic_store_n(&area.sent, ++sent, __ATOMIC_RELEASE);
    }
    release(&lock, saved);
    return error;
}

/* The next frame that comes, or as much of it as there is room for; answers the frame's length. */
__attribute__((syscall_linkage)) long call_frame_receive(uint64_t address, size_t bytes)
{
    char frame[FRAME_SIZE_MAX];
    uint64_t saved = acquire(&lock);
    long answer = open();
    while (!answer && __atomic_load_n(&area.received, __ATOMIC_ACQUIRE) == taken) {
        __atomic_store_n(&area.wanted, taken, __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&area.received, __ATOMIC_ACQUIRE) != taken)
            break;
        if (current->pending_signals & ~current->blocked_signals) {
            answer = signal_interrupts_call();
            break;
        }
        uint64_t was_on = acquire(&scheduler);
        sleep_on(&receivers, &lock, &saved);
        release(&scheduler, was_on);
    }
    if (!answer) {
        const struct descriptor *descriptor = &area.descriptors[area.entries + taken % area.entries];
        answer = descriptor->status == FILLED && descriptor->length <= FRAME_SIZE_MAX ? (long)descriptor->length : -EIO;
        if (answer > 0)
            memcpy(frame, incoming[taken % area.entries], answer);
        post(taken++);
        __atomic_store_n(&area.posted, taken + area.entries, __ATOMIC_RELEASE);
    }
    release(&lock, saved);
    if (answer > 0 && copy_to_user(address, frame, (size_t)answer < bytes ? (size_t)answer : bytes))
        return -EFAULT;
    return answer;
}
