/* Who runs: a queue for each CPU, taken in turn, and sleeping on queues of one's own.

   One lock, `scheduler`, guards all queues and states. It is held across the switch: the task that switches takes it, the
   task that then runs releases it. Tasks stay on their CPU; an idle CPU takes one only from a queue where two wait. */

#include "kernel.h"

struct lock scheduler;

void queue_add(struct wait_queue *queue, struct task *task)
{
    task->next = 0;
    if (queue->first)
        queue->last->next = task;
    else
        queue->first = task;
    queue->last = task;
}

struct task *queue_take(struct wait_queue *queue)
{
    struct task *task = queue->first;
    if (task)
        queue->first = task->next;
    return task;
}

void make_ready(struct task *task)
{
    struct per_cpu *at = cpu(task->processor);
    task->state = TASK_RUNNABLE;
    queue_add(&at->ready, task);
    at->ready_length++;
    if (at->number == this_cpu->number) {
        if (current == at->idle)
            work_add(current, WORK_RESCHEDULE);
    } else {
        interrupt_processor(at->number, VECTOR_RESCHEDULE);
    }
}

/* The next task of this CPU, or one of another CPU that has two to spare. */
static struct task *choose(void)
{
    for (unsigned distance = 0; distance < PROCESSORS; distance++) {
        struct per_cpu *at = cpu((this_cpu->number + distance) % PROCESSORS);
        if (at->ready_length > (distance ? 1 : 0)) {
            at->ready_length--;
            return queue_take(&at->ready);
        }
    }
    return this_cpu->idle;
}

void schedule(void)
{
    struct task *next = choose(), *task = current;
    work_remove(task, WORK_RESCHEDULE);
    if (next == task)
        return;
    this_cpu->switches++;
    this_cpu->previous = task;
    next->processor = this_cpu->number;
    floating_point_switch(task, next);
    address_space_use(next);
    switch_context(&task->context, next->context, next);
    /* Here another task has switched back to this one, perhaps on another CPU. */
}

/* What a task does behind its first switch in place of returning from `schedule`. */
void finish_switch(void)
{
    release(&scheduler, 0);
}

/* Waits on `queue`. `scheduler` is held; `lock`, if given, is released once nothing can be missed and is taken again. */
void sleep_on(struct wait_queue *queue, struct lock *lock, uint64_t *saved)
{
    current->state = TASK_SLEEPING;
    current->waiting_on = queue;
    queue_add(queue, current);
    if (lock)
        release(lock, 0);
    schedule();
    if (lock) {
        release(&scheduler, 0);
        *saved |= acquire(lock);
        acquire(&scheduler);
    }
}

void wake_all(struct wait_queue *queue)
{
    struct task *task;
    while ((task = queue_take(queue)))
        make_ready(task);
}

/* Wakes a task before its time, for a signal. */
void interrupt_sleep(struct task *task)
{
    struct wait_queue others = {0, 0}, *queue = task->waiting_on;
    for (struct task *waiting; (waiting = queue_take(queue));)
        if (waiting != task)
            queue_add(&others, waiting);
    *queue = others;
    make_ready(task);
}

void yield(void)
{
    uint64_t saved = acquire(&scheduler);
    if (current != this_cpu->idle)
        make_ready(current);
    schedule();
    release(&scheduler, saved);
}

void idle(void)
{
    for (;;) {
        reset_status(PSR_I);
        yield();
        /* Interrupts wake the CPU even though they are off; they are delivered in between. */
        if (!this_cpu->ready_length)
            hypercall(HYPERCALL_WAIT_FOR_INTERRUPT, 0, 0, 0);
        set_status(PSR_I);
    }
}
