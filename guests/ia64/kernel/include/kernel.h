/* What the files of the kernel tell each other. See README.md for the map. */

#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "layout.h"
#include "machine.h"

#define FILES_MAX 256
#define SIGNALS_MAX 65
#define SIGNAL_REAL_TIME 32 /* from here on each one that is sent is queued */
#define AREAS_MAX 10
/* Shared objects, by number: the same numbers are their protection keys. */
#define OBJECT_FIRST 2
#define OBJECT_LAST 5
#define OBJECT_PAGES 8

/* ---- parameters.c: what the machine's parameters chose at boot ---- */

enum format { FORMAT_SHORT, FORMAT_LONG };
enum sharing { SHARING_OFF, SHARING_REGION, SHARING_KEY };
enum signal_state { SIGNAL_MINIMAL, SIGNAL_FULL };

struct parameters {
    enum format format;
    int walker;
    int superpages;
    enum sharing sharing;
    enum signal_state signal_state;
    uint64_t hashed_table_shift;
    uint64_t memory;
    uint64_t tick;
    unsigned clock; /* CLOCK_COUNTER or CLOCK_TICKS */
    const char *program;
    char *arguments[16];
    int argument_count;
};

extern struct parameters parameters;
extern int hashed_table_in_use; /* for translation.S */

void read_parameters(void);

/* ---- console.c ---- */

