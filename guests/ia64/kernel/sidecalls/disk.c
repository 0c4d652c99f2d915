/* The block device of a virtual machine: a process waits while its transfer is under way, and others run. A transfer goes through
   pages of the kernel, and is a request in a slot of the CPU's page: a sidecore finds it there where `sidecalls=disk` says so,
   else the kernel hands it over by leaving for the monitor. Its end is an interrupt either way. */

#include "kernel.h"
#include "request.h"

#define SECTOR 512
/* Slots of a CPU's page that are the disk's, from the second on: as many as the device's queue holds. */
#define SLOTS 32
#define ALL_IN_USE ((2UL << SLOTS) - 1)
#define TRANSFER_MAX PAGE_SIZE

static struct lock lock;
static struct wait_queue transfers;
static uint64_t slots_in_use[PROCESSORS] = {[0 ... PROCESSORS - 1] = 1}; /* bit 0: not the disk's */

void disk_interrupt(void)
{
    uint64_t saved = acquire(&lock), outer = acquire(&scheduler);
    wake_all(&transfers);
    release(&scheduler, outer);
    release(&lock, saved);
}

/* With the lock held; comes back with it held. */
static void wait(uint64_t *saved)
{
    uint64_t was_on = acquire(&scheduler);
    sleep_on(&transfers, &lock, saved);
    release(&scheduler, was_on);
}

/* Makes a request and waits for its end; 0, or why it was refused. */
static uint64_t transfer(enum request_kind kind, const uint64_t *arguments)
{
    uint64_t saved = acquire(&lock), status;
    unsigned number, index;
    while (slots_in_use[number = this_cpu->number] == ALL_IN_USE)
        wait(&saved);
    index = __builtin_ctzl(~slots_in_use[number]);
    slots_in_use[number] |= 1UL << index;
    struct slot *slot = &request_pages[number].slot[index];
    request_write(slot, kind, arguments, VECTOR_DISK);
    /* By exit the monitor marks the slot as requested, when it has taken it. */
    if (sidecalls_are_made(SIDECALLS_DISK))
        request_make(slot);
    else if (hypercall(HYPERCALL_SUBMIT, index, 0, 0))
        panic("the monitor does not take slot %u", index);
    while ((status = __atomic_load_n(&slot->status, __ATOMIC_ACQUIRE)) == REQUESTED)
        wait(&saved);
    uint64_t refusal = status == DONE ? 0 : slot->result;
    slot->status = FREE;
    slots_in_use[number] &= ~(1UL << index);
    release(&lock, saved);
    /* Somebody may wait for a slot. */
    disk_interrupt();
    return refusal;
}

/* Moves sectors between the disk and a program's memory. */
__attribute__((syscall_linkage)) long call_disk(int writes, uint64_t sector, uint64_t address, uint64_t sectors)
{
    size_t bytes = sectors * SECTOR;
    if (!sectors || sectors > TRANSFER_MAX / SECTOR)
        return -EINVAL;
    if (request_page()->magic != REQUEST_MAGIC)
        return -ENODEV;
    char *buffer = kernel_pages(0);
    long answer = writes ? copy_from_user(buffer, address, bytes) : 0;
    if (!answer) {
        enum request_kind kind = writes ? WRITE : READ;
        const uint64_t arguments[] = {sector, physical(buffer), sectors};
        uint64_t refusal;
        /* The device's queue may be full, or the sidecore gone that the request was for. */
        while ((refusal = transfer(kind, arguments)) == FULL || refusal == NOT_SERVED)
            yield();
        answer = refusal ? -EIO : 0;
    }
    if (!answer && !writes)
        answer = copy_to_user(address, buffer, bytes);
    kernel_pages_free(buffer, 0);
    return answer;
}
