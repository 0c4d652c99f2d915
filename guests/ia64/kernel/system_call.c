/* The system calls by `break`; the table is in system_calls.S. An answer from -4095 to -1 is an error.

   Fork and the return from a signal need the whole of the caller's frame and are handled in interruption.c. */

#include "kernel.h"
#include "signal_frame.h"

#define SYSTEM_CALL __attribute__((syscall_linkage))

enum { MAP_SHARED = 1 };

SYSTEM_CALL long call_unknown(void)
{
    return -ENOSYS;
}

SYSTEM_CALL long call_exit(int code)
{
    process_end((code & 0xff) << 8);
}

SYSTEM_CALL long call_read(unsigned file, uint64_t to, size_t bytes)
{
    return user_range(to, bytes) ? file_read(file, to, bytes) : -EFAULT;
}

SYSTEM_CALL long call_write(unsigned file, uint64_t from, size_t bytes)
{
    return user_range(from, bytes) ? file_write(file, from, bytes) : -EFAULT;
}

SYSTEM_CALL long call_close(unsigned file)
{
    return file_close(file);
}

SYSTEM_CALL long call_getpid(void)
{
    return current->identity;
}

SYSTEM_CALL long call_getppid(void)
{
    for (struct task *parent = current->parent;;) {
        long identity = parent->identity;
        if (PROCESSORS == 1)
            return identity;
        /* It may have ended meanwhile, and another be the parent. */
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        struct task *now = *(struct task *volatile *)&current->parent;
        if (now == parent)
            return identity;
        parent = now;
    }
}

SYSTEM_CALL long call_kill(uint64_t identity, unsigned signal)
{
    struct signal_information information = {
        .signal = signal, .code = SIGNAL_BY_PROCESS, .sender = {.process = current->identity, .user = current->users.real},
    };
    return process_signal(identity, &information);
}

/* What the receiver gets to know is the program's, but must not look as if it came from the kernel or from kill. */
SYSTEM_CALL long call_rt_sigqueueinfo(uint64_t identity, unsigned signal, uint64_t from)
{
    struct signal_information information;
    if (copy_from_user(&information, from, sizeof information))
        return -EFAULT;
    information.signal = signal;
    return information.code < 0 ? process_signal(identity, &information) : -EPERM;
}

SYSTEM_CALL long call_getuid(void)
{
    return current->users.real;
}

SYSTEM_CALL long call_geteuid(void)
{
    return current->users.effective;
}

SYSTEM_CALL long call_setuid(uint32_t user)
{
    return process_become(user);
}

/* stack_t of Linux. */
SYSTEM_CALL long call_sigaltstack(uint64_t stack, uint64_t previous)
{
    struct {
        uint64_t start;
        uint32_t flags, padding;
        uint64_t size;
    } next, now = {current->signal_stack.start, signal_stack_state(user_frame(current)->r12), 0, current->signal_stack.size};
    if (stack && copy_from_user(&next, stack, sizeof next))
        return -EFAULT;
    long answer = 0;
    if (stack && now.flags == STACK_IN_USE)
        answer = -EPERM;
    else if (stack && next.flags == STACK_DISABLED)
        answer = signal_stack_set(0, 0);
    else if (stack)
        answer = next.flags ? -EINVAL : next.size < STACK_LEAST ? -ENOMEM : signal_stack_set(next.start, next.size);
    return answer < 0 || !previous ? answer : copy_to_user(previous, &now, sizeof now);
}

/* Two numbers of files at `ends`: Linux/ia64 answers them in r8 and r9, which C cannot. */
SYSTEM_CALL long call_pipe(uint64_t ends)
{
    uint64_t numbers[2];
    long error = pipe_create(numbers);
    int32_t both[2] = {numbers[0], numbers[1]};
    if (!error && copy_to_user(ends, both, sizeof both)) {
        file_close(numbers[0]);
        file_close(numbers[1]);
        return -EFAULT;
    }
    return error;
}

SYSTEM_CALL long call_gettimeofday(uint64_t to, uint64_t zone)
{
    if (to) {
        uint64_t now[2];
        time_now(&now[0], &now[1]);
        if (copy_to_user(to, now, sizeof now))
            return -EFAULT;
    }
    const uint32_t universal[2] = {0, 0}; /* minutes west of Greenwich, daylight saving */
    return zone && copy_to_user(zone, universal, sizeof universal) ? -EFAULT : 0;
}

SYSTEM_CALL long call_wait4(long which, uint64_t status, int options)
{
    return process_wait(which, status, options);
}

