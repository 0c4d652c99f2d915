/* What ends, replaces, copies and bounds processes, and what they can see of themselves. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

extern int __clone2(int (*function)(void *), void *stack, size_t size, int flags, void *argument, ...);

static char *self;
static char buffer[65536];

/* The contents of a file, cut to the buffer. */
static const char *contents_of(const char *path) {
    int file = open(path, O_RDONLY), length = 0, got;
    while (file >= 0 && (got = read(file, buffer + length, sizeof buffer - 1 - length)) > 0)
        length += got;
    buffer[length] = 0;
    close(file);
    return buffer;
}

/* How an owner of a mutex comes to its end. */
enum end { BY_EXIT, BY_KILL, BY_FAULT, BY_EXECUTION, IN_THREAD, BY_THREADS_EXIT, BY_ABORT, ENDS };

struct shared {
    pthread_mutex_t mutex;
};

static struct shared *shared;

static void *exit_all(void *argument) {
    pthread_mutex_lock(&shared->mutex);
    if (argument)
        _exit(0);
    return 0;
}

static void *sleep_long(void *argument) {
    pause();
    return argument;
}

static void end_as_owner(enum end end) {
    pthread_t thread;
    if (end == IN_THREAD || end == BY_THREADS_EXIT) {
        pthread_t other;
        pthread_create(&other, 0, sleep_long, 0);
        pthread_create(&thread, 0, exit_all, end == BY_THREADS_EXIT ? &thread : 0);
        pthread_join(thread, 0);
        _exit(0);
    }
    pthread_mutex_lock(&shared->mutex);
    char *arguments[] = {self, "true", 0};
    switch (end) {
    case BY_KILL:
        raise(SIGKILL);
    case BY_FAULT:
        freopen("/dev/null", "w", stderr);
        *(volatile int *)8 = 0;
    case BY_EXECUTION:
        execv(self, arguments);
    case BY_ABORT:
        raise(SIGTERM);
    default:
        _exit(0);
    }
}

/* A robust mutex in memory that children share, which lends its owner the priority of those that wait or does not. */
static void share_robust_mutex(int protocol) {
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutex_init(&shared->mutex, &attributes);
}

static void robust_mutexes(int protocol) {
    for (int end = 0; end < ENDS; end++) {
        share_robust_mutex(protocol);
        pid_t child = fork();
        if (!child)
            end_as_owner(end);
        CHECK(waitpid(child, 0, 0) == child);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 20;
        int locked = pthread_mutex_trylock(&shared->mutex);
        if (locked == EBUSY)
            locked = pthread_mutex_timedlock(&shared->mutex, &until);
        if (locked != EOWNERDEAD)
            printf("end %d: %s\n", end, strerror(locked));
        CHECK(locked == EOWNERDEAD && !pthread_mutex_consistent(&shared->mutex));
        CHECK(!pthread_mutex_unlock(&shared->mutex) && !pthread_mutex_destroy(&shared->mutex));
        munmap(shared, sizeof *shared);
    }
}

/* An owner that is killed while others wait. */
static void robust_waiters(int protocol) {
    share_robust_mutex(protocol);
    int ready[2];
    CHECK(!pipe(ready));
    pid_t owner = fork();
    if (!owner) {
        pthread_mutex_lock(&shared->mutex);
        write(ready[1], "x", 1);
        pause();
    }
    CHECK(read(ready[0], buffer, 1) == 1);
    pid_t killer = fork();
    if (!killer) {
        usleep(200000);
        kill(owner, SIGKILL);
        _exit(0);
    }
    CHECK(pthread_mutex_lock(&shared->mutex) == EOWNERDEAD);
    waitpid(owner, 0, 0);
    waitpid(killer, 0, 0);
    munmap(shared, sizeof *shared);
}

