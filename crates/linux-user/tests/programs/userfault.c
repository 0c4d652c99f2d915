/* Memory whose pages the program brings itself: missing pages, write protection, signals and changes meanwhile. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { PAGES = 16 };

static int watch;
static long page;
static char *memory, *source;
static volatile int missing, protected, signals;
static volatile uint64_t last;

static void on_signal(int number) { signals += number == SIGUSR1; }

/* Brings what is missing, slowly and with changes of other memory in between. */
static void *bring(void *nothing) {
    for (;;) {
        struct uffd_msg message;
        struct pollfd ready = {.fd = watch, .events = POLLIN};
        if (poll(&ready, 1, -1) != 1 || read(watch, &message, sizeof message) != sizeof message)
            return "no message";
        if (message.event != UFFD_EVENT_PAGEFAULT)
            return "not a page fault";
        last = message.arg.pagefault.address;
        if (last % page)
            return "within a page";
        void *other = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(other, page);
        if (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP) {
            protected++;
            struct uffdio_writeprotect allow = {.range = {.start = last, .len = page}};
            if (ioctl(watch, UFFDIO_WRITEPROTECT, &allow) < 0)
                return "not allowed";
            continue;
        }
        missing++;
        memset(source, 'a' + (last - (uint64_t)memory) / page, page);
        struct uffdio_copy copy = {.dst = last, .src = (uint64_t)source, .len = page};
        if (ioctl(watch, UFFDIO_COPY, &copy) < 0 && errno != EEXIST)
            return "not copied";
        if (copy.dst != last || copy.src != (uint64_t)source)
            return "addresses changed";
    }
    return nothing;
}

static void *read_page(void *number) { return (void *)(intptr_t)memory[(intptr_t)number * page + 5000]; }

static void *interrupt(void *thread) {
    struct timespec a_while = {.tv_nsec = 50000000};
    nanosleep(&a_while, NULL);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    while (!signals)
        nanosleep(&a_while, NULL);
    struct uffdio_zeropage zero = {.range = {.start = (uint64_t)memory + 15 * page, .len = page}};
    return ioctl(watch, UFFDIO_ZEROPAGE, &zero) == 0 ? NULL : "no zeroes";
}

int main(void) {
    page = sysconf(_SC_PAGESIZE);
    watch = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (watch < 0) {
        printf("the host offers no userfaultfd: %s\n", strerror(errno));
        return 77;
    }
    struct uffdio_api wrong = {.api = UFFD_API, .features = UFFD_FEATURE_EVENT_FORK};
    CHECK(ioctl(watch, UFFDIO_API, &wrong) < 0 && errno == EINVAL);
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    CHECK(ioctl(watch, UFFDIO_API, &api) == 0 && api.api == UFFD_API);
    CHECK(!(api.features & UFFD_FEATURE_EVENT_FORK));
    source = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {
        .range = {.start = (uint64_t)memory, .len = PAGES * page - 1},
        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
    };
    CHECK(ioctl(watch, UFFDIO_REGISTER, &range) < 0 && errno == EINVAL);
    range.range.len = PAGES * page;
    CHECK(ioctl(watch, UFFDIO_REGISTER, &range) == 0 && range.range.start == (uint64_t)memory);
    CHECK(range.ioctls & 1 << _UFFDIO_COPY);

    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t self = pthread_self(), other, bringer;
    void *result;
    CHECK(pthread_create(&other, NULL, interrupt, &self) == 0);
    CHECK(memory[15 * page] == 0 && signals == 1);
    CHECK(pthread_join(other, &result) == 0 && result == NULL);

    CHECK(pthread_create(&bringer, NULL, bring, NULL) == 0);
    /* By a load in the middle of a page, a store, and a system call. */
    CHECK(memory[page + 9000] == 'b' && missing >= 1 && last == (uint64_t)memory + page);
    memory[2 * page + 16383] = '!';
    CHECK(memory[2 * page] == 'c' && memory[2 * page + 16383] == '!');
    int pipes[2];
    CHECK(pipe(pipes) == 0 && write(pipes[1], memory + 3 * page + 100, 1) == 1);
    char byte = 0;
    CHECK(read(pipes[0], &byte, 1) == 1 && byte == 'd');
    struct timespec *now = (struct timespec *)(memory + 4 * page);
    CHECK(clock_gettime(CLOCK_MONOTONIC, now) == 0 && memory[4 * page + 16] == 'e');
    /* Several at once. */
    pthread_t readers[4];
    for (intptr_t at = 0; at < 4; at++)
        CHECK(pthread_create(&readers[at], NULL, read_page, (void *)(5 + at / 2)) == 0);
    for (intptr_t at = 0; at < 4; at++)
        CHECK(pthread_join(readers[at], &result) == 0 && (intptr_t)result == 'f' + at / 2);
    /* What is dropped is missing again. */
    int before = missing;
    CHECK(madvise(memory + page, page, MADV_DONTNEED) == 0 && memory[page] == 'b' && missing > before);
    /* Loads pass write protection, stores do not. */
    struct uffdio_writeprotect protect = {
        .range = {.start = (uint64_t)memory + 2 * page, .len = page},
        .mode = UFFDIO_WRITEPROTECT_MODE_WP,
    };
    CHECK(ioctl(watch, UFFDIO_WRITEPROTECT, &protect) == 0);
    CHECK(memory[2 * page + 16383] == '!' && protected == 0);
    memory[2 * page + 16383] = '?';
    CHECK(memory[2 * page + 16383] == '?' && protected >= 1);
    /* Memory that is watched no more is filled by the kernel. */
    struct uffdio_range rest = {.start = (uint64_t)memory + 10 * page, .len = page};
    before = missing;
    CHECK(ioctl(watch, UFFDIO_UNREGISTER, &rest) == 0 && memory[10 * page] == 0 && missing == before);
    pid_t child = fork();
    if (child == 0)
        _exit(memory[12 * page] == 0 && memory[page] == 'b' ? 0 : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return report();
}
