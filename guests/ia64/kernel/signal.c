/* Signals: who may send which, what becomes of a pending one, and what a process does that has no handler for it.

   What is known of a pending signal (`siginfo_t`) waits in a queue, whose entries count against the user that it is for. One that stops
   takes the one that continues out of the queue, and the other way round. How a handler is called is in signal_frame.c. */

#include "core.h"

#define QUEUED_MAX 1024 /* of one user */
/* Of the status that wait4 answers: there is a core file; it is stopped by the signal in bits 8 to 15. */
#define STATUS_CORE 0x80
#define STATUS_STOPPED 0x7f

#define STOPPING (SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU))
#define DUMPING \
    (SIGNAL_BIT(SIGQUIT) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGABRT) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGFPE) \
     | SIGNAL_BIT(SIGSEGV))
#define NOTHING_BY_DEFAULT (SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGCHLD))

struct queued_signal {
    struct queued_signal *next;
    struct account *account;
    struct signal_information information;
};

static struct cache queued_signals = {.size = sizeof(struct queued_signal)};

static int is_in(uint64_t set, unsigned signal)
{
    return set >> (signal - 1) & 1;
}

static int ignores(const struct task *task, unsigned signal)
{
    uint64_t handler = task->actions[signal].handler;
    return handler == SIGNAL_IGNORE || (handler == SIGNAL_DEFAULT && is_in(NOTHING_BY_DEFAULT, signal));
}

/* ---- The queue; `scheduler` is held ---- */

void signals_recalculate(struct task *task)
{
    if (task->pending_signals & ~task->blocked_signals)
        work_add(task, WORK_SIGNAL);
    else
        work_remove(task, WORK_SIGNAL);
}

/* Makes a signal pending, with what is known of it. One that is pending already comes once, but for real-time signals. */
static long enqueue(struct task *task, const struct signal_information *information)
{
    unsigned signal = information->signal;
    if (signal < SIGNAL_REAL_TIME && is_in(task->pending_signals, signal))
        return 0;
    int is_known = account_take(task->account, QUEUED_MAX);
    if (!is_known && signal >= SIGNAL_REAL_TIME && information->code < 0)
        return -EAGAIN;
    task->pending_signals |= SIGNAL_BIT(signal);
    if (!is_known)
        return 0; /* it comes without */
    struct queued_signal *queued = cache_allocate(&queued_signals), **last = &task->queued_signals;
    queued->next = 0;
    queued->account = task->account;
    queued->information = *information;
    while (*last)
        last = &(*last)->next;
    *last = queued;
    return 0;
}

static void free_queued(struct queued_signal **place)
{
    struct queued_signal *queued = *place;
    *place = queued->next;
    account_give(queued->account);
    cache_free(&queued_signals, queued);
}

/* Takes the lowest pending signal that is not blocked; its number, or 0. It stays pending if it is queued once more. */
static unsigned dequeue(struct task *task, struct signal_information *information)
{
    uint64_t waiting = task->pending_signals & ~task->blocked_signals;
    if (!waiting)
        return 0;
    unsigned signal = __builtin_ctzl(waiting) + 1;
    task->pending_signals &= ~SIGNAL_BIT(signal);
    *information = (struct signal_information){.signal = signal};
    struct queued_signal **first = 0;
    for (struct queued_signal **place = &task->queued_signals; *place; place = &(*place)->next) {
        if ((*place)->information.signal != (int)signal)
            continue;
        if (first) {
            task->pending_signals |= SIGNAL_BIT(signal);
            break;
        }
        first = place;
    }
    if (first) {
        *information = (*first)->information;
        free_queued(first);
    }
    return signal;
}

/* Forgets the pending ones of a set. */
static void discard(struct task *task, uint64_t set)
{
    if (!(task->pending_signals & set))
        return;
    task->pending_signals &= ~set;
    for (struct queued_signal **place = &task->queued_signals; *place;) {
        if (is_in(set, (*place)->information.signal))
            free_queued(place);
        else
            place = &(*place)->next;
    }
    signals_recalculate(task);
}

void signals_forget(struct task *task)
{
    uint64_t saved = acquire(&scheduler);
    discard(task, -1UL);
    release(&scheduler, saved);
}

/* ---- Sending ---- */

/* A process may send to its own user's; the superuser to all. All may be told to go on, as they are of one session. */
static int may_send(const struct task *to, unsigned signal)
{
    const struct identities *own = &current->users, *its = &to->users;
    return own->effective == its->saved || own->effective == its->real || own->real == its->saved || own->real == its->real
           || own->effective == SUPERUSER || signal == SIGCONT;
}

/* Tells the parent of a change in what wait4 answers; `scheduler` is held. */
static void tell_parent(struct task *task, enum signal_code code, int status)
{
    struct task *parent = task->parent;
    struct signal_information information = {
        .signal = SIGCHLD, .code = code, .sender = {.process = task->identity, .user = task->users.real, .status = status},
    };
    if (code == CHILD_EXITED || code == CHILD_KILLED || code == CHILD_DUMPED || !(parent->actions[SIGCHLD].flags & ACTION_NO_CHILD_STOP))
        signal_send_held(parent, &information);
    wake_all(&parent->children);
}