/* Anonymous private memory, wherever the kernel likes. */
SYSTEM_CALL long call_mmap(uint64_t address, size_t bytes, int protection, int flags)
{
    (void)address;
    (void)protection;
    if (flags & MAP_SHARED || !bytes || bytes > 1UL << 30)
        return -EINVAL;
    uint64_t unit = parameters.superpages ? SUPERPAGE_SIZE : PAGE_SIZE;
    uint64_t start = (current->mapped_end + unit - 1) & -unit, end = start + ((bytes + unit - 1) & -unit);
    struct area *area = area_add(current, AREA_ZERO, start, end, 1, 0);
    if (!area)
        return -ENOMEM;
    area->superpages = parameters.superpages;
    current->mapped_end = end;
    return start;
}

SYSTEM_CALL long call_munmap(uint64_t start, size_t bytes)
{
    area_remove(current, start, start + bytes);
    return 0;
}

SYSTEM_CALL long call_sched_yield(void)
{
    yield();
    return 0;
}

SYSTEM_CALL long call_rt_sigaction(unsigned signal, uint64_t action, uint64_t previous)
{
    if (signal == 0 || signal >= SIGNALS_MAX || signal == SIGKILL || signal == SIGSTOP)
        return -EINVAL;
    struct signal_action *place = &current->actions[signal];
    if (previous && copy_to_user(previous, place, sizeof *place))
        return -EFAULT;
    return action ? copy_from_user(place, action, sizeof *place) : 0;
}

SYSTEM_CALL long call_rt_sigprocmask(int how, uint64_t set, uint64_t previous)
{
    enum { BLOCK, UNBLOCK, SET };
    uint64_t mask = current->blocked_signals, change;
    if (previous && copy_to_user(previous, &mask, sizeof mask))
        return -EFAULT;
    if (!set)
        return 0;
    if (copy_from_user(&change, set, sizeof change))
        return -EFAULT;
    if (how == BLOCK)
        mask |= change;
    else if (how == UNBLOCK)
        mask &= ~change;
    else if (how == SET)
        mask = change;
    else
        return -EINVAL;
    signals_block(mask);
    return 0;
}

/* In place of a call of `function`, a code address, when the process is traced. */
SYSTEM_CALL long call_traced(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t number,
                             uint64_t function)
{
    typedef SYSTEM_CALL long call(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    uint64_t descriptor[2] = {function}; /* with the global pointer: what C takes for a function's address */
    __asm__ volatile("mov %0 = gp" : "=r"(descriptor[1]));
    __asm__ volatile("" ::"r"(descriptor) : "memory");
    long answer = ((call *)descriptor)(a0, a1, a2, a3, a4, a5);
    print("trace: process %lu: call %lu(%lx, %lx, %lx) = %lx\n", current->identity, number, a0, a1, a2, answer);
    return answer;
}

/* Whether each call of this process, and of those that it forks, is printed with its answer; what was chosen before. */
SYSTEM_CALL long call_trace(int is_traced)
{
    long before = (current->work & WORK_TRACE) != 0;
    if (is_traced)
        work_add(current, WORK_TRACE);
    else
        work_remove(current, WORK_TRACE);
    return before;
}

/* Tells the host that a phase of a measurement begins or ends. */
SYSTEM_CALL long call_mark(uint64_t label)
{
    return hypercall(HYPERCALL_MARK, label, 0, 0);
}

/* Maps shared object `object`, at the same address in every process, for reading or for writing too. Who may do what is
   said by the protection key registers where keys are in use, and by the page table entries elsewhere. */
SYSTEM_CALL long call_share(unsigned object, int writable)
{
    if (object < OBJECT_FIRST || object > OBJECT_LAST)
        return -EINVAL;
    uint64_t start = SHARED_BASE + ((uint64_t)object << 20);
    uint64_t end = start + OBJECT_PAGES * PAGE_SIZE;
    area_remove(current, start, end);
    struct area *area = area_add(current, AREA_SHARED, start, end, writable, 0);
    if (!area)
        return -ENOMEM;
    area->object = object;
    current->keys[0] |= 1u << object;
    current->keys[1] = (current->keys[1] & ~(1u << object)) | (writable ? 1u << object : 0);
    uint64_t saved = interrupts_off();
    address_space_use(current);
    interrupts_restore(saved);
    return start;
}

/* Makes executable pages of the program gate pages: `epc` on them raises the privilege level. It is the program's machine: what
   latencies are can only be measured by privileged code. */
SYSTEM_CALL long call_gate(uint64_t start, size_t bytes)
{
    return user_range(start, bytes) ? address_space_open_gate(current, start, bytes) : -EFAULT;
}

/* What this CPU counted, by number. */
SYSTEM_CALL long call_statistic(unsigned number)
{
    const struct per_cpu *here = this_cpu;
    const uint64_t values[] = {here->switches, here->page_faults, here->interrupts, here->disabled_floating,
                               frames_free(), here->ticks, here->number};
    return number < sizeof values / sizeof *values ? (long)values[number] : -EINVAL;
}