static void limits(void) {
    struct rlimit limit, unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    pid_t child = fork();
    if (!child) {
        failures = 0;
        limit = (struct rlimit){256 << 20, 512 << 20};
        CHECK(!setrlimit(RLIMIT_AS, &limit) && !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur == 256 << 20);
        CHECK(mmap(0, 300 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
        void *small = mmap(0, 32 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(small != MAP_FAILED);
        CHECK(mremap(small, 32 << 20, 300 << 20, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
        CHECK(malloc(300 << 20) == 0);
        limit = (struct rlimit){512 << 20, 512 << 20};
        CHECK(!setrlimit(RLIMIT_AS, &limit) && malloc(200 << 20));
        char *arguments[] = {self, "limit", 0};
        if (!failures)
            execv(self, arguments);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    child = fork();
    if (!child) {
        failures = 0;
        limit = (struct rlimit){16 << 20, RLIM_INFINITY};
        CHECK(!setrlimit(RLIMIT_DATA, &limit));
        CHECK(sbrk(64 << 20) == (void *)-1 && errno == ENOMEM);
        CHECK(mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
        void *readable = mmap(0, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(readable != MAP_FAILED && mprotect(readable, 64 << 20, PROT_READ | PROT_WRITE) < 0 && errno == ENOMEM);
        _exit(failures != 0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    child = fork();
    if (!child) {
        // What the emulator opens for itself is not the program's affair.
        char *arguments[] = {self, "true", 0};
        int last = 0;
        while (last < 20)
            last = dup(0);
        close(last);
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = last + 1;
        _exit(setrlimit(RLIMIT_NOFILE, &limit) || execv(self, arguments));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    (void)unlimited;
}

static void execution_of_files(void) {
    int memory = syscall(SYS_memfd_create, "copy", MFD_CLOEXEC), program = open(self, O_RDONLY), got, status;
    while ((got = read(program, buffer, sizeof buffer)) > 0)
        CHECK(write(memory, buffer, got) == got);
    close(program);
    pid_t child = fork();
    if (!child) {
        char *arguments[] = {"copy", "true", 0}, *environment[] = {"A=b", 0};
        fexecve(memory, arguments, environment);
        _exit(99);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && !close(memory));
    child = fork();
    if (!child) {
        char *arguments[] = {"exe", "true", 0};
        execv("/proc/self/../self/exe", arguments);
        _exit(99);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* The kernel names a script by the descriptor that it was found by, for its interpreter to open. */
static void execution_of_scripts(void) {
    char line[5000], *arguments[] = {"x", "true", 0}, *environment[] = {0};
    int status, size = snprintf(line, sizeof line, "#!%s true\n", self);
    int script = syscall(SYS_memfd_create, "script", 0);
    CHECK(write(script, line, size) == size);
    for (int closes = 0; closes < 2; closes++) {
        pid_t child = fork();
        if (!child) {
            fcntl(script, F_SETFD, closes ? FD_CLOEXEC : 0);
            syscall(SYS_execveat, script, "", arguments, environment, AT_EMPTY_PATH);
            _exit(errno == ENOENT ? 98 : 99);
        }
        CHECK(waitpid(child, &status, 0) == child && status == (closes ? 98 << 8 : 0));
    }
    CHECK(ftruncate(script, 0) == 0 && pwrite(script, "#!/bin/true\n", 12, 0) == 12);
    pid_t child = fork();
    if (!child) {
        syscall(SYS_execveat, script, "", arguments, environment, AT_EMPTY_PATH);
        _exit(99);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && !close(script));
}

/* A file that cannot be executed leaves a process where it was, below a root of its own as well. */
static void execution_below_a_root(void) {
    char folder[] = "/tmp/sidestep-root-XXXXXX", file[64], *arguments[] = {"/plain", 0};
    int status, left = 3;
    CHECK(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/plain", folder);
    close(open(file, O_WRONLY | O_CREAT, 0755));
    truncate(file, 100);
    pid_t child = fork();
    if (!child) {
        if (chroot(folder))
            _exit(0);
        while (left && execv("/plain", arguments) && errno == ENOEXEC && !access("/plain", X_OK))
            left--;
        _exit(left);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(!unlink(file) && !rmdir(folder));
}

/* Programs that close all that is open do so by this list. */
static void list_of_descriptors(void) {
    DIR *list = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;
    while ((entry = readdir(list)))
        if (entry->d_name[0] != '.') {
            CHECK(fcntl(atoi(entry->d_name), F_GETFD) >= 0);
            count++;
        }
    CHECK(count >= 4 && !closedir(list));
}

/* The C library has every thread change its user by a signal of its own. */
static void *wait_for_end(void *end) {
    sem_wait(end);
    return 0;
}

static void users_of_threads(void) {
    sem_t end;
    pthread_t thread;
    CHECK(!sem_init(&end, 0, 0) && !pthread_create(&thread, 0, wait_for_end, &end));
    CHECK(!setuid(getuid()) && !setgid(getgid()) && !setegid(getegid()));
    CHECK(!sem_post(&end) && !pthread_join(thread, 0));
}

/* A program begins with what the one before it ignored; the host catches some of these for itself. */
static const int ignored[] = {SIGSEGV, SIGBUS, SIGFPE, SIGUSR1};
enum { IGNORED = sizeof ignored / sizeof *ignored };

static int are_ignored(void) {
    struct sigaction action;
    for (int i = 0; i < IGNORED; i++)
        if (sigaction(ignored[i], 0, &action) || action.sa_handler != SIG_IGN || raise(ignored[i]))
            return 0;
    return 1;
}

static void ignored_signals(void) {
    int status;
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < IGNORED; i++)
            signal(ignored[i], SIG_IGN);
        execl(self, self, "ignored", NULL);
        _exit(99);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static int counter;

static int in_clone(void *argument) {
    counter = 5;
    return close(*(int *)argument) || chdir("/");
}

static void sharing_with_a_child(void) {
    static char stack[1 << 20] __attribute__((aligned(16)));
    int file = dup(1), status;
    char before[4096];
    CHECK(getcwd(before, sizeof before) != 0);
    int flags = CLONE_FILES | CLONE_FS | SIGCHLD;
    int child = __clone2(in_clone, stack, sizeof stack, flags, &file);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(counter == 0 && write(file, "", 0) < 0 && errno == EBADF);
    CHECK(getcwd(buffer, sizeof buffer) && !strcmp(buffer, "/") && !chdir(before));
}

static void memory_of_others(void) {
    char here[32] = "before", there[32] = "changed";
    struct iovec local = {there, sizeof there}, remote = {here, sizeof here};
    pid_t child = fork();
    if (!child) {
        pause();
        _exit(0);
    }
    strcpy(here, "parent");
    CHECK(process_vm_readv(child, &local, 1, &remote, 1, 0) == sizeof here && !strcmp(there, "before"));
    strcpy(there, "written");
    CHECK(process_vm_writev(child, &local, 1, &remote, 1, 0) == sizeof here);
    memset(there, 0, sizeof there);
    CHECK(process_vm_readv(child, &local, 1, &remote, 1, 0) == sizeof here && !strcmp(there, "written"));
    remote.iov_base = (void *)8;
    CHECK(process_vm_readv(child, &local, 1, &remote, 1, 0) < 0 && errno == EFAULT);
    remote.iov_base = here;
    CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof here && !strcmp(there, "parent"));
    CHECK(process_vm_readv(1, &local, 1, &remote, 1, 0) < 0);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
}

struct waiter {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static uint32_t words[2];

static void *wake_second(void *argument) {
    usleep(50000);
    words[1] = 1;
    syscall(SYS_futex, &words[1], FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
    return argument;
}

static void waiting_for_several(void) {
    enum { FUTEX_32_PRIVATE = 2 | 128 };
    struct waiter waiters[2] = {{0, (uint64_t)&words[0], FUTEX_32_PRIVATE}, {0, (uint64_t)&words[1], FUTEX_32_PRIVATE}};
    struct timespec past = {0, 1};
    CHECK(syscall(1473, waiters, 2, 0, &past, CLOCK_MONOTONIC) < 0 && errno == ETIMEDOUT);
    pthread_t thread;
    pthread_create(&thread, 0, wake_second, 0);
    int woken = syscall(1473, waiters, 2, 0, 0, CLOCK_MONOTONIC);
    CHECK(woken == 1 || woken < 0 && errno == EAGAIN);
    pthread_join(thread, 0);
    CHECK(syscall(1473, waiters, 2, 0, 0, CLOCK_MONOTONIC) < 0 && errno == EAGAIN);
}

static void entries_of_proc(void) {
    char path[64];
    struct utsname name;
    CHECK(open("/proc/self/mem", O_RDWR) < 0 && errno == EACCES);
    CHECK(open("/proc/self/../self/mem", O_RDWR) < 0 && errno == EACCES);
    int folder = open("/proc/self", O_RDONLY | O_DIRECTORY);
    CHECK(openat(folder, "mem", O_RDWR) < 0 && errno == EACCES && openat(folder, "pagemap", O_RDONLY) < 0);
    snprintf(path, sizeof path, "/proc/self/task/%d/mem", getpid());
    CHECK(open(path, O_RDWR) < 0 && errno == EACCES);
    CHECK(!symlink("/proc/self/mem", "mem-link") && open("mem-link", O_RDWR) < 0 && errno == EACCES);
    CHECK(!unlink("mem-link"));
    struct stat own, found;
    CHECK(!stat(self, &own) && !stat("/proc/self/exe", &found) && own.st_ino == found.st_ino);
    CHECK(!fstatat(folder, "exe", &found, 0) && own.st_ino == found.st_ino);
    CHECK(!stat("/proc/self/../self/exe", &found) && own.st_ino == found.st_ino);
    int program = openat(folder, "exe", O_RDONLY);
    CHECK(program >= 0 && !fstat(program, &found) && own.st_ino == found.st_ino && !close(program));
    CHECK(!symlink("/proc/self/exe", "exe-link") && (program = open("exe-link", O_RDONLY)) >= 0);
    CHECK(!fstat(program, &found) && own.st_ino == found.st_ino && !close(program) && !unlink("exe-link"));
    CHECK(readlinkat(folder, "exe", buffer, sizeof buffer) > 0 && strstr(buffer, strrchr(self, '/')));
    CHECK(openat(folder, "maps", O_RDONLY) >= 0 && !close(folder));
    uname(&name);
    CHECK(strstr(contents_of("/proc/version"), name.release) && strstr(buffer, "Linux version "));
    CHECK(strstr(contents_of("/proc/sys/kernel/osrelease"), name.release));
    unsigned long size = 0;
    const char *line = strstr(contents_of("/proc/self/status"), "VmSize:");
    CHECK(line && sscanf(line, "VmSize: %lu", &size) == 1 && size < 1 << 20 && strstr(buffer, "Threads:\t"));
    CHECK(strstr(contents_of("/proc/self/smaps"), "KernelPageSize:") && strstr(buffer, "16 kB"));
    // No mapping is of the program that runs this one, whatever folder both are in.
    CHECK(strstr(buffer, "[stack]") && !strstr(buffer, "/sidestep\n"));
    unsigned long pages = 0;
    CHECK(sscanf(contents_of("/proc/self/statm"), "%lu", &pages) == 1 && pages * 16 == size);
    setenv("LATER", "x", 1);
    CHECK(!strstr(contents_of("/proc/self/environ"), "LATER"));
}

/* What is meant for a program's own loader is nothing to the emulator's, which would say that it finds no such file. */
static void variables_of_loaders(void) {
    int ends[2], status;
    char byte, *arguments[] = {self, "preloading", 0};
    CHECK(!pipe(ends));
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], 2);
        close(ends[1]);
        setenv("LD_PRELOAD", "none\xff.so", 1);
        setenv("GLIBC_TUNABLES", "a=b", 1);
        execv(self, arguments);
        _exit(1);
    }
    close(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 0);
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Standard descriptors that are closed stay so. */
static void closed_descriptors(void) {
    char *arguments[] = {self, "closed", 0};
    int status;
    pid_t child = fork();
    if (!child) {
        close(0);
        close(1);
        close(2);
        execv(self, arguments);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *exec_in_thread(void *argument) {
    char *arguments[] = {self, "true", 0};
    execv(self, arguments);
    return argument;
}

static void *exit_in_thread(void *argument) {
    exit(6);
    return argument;
}

static void *read_for_ever(void *argument) {
    int ends[2];
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    pipe(ends);
    read(ends[0], buffer, 1);
    return argument;
}

static void *spin(void *argument) {
    for (;;)
        (*(volatile int *)&counter)++;
    return argument;
}

static void ends_of_many_threads(void) {
    int status;
    pthread_t thread;
    pid_t child = fork();
    if (!child) {
        pthread_create(&thread, 0, read_for_ever, 0);
        pthread_create(&thread, 0, spin, 0);
        pthread_create(&thread, 0, exit_in_thread, 0);
        pause();
    }
    CHECK(waitpid(child, &status, 0) == child && status == 6 << 8);
    child = fork();
    if (!child) {
        pthread_create(&thread, 0, exec_in_thread, 0);
        pause();
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    child = fork();
    if (!child) {
        pthread_create(&thread, 0, read_for_ever, 0);
        pthread_create(&thread, 0, spin, 0);
        raise(SIGTERM);
    }
    CHECK(waitpid(child, &status, 0) == child && status == SIGTERM);
    child = fork();
    if (!child) {
        pthread_create(&thread, 0, exit_in_thread, 0);
        pthread_exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 6 << 8);
}

int main(int count, char **arguments) {
    self = realpath("/proc/self/exe", malloc(4096));
    if (count > 1 && !strcmp(arguments[1], "true"))
        return 0;
    if (count > 1 && !strcmp(arguments[1], "ignored"))
        return !are_ignored();
    if (count > 1 && !strcmp(arguments[1], "limit")) {
        struct rlimit limit;
        return getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur != 512 << 20 || malloc(600 << 20) != 0;
    }
    if (count > 1 && !strcmp(arguments[1], "closed"))
        return fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0 || fcntl(2, F_GETFD) >= 0;
    if (count > 1 && !strcmp(arguments[1], "preloading"))
        return strcmp(getenv("LD_PRELOAD"), "none\xff.so") || strcmp(getenv("GLIBC_TUNABLES"), "a=b");
    robust_mutexes(PTHREAD_PRIO_NONE);
    robust_waiters(PTHREAD_PRIO_NONE);
    robust_mutexes(PTHREAD_PRIO_INHERIT);
    robust_waiters(PTHREAD_PRIO_INHERIT);
    variables_of_loaders();
    closed_descriptors();
    limits();
    execution_of_files();
    execution_of_scripts();
    execution_below_a_root();
    list_of_descriptors();
    users_of_threads();
    ignored_signals();
    sharing_with_a_child();
    memory_of_others();
    waiting_for_several();
    entries_of_proc();
    ends_of_many_threads();
    return report();
}