void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void panic(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void console_write(const char *text, size_t bytes);

/* ---- lock.c: spin locks, which a uniprocessor kernel reduces to turning interrupts off ---- */

struct lock {
    volatile uint32_t held;
};

uint64_t acquire(struct lock *lock);
void release(struct lock *lock, uint64_t saved);

/* ---- memory.c: frames for processes, and pages of the kernel's own granule ---- */

void memory_start(void);
uint64_t frame_allocate(void);          /* one page, physical; 0 when memory is out */
uint64_t frame_allocate_superpage(void);
void frame_share(uint64_t frame);
int frame_is_shared(uint64_t frame);
void frame_free(uint64_t frame);
void *kernel_pages(unsigned order);     /* 2^order zeroed pages; panics when there are none */
void kernel_pages_free(void *pages, unsigned order);
size_t frames_free(void);

/* ---- cache.c: objects of one size ---- */

struct cache {
    struct lock lock;
    size_t size;
    struct free_object *free;
};

void *cache_allocate(struct cache *cache);
void cache_free(struct cache *cache, void *object);

/* ---- frames and tasks ---- */

struct floating {
    uint64_t words[2];
};

/* What an interruption saves; the offsets are in layout.h. */
struct frame {
    uint64_t ipsr, iip, ifs, unat, pfs, rsc, rnat, bspstore, pr, b0, b6, b7, ccv, fpsr, spill_unat, csd;
    uint64_t r1, r2, r3, r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t r16[16];
    uint64_t vector;
    struct floating f6[6];
    uint64_t isr, ifa, iim, iipa;
    uint64_t loaded;         /* bytes of the program's registers on the kernel backing store */
    uint64_t in_system_call; /* SYSTEM_CALL...: which a program expects to destroy what a call destroys */
};

/* An interrupted call has waited for something, and a signal came first. */
enum { SYSTEM_CALL = 1, SYSTEM_CALL_INTERRUPTED = 2 };

/* What a call preserves and only signal-state=full saves. */
struct preserved {
    uint64_t spill_unat, lc, r4[4], b1[5];
    uint64_t end;           /* of the program's registers on the kernel backing store */
    struct floating f2[24]; /* f2 to f5, then f12 to f31 */
};

struct context {
    uint64_t sp, unat, spill_unat, rnat, bspstore, pfs, lc, pr, fpsr, b[5], r4[4], b5, reserved;
};

enum task_state { TASK_FREE, TASK_RUNNABLE, TASK_SLEEPING, TASK_STOPPED, TASK_ENDED };
/* What has become of a process that wait4 has not told yet. */
enum task_change { CHANGE_NONE, CHANGE_STOPPED, CHANGE_CONTINUED };
enum area_kind { AREA_FREE, AREA_ZERO, AREA_IMAGE, AREA_SHARED };

/* A stretch of a process's addresses that is filled on demand. */
struct area {
    enum area_kind kind;
    int writable, executable, superpages;
    uint64_t start, end;
    const uint8_t *image;   /* AREA_IMAGE: the bytes of `start` to `start + image_bytes`; zeros follow */
    uint64_t image_bytes;
    unsigned object;        /* AREA_SHARED */
};

struct signal_action {
    uint64_t handler;
    uint64_t flags, mask;
};

/* siginfo_t of Linux/ia64. */
struct signal_information {
    int32_t signal, error, code, padding;
    union {
        struct {
            int32_t process;
            uint32_t user;
            int32_t status; /* of a child */
        } sender;
        struct {
            uint64_t address;
            int32_t immediate;
            uint32_t flags;
            uint64_t isr;
        } fault;
        uint64_t words[14];
    };
};

/* The users that a process acts for. */
struct identities {
    uint32_t real, effective, saved;
};

struct wait_queue {
    struct task *first, *last;
};

struct task {
    uint32_t on_user_stack;
    volatile uint32_t work;
    uint64_t identity;
    struct task *parent;   /* the idle task is the first process's; changes with `scheduler` held */
    struct context *context;
    uint64_t blocked_signals;
    uint64_t pending_signals;
    struct queued_signal *queued_signals; /* what is known of the pending ones, in the order of their sending */
    struct account *account;              /* of the real user: the queue counts against it */
    struct floating floating_low[24], floating_high[96];

    enum task_state state;
    enum task_change change;
    int exit_status;                /* of one that ended or is stopped, as wait4 answers it */
    struct identities users;
    struct {
        uint64_t start, size;       /* size 0: there is none */
    } signal_stack;                 /* that the program keeps for its handlers */
    int floating_low_valid, floating_high_valid;
    unsigned processor;
    struct task *next;              /* in a run queue or wait queue */
    struct wait_queue *waiting_on;
    struct wait_queue children;     /* where it waits for one of them to end */
    uint64_t *directory;
    uint64_t region_identifiers;    /* the first of eight */
    uint64_t text_region_identifier, mapped_region_identifier;
    unsigned keys[2];               /* protection keys of shared objects: readable, writable (bit masks) */
    uint64_t mapped_end;
    struct area areas[AREAS_MAX];
    struct signal_action actions[SIGNALS_MAX];
    uint16_t files[FILES_MAX];
};

extern int save_preserved_state; /* for entry.S */

/* The task that runs: a register of its own. */
register struct task *current __asm__("r13");

/* Bits of a task's work word come and go on any CPU, and in interrupts. */
static inline void work_add(struct task *task, uint32_t bits)
{
    if (PROCESSORS > 1)
        __atomic_fetch_or(&task->work, bits, __ATOMIC_RELAXED);
    else
        task->work |= bits;
}

static inline void work_remove(struct task *task, uint32_t bits)
{
    if (PROCESSORS > 1)
        __atomic_fetch_and(&task->work, ~bits, __ATOMIC_RELAXED);
    else
        task->work &= ~bits;
}

static inline struct frame *user_frame(struct task *task)
{
    return (struct frame *)((char *)task + TASK_FRAME);
}

/* A CPU's own page, at PER_CPU_ADDRESS on each. */
struct per_cpu {
    unsigned number;
    uint64_t local_identifier; /* cr.lid: id and eid */
    struct task *idle;
    struct task *previous;          /* from `switch_to` to `finish_switch` */
    struct wait_queue ready;
    unsigned ready_length;
    struct task *floating_low_owner, *floating_high_owner;
    uint64_t next_tick;
    uint64_t ticks, switches, page_faults, interrupts, disabled_floating;
};

#define this_cpu ((struct per_cpu *)PER_CPU_ADDRESS)
struct per_cpu *cpu(unsigned number);

/* ---- entry.S, switch.S, gate.S ---- */

extern char new_task[], gate_signal[], gate_by_break[], gate_page[], copy_user_end[], copy_user_fault[];
size_t copy_user(void *to, const void *from, size_t bytes);
void save_context(struct context *context);
void switch_context(struct context **save, struct context *next, struct task *task);
void save_floating_low(void *area);
void load_floating_low(const void *area);
void save_floating_high(void *area);
void load_floating_high(const void *area);

/* ---- address_space.c ---- */

void translation_start(void);
void address_space_new(struct task *task);
void address_space_copy(struct task *parent, struct task *child);
void address_space_free(struct task *task);
void address_space_use(struct task *task);
struct area *area_add(struct task *task, enum area_kind kind, uint64_t start, uint64_t end, int writable, int executable);
void area_remove(struct task *task, uint64_t start, uint64_t end);
/* Makes `address` usable; 0, or the signal that it deserves. */
int page_fault(struct task *task, uint64_t address, int write, int execute);
/* Lets code in these pages raise its privilege level; 0 or a negative error. */
long address_space_open_gate(struct task *task, uint64_t start, size_t bytes);
int area_is_there(struct task *task, uint64_t address);
/* The frame of a page that the task has touched; 0 of any other. */
uint64_t page_frame(struct task *task, uint64_t address);
int user_range(uint64_t address, size_t bytes);
int copy_from_user(void *to, uint64_t from, size_t bytes);
int copy_to_user(uint64_t to, const void *from, size_t bytes);

/* ---- process.c ---- */

extern struct task idle_tasks[];
void process_start_first(void);
long process_fork(struct frame *frame);
void process_end(int status) __attribute__((noreturn));
/* wait4: any child (-1) or this one. */
long process_wait(long which, uint64_t status, int options);
/* kill and rt_sigqueueinfo, with what a receiver gets to know. */
long process_signal(uint64_t identity, const struct signal_information *information);
long process_become(uint32_t user); /* setuid */
struct task *process_find(uint64_t identity);

/* ---- schedule.c ---- */

extern struct lock scheduler;
void schedule(void);                                    /* with `scheduler` held and this task queued somewhere */
void sleep_on(struct wait_queue *queue, struct lock *lock, uint64_t *saved);
void wake_all(struct wait_queue *queue);
void interrupt_sleep(struct task *task);                /* with `scheduler` held */
void make_ready(struct task *task);                     /* with `scheduler` held */
void yield(void);
void finish_switch(void);
void idle(void) __attribute__((noreturn));
void queue_add(struct wait_queue *queue, struct task *task);
struct task *queue_take(struct wait_queue *queue);

/* ---- floating_point.c ---- */

void floating_point_switch(struct task *from, struct task *to);
void floating_point_wanted(struct task *task, struct frame *frame);
void floating_high_flush(struct task *task);
void floating_high_drop(struct task *task);
void floating_point_copy(struct task *parent, struct task *child);
void floating_point_forget(struct task *task);

/* ---- pipe.c ---- */

long pipe_create(uint64_t *ends);
long file_read(unsigned file, uint64_t to, size_t bytes);
long file_write(unsigned file, uint64_t from, size_t bytes);
long file_close(unsigned file);
void files_copy(struct task *parent, struct task *child);
void files_close(struct task *task);

/* ---- user.c: who a process belongs to, and what each user has in use ---- */

#define SUPERUSER 0

/* The user's account, held once more; 0 when there are too many. */
struct account *account_of(uint32_t user);
void account_leave(struct account *account);
/* Something more in use, if it is less than `most` now. */
int account_take(struct account *account, uint64_t most);
void account_give(struct account *account);

/* ---- signal.c, signal_frame.c ---- */

/* Signal n is bit n - 1 of a set, as in Linux. */
#define SIGNAL_BIT(signal) (1UL << ((signal) - 1))
/* Codes: who sent it, or what was wrong, or what became of a child. */
enum signal_code {
    SIGNAL_BY_QUEUE = -1, SIGNAL_BY_PROCESS = 0, SIGNAL_BY_KERNEL = 0x80,
    SIGNAL_OF_A_FAULT = 1, ILL_BREAK = 1, SEGV_NO_MEMORY = 1, SEGV_ACCESS = 2,
    CHILD_EXITED = 1, CHILD_KILLED, CHILD_DUMPED, CHILD_TRAPPED, CHILD_STOPPED, CHILD_CONTINUED,
};
#define SIGNAL_HAS_ISR 2 /* of `flags` */
/* Handlers that are none, and flags of actions. */
#define SIGNAL_DEFAULT 0
#define SIGNAL_IGNORE 1
#define ACTION_NO_CHILD_STOP 1UL
#define ACTION_OWN_STACK 0x08000000UL
#define ACTION_RESTART 0x10000000UL
#define ACTION_NO_DEFER 0x40000000UL
#define ACTION_ONCE 0x80000000UL

/* Sends it, if the current process may; a negative error. */
long signal_send(struct task *task, const struct signal_information *information);
/* From whoever may, with `scheduler` held; -EAGAIN if there is no room for what is to be queued. */
long signal_send_held(struct task *task, const struct signal_information *information);
void signal_child_ended(struct task *task);  /* with `scheduler` held */
/* One that the program cannot put off: its own fault. */
void signal_force(struct task *task, const struct signal_information *information);
/* Ends the current process by a signal, with a core file if that says so; `preserved` is a copy of these registers, if there is one. */
void process_abort(const struct preserved *preserved, const struct signal_information *information) __attribute__((noreturn));
void signals_recalculate(struct task *task); /* whether there is one to deliver; with `scheduler` held, or nobody else to look */
void signals_block(uint64_t set);            /* just these, of the current task */
void signals_forget(struct task *task);
uint64_t frame_nats(const struct frame *frame); /* of r1 to r31, by number */
/* What a call answers that waits no longer, as a signal has come: it starts over or fails, even if that is taken back meanwhile. */
long signal_interrupts_call(void);
void signals_deliver(struct frame *frame, struct preserved *preserved);
/* Lets the program call its handler next; 0 if its stack could not be used, which is a signal then. */
int signal_call_handler(struct frame *frame, struct preserved *preserved, const struct signal_information *information,
                        const struct signal_action *action);
void signal_return(struct frame *frame, struct preserved *preserved);
/* The stack for handlers: its state for a program whose stack pointer this is, as Linux's flags; and another, or a negative error. */
unsigned signal_stack_state(uint64_t sp);
long signal_stack_set(uint64_t start, uint64_t size);

/* ---- interruption.c: what every interruption but a TLB refill comes to ---- */

void interruption(struct frame *frame);

/* ---- interrupt.c ---- */

void timer_start(void);
void external_interrupts(void);
void interrupt_processor(unsigned number, unsigned vector);

/* ---- time.c ---- */

struct time_data {
    volatile uint32_t sequence;
    uint32_t source;     /* CLOCK_COUNTER or CLOCK_TICKS */
    uint64_t last;       /* the counter at the last tick */
    uint64_t multiplier; /* nanoseconds a cycle, shifted by TIME_SHIFT */
    uint64_t seconds, nanoseconds;
    uint64_t latest;     /* the latest value of the counter that was used */
};

extern struct time_data time_data; /* for gate.S */

void time_start(void);
void time_tick(uint64_t ticks);
void time_now(uint64_t *seconds, uint64_t *microseconds);

enum signal_number { SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8,
                     SIGKILL = 9, SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12, SIGTERM = 15, SIGCHLD = 17,
                     SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22 };
enum error { EPERM = 1, ESRCH = 3, EINTR = 4, EIO = 5, EBADF = 9, ECHILD = 10, EAGAIN = 11,
             ENOMEM = 12, EFAULT = 14, ENODEV = 19, EINVAL = 22, EMFILE = 24, EPIPE = 32, ENOSYS = 38, ENODATA = 61,
             ERESTART = 512 /* inside the kernel: a call that waited is interrupted, and may start over */ };

#endif