void signal_child_ended(struct task *task)
{
    int status = task->exit_status;
    if (status & STATUS_STOPPED)
        tell_parent(task, status & STATUS_CORE ? CHILD_DUMPED : CHILD_KILLED, status & STATUS_STOPPED);
    else
        tell_parent(task, CHILD_EXITED, status >> 8 & 0xff);
}

static void go_on(struct task *task)
{
    if (task->state != TASK_STOPPED)
        return;
    task->change = CHANGE_CONTINUED;
    tell_parent(task, CHILD_CONTINUED, SIGCONT);
    make_ready(task);
}

long signal_send_held(struct task *task, const struct signal_information *information)
{
    unsigned signal = information->signal;
    if (is_in(STOPPING, signal)) {
        discard(task, SIGNAL_BIT(SIGCONT));
    } else if (signal == SIGCONT) {
        discard(task, STOPPING);
        go_on(task);
    } else if (signal == SIGKILL && task->state == TASK_STOPPED) {
        make_ready(task);
    }
    /* One that is ignored is forgotten, but what is blocked may be wanted later. */
    long answer = 0;
    if (!ignores(task, signal) || is_in(task->blocked_signals, signal))
        answer = enqueue(task, information);
    if (is_in(task->pending_signals & ~task->blocked_signals, signal)) {
        work_add(task, WORK_SIGNAL);
        if (task->state == TASK_SLEEPING)
            interrupt_sleep(task);
        else if (task != current && task->processor != this_cpu->number)
            interrupt_processor(task->processor, VECTOR_RESCHEDULE);
    }
    return answer;
}

long signal_send(struct task *task, const struct signal_information *information)
{
    unsigned signal = information->signal;
    if (signal >= SIGNALS_MAX)
        return -EINVAL;
    if (!may_send(task, signal))
        return -EPERM;
    if (signal == 0)
        return 0;
    uint64_t saved = acquire(&scheduler);
    long answer = signal_send_held(task, information);
    release(&scheduler, saved);
    return answer;
}

void signal_force(struct task *task, const struct signal_information *information)
{
    unsigned signal = information->signal;
    uint64_t saved = acquire(&scheduler);
    if (is_in(task->blocked_signals, signal) || ignores(task, signal))
        task->actions[signal].handler = SIGNAL_DEFAULT;
    task->blocked_signals &= ~SIGNAL_BIT(signal);
    enqueue(task, information);
    work_add(task, WORK_SIGNAL);
    release(&scheduler, saved);
}

void signals_block(uint64_t set)
{
    uint64_t saved = acquire(&scheduler);
    current->blocked_signals = set & ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    signals_recalculate(current);
    release(&scheduler, saved);
}

/* ---- What becomes of a pending one ---- */

void process_abort(const struct preserved *preserved, const struct signal_information *information)
{
    unsigned signal = information->signal;
    const struct frame *frame = user_frame(current);
    if (current->identity == 1)
        print("kernel: signal %u ends the first process at %lx, address %lx\n", signal, frame->iip, frame->ifa);
    int is_dumped = is_in(DUMPING, signal) && core_dump(current, information, preserved);
    process_end(is_dumped ? signal | STATUS_CORE : signal);
}

/* Stops here until SIGCONT or SIGKILL comes; `scheduler` is held. */
static void stop(unsigned signal)
{
    current->state = TASK_STOPPED;
    current->change = CHANGE_STOPPED;
    current->exit_status = signal << 8 | STATUS_STOPPED;
    tell_parent(current, CHILD_STOPPED, signal);
    schedule();
}

/* Takes signals until there is one with a handler; what that is to do goes to `action`. */
static unsigned take(struct signal_information *information, struct signal_action *action, const struct preserved *preserved)
{
    uint64_t saved = acquire(&scheduler);
    unsigned signal;
    while ((signal = dequeue(current, information))) {
        struct signal_action *its = &current->actions[signal];
        if (ignores(current, signal))
            continue;
        if (its->handler != SIGNAL_DEFAULT) {
            *action = *its;
            if (its->flags & ACTION_ONCE)
                its->handler = SIGNAL_DEFAULT;
            break;
        }
        if (is_in(STOPPING, signal)) {
            stop(signal);
            continue;
        }
        release(&scheduler, saved);
        process_abort(preserved, information);
    }
    signals_recalculate(current);
    release(&scheduler, saved);
    return signal;
}

long signal_interrupts_call(void)
{
    work_add(current, WORK_RESTART);
    return -ERESTART;
}

/* A system call that waited and was interrupted starts over: its `break` is executed once more. */
static void restart(struct frame *frame)
{
    uint64_t slot = frame->ipsr >> PSR_RI_SHIFT & 3;
    frame->iip -= slot == 0 ? 16 : 0;
    slot = slot == 0 ? 2 : slot - 1;
    frame->ipsr = (frame->ipsr & ~(3UL << PSR_RI_SHIFT)) | slot << PSR_RI_SHIFT;
}

void signals_deliver(struct frame *frame, struct preserved *preserved)
{
    struct signal_information information;
    struct signal_action action;
    unsigned signal = take(&information, &action, preserved);
    if (frame->in_system_call == SYSTEM_CALL_INTERRUPTED) {
        work_remove(current, WORK_RESTART);
        frame->in_system_call = SYSTEM_CALL;
        if (!signal || action.flags & ACTION_RESTART)
            restart(frame);
    }
    while (signal && !signal_call_handler(frame, preserved, &information, &action))
        signal = take(&information, &action, preserved); /* of the stack that could not be used */
}
