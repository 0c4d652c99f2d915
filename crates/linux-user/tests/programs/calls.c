/* One use, at least, of each family of system calls, with results that only a right translation gives. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

static char buffer[300000];

static void files(int file) {
    struct stat status;
    CHECK(write(file, "hello world", 11) == 11);
    CHECK(!fstat(file, &status) && status.st_size == 11 && S_ISREG(status.st_mode) && status.st_nlink == 1);
    CHECK(!stat("f", &status) && status.st_uid == getuid() && status.st_blksize > 0);
    CHECK(lseek(file, 6, SEEK_SET) == 6 && read(file, buffer, 100) == 5 && !memcmp(buffer, "world", 5));
    struct iovec vector[2] = {{buffer, 3}, {buffer + 50, 10}};
    CHECK(preadv(file, vector, 2, 0) == 11 && !memcmp(buffer + 50, "lo world", 8));
    CHECK(pwritev(file, vector, 2, 20) == 13);
    struct statx extended;
    CHECK(!statx(AT_FDCWD, "f", 0, STATX_ALL, &extended) && extended.stx_size == 33);
    CHECK(!symlink("f", "l") && readlink("l", buffer, 100) == 1 && buffer[0] == 'f');
    CHECK(!lstat("l", &status) && S_ISLNK(status.st_mode));
    CHECK(!link("f", "g") && !stat("g", &status) && status.st_nlink == 2 && !rename("g", "h") && !unlink("h"));
    CHECK(!mkdir("d", 0700) && !access("d", R_OK) && !rmdir("d") && access("d", R_OK) < 0 && errno == ENOENT);
    struct flock lock = {F_WRLCK, SEEK_SET, 0, 10};
    CHECK(!ftruncate(file, 5000) && !fcntl(file, F_SETLK, &lock));
    DIR *folder = opendir(".");
    int entries = 0;
    while (readdir(folder))
        entries++;
    CHECK(entries == 4 && !closedir(folder));
    struct statfs system;
    CHECK(!statfs(".", &system) && system.f_bsize > 0);
    struct timespec times[2] = {{1000, 5}, {2000, 7}};
    CHECK(!utimensat(AT_FDCWD, "f", times, 0) && !stat("f", &status));
    CHECK(status.st_mtim.tv_sec == 2000 && status.st_mtim.tv_nsec == 7 && status.st_atim.tv_sec == 1000);
    CHECK(write(1, (void *)0xe000000000000000, 5) < 0 && errno == EFAULT);
    CHECK(open((char *)8, 0) < 0 && errno == EFAULT);
    CHECK(syscall(9999) == -1 && errno == ENOSYS);
    CHECK(!unlink("l"));
}

static void memory(int file) {
    long size = sysconf(_SC_PAGESIZE);
    CHECK(size == 16384);
    char *page = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(page != MAP_FAILED && !memcmp(page, "hello", 5));
    page[0] = 'J';
    CHECK(!msync(page, size, MS_SYNC) && pread(file, buffer, 1, 0) == 1 && buffer[0] == 'J' && !munmap(page, size));
    page = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(page[0] == 'J' && page[10000] == 0 && page[16000] == 0);
    page[16000] = 5;
    munmap(page, size);
    page = mmap(0, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[3 * size] = 7;
    CHECK(!munmap(page + size, size));
    page[0] = 1;
    char *moved = mremap(page + 2 * size, 2 * size, 10 * size, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && moved[size] == 7);
    char *second = mremap(moved, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    CHECK(second != MAP_FAILED && second != moved && moved[0] == 0);
    CHECK(mremap(moved, 0, size, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL && !munmap(second, size));
    char *shared = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    second = mremap(shared, 0, size, MREMAP_MAYMOVE);
    shared[1] = 9;
    CHECK(second != MAP_FAILED && second[1] == 9 && !munmap(second, size) && shared[1] == 9 && !munmap(shared, size));
    CHECK(mmap(0, size, PROT_READ, MAP_SHARED_VALIDATE | 0x800000, file, 0) == MAP_FAILED && errno == EOPNOTSUPP);
    CHECK(!mlockall(MCL_CURRENT) && !munlockall() && mlockall(MCL_ONFAULT) < 0 && errno == EINVAL);
    moved[9 * size] = 1;
    CHECK(!mprotect(moved, size, PROT_NONE) && write(file, moved, 10) < 0 && errno == EFAULT);
    unsigned char resident[10];
    CHECK(!mincore(moved, 10 * size, resident) && resident[9] == 1);
    CHECK(!madvise(moved + size, size, MADV_DONTNEED) && moved[size] == 0);
    CHECK(mmap((void *)123, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
    char on_stack[200000];
    int zero = open("/dev/zero", O_RDONLY);
    CHECK(read(zero, on_stack, sizeof on_stack) == sizeof on_stack && !close(zero));
    char *heap = sbrk(0);
    CHECK(sbrk(100000) == heap);
    memset(heap, 1, 100000);
    CHECK(sbrk(-100000) != (void *)-1);
}

/* Whether so many descriptors can be ready at once, where there may be as many. */
static int ready_at_once(int many) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < many + 100)
        return 1;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int epoll = epoll_create1(EPOLL_CLOEXEC), *descriptors = calloc(many, sizeof *descriptors);
    struct epoll_event *events = calloc(many + 1, sizeof *events);
    for (int i = 0; i < many; i++) {
        struct epoll_event event = {EPOLLIN, {.u64 = i}};
        descriptors[i] = eventfd(1, EFD_CLOEXEC);
        CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, descriptors[i], &event));
    }
    int ready = epoll_wait(epoll, events, many + 1, 1000);
    for (int i = 0; i < many; i++)
        close(descriptors[i]);
    close(epoll);
    free(events);
    free(descriptors);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
    return ready == many;
}

static void waiting(void) {
    int ends[2];
    CHECK(!pipe(ends));
    struct pollfd polled = {ends[0], POLLIN};
    CHECK(poll(&polled, 1, 0) == 0 && write(ends[1], "x", 1) == 1 && poll(&polled, 1, 1000) == 1);
    CHECK(polled.revents == POLLIN);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timespec second = {1, 0};
    sigset_t none;
    sigemptyset(&none);
    CHECK(pselect(ends[0] + 1, &set, 0, 0, &second, &none) == 1 && ppoll(&polled, 1, &second, &none) == 1);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {.u64 = 0x1122334455667788}}, events[4];
    CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    CHECK(epoll_wait(epoll, events, 4, 1000) == 1 && events[0].data.u64 == 0x1122334455667788);
    CHECK(ready_at_once(5000));
    int count;
    CHECK(!ioctl(ends[0], FIONREAD, &count) && count == 1);
    struct termios terminal;
    CHECK(tcgetattr(ends[0], &terminal) < 0 && errno == ENOTTY);
    uint64_t number;
    int counter = eventfd(3, 0);
    CHECK(read(counter, &number, 8) == 8 && number == 3);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec soon = {{0, 0}, {0, 1000000}};
    CHECK(!timerfd_settime(timer, 0, &soon, 0) && read(timer, &number, 8) == 8 && number == 1);
    int watch = inotify_init1(0);
    CHECK(inotify_add_watch(watch, ".", IN_CREATE) >= 0);
    close(open("new", O_CREAT | O_WRONLY, 0600));
    CHECK(read(watch, buffer, 4096) > 0 && !unlink("new"));
}

static void queued_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, 0);
    int descriptor = signalfd(-1, &set, 0);
    struct signalfd_siginfo read_out;
    raise(SIGUSR1);
    CHECK(read(descriptor, &read_out, sizeof read_out) == sizeof read_out && read_out.ssi_signo == SIGUSR1);
    siginfo_t information;
    CHECK(!sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 55}));
    CHECK(sigwaitinfo(&set, &information) == SIGUSR1 && information.si_value.sival_int == 55);
    CHECK(information.si_code == SI_QUEUE && information.si_pid == getpid());
}

static void sockets(int file) {
    int pair[2], any = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq interfaces[8];
    struct ifconf list = {.ifc_len = sizeof interfaces, .ifc_req = interfaces};
    CHECK(recvmsg(-1, 0, 0) < 0 && errno == EBADF && recvmmsg(-1, 0, 0, 0, 0) < 0 && errno == EBADF);
    CHECK(recvmsg(any, 0, 0) < 0 && errno == EFAULT);
    CHECK(!ioctl(any, SIOCGIFCONF, &list) && list.ifc_len % sizeof *interfaces == 0 && list.ifc_req == interfaces);
    CHECK(!close(any) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    CHECK(send(pair[0], "abc", 3, 0) == 3 && recv(pair[1], buffer, 10, 0) == 3);
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec vector = {"msg", 3};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
                               .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(header), &file, sizeof file);
    CHECK(sendmsg(pair[0], &message, 0) == 3);
    vector = (struct iovec){buffer, 10};
    CHECK(recvmsg(pair[1], &message, 0) == 3);
    header = CMSG_FIRSTHDR(&message);
    CHECK(header && header->cmsg_type == SCM_RIGHTS);
    int received;
    memcpy(&received, CMSG_DATA(header), sizeof received);
    struct stat status;
    CHECK(!fstat(received, &status) && status.st_size == 5000);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    CHECK(!bind(listener, (void *)&address, length) && !listen(listener, 5));
    CHECK(!getsockname(listener, (void *)&address, &length));
    int client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(!connect(client, (void *)&address, length));
    int server = accept(listener, (void *)&address, &length);
    CHECK(server >= 0 && lseek(file, 0, SEEK_SET) == 0 && sendfile(client, file, 0, 5) == 5);
    CHECK(read(server, buffer, 5) == 5 && !memcmp(buffer, "Jello", 5));
    int option;
    length = sizeof option;
    CHECK(!getsockopt(client, SOL_SOCKET, SO_TYPE, &option, &length) && option == SOCK_STREAM);
    struct mmsghdr messages[2] = {0};
    struct iovec two = {"yy", 2};
    messages[0].msg_hdr.msg_iov = messages[1].msg_hdr.msg_iov = &two;
    messages[0].msg_hdr.msg_iovlen = messages[1].msg_hdr.msg_iovlen = 1;
    CHECK(sendmmsg(client, messages, 2, 0) == 2 && messages[1].msg_len == 2);
}

static sem_t notified;

static void take_notice(union sigval value) {
    CHECK(value.sival_int == 43);
    sem_post(&notified);
}

/* For a message to begin a thread the C library has the kernel write to a socket. */
static void message_queues(void) {
    struct mq_attr attributes = {0, 3, 16};
    mqd_t queue = mq_open("/sidestep-calls", O_CREAT | O_RDWR, 0600, &attributes);
    if (queue == (mqd_t)-1)
        return; /* not on every host */
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value = {43}, .sigev_notify_function = take_notice};
    CHECK(!sem_init(&notified, 0, 0) && !mq_notify(queue, &event) && !mq_send(queue, "n", 1, 0));
    CHECK(!sem_wait(&notified) && !mq_close(queue) && !mq_unlink("/sidestep-calls"));
}

static void interprocess(void) {
    int set = semget(IPC_PRIVATE, 2, 0600);
    struct semid_ds semaphores;
    CHECK(set >= 0 && !semctl(set, 0, SETVAL, 3) && semctl(set, 0, GETVAL) == 3);
    CHECK(!semctl(set, 0, IPC_STAT, &semaphores) && semaphores.sem_nsems == 2 && semaphores.sem_ctime > 1000);
    struct sembuf down = {0, -1, 0};
    unsigned short values[2];
    CHECK(!semop(set, &down, 1) && !semctl(set, 0, GETALL, values) && values[0] == 2);
    CHECK(!semctl(set, 0, IPC_RMID));
    int segment = shmget(IPC_PRIVATE, 50000, 0600);
    char *shared = shmat(segment, 0, 0);
    CHECK(shared != (void *)-1);
    shared[49999] = 3;
    if (!fork()) {
        shared[0] = 42;
        _exit(0);
    }
    wait(0);
    struct shmid_ds status;
    CHECK(shared[0] == 42 && !shmctl(segment, IPC_STAT, &status) && status.shm_segsz == 50000);
    CHECK(!shmdt(shared) && !shmctl(segment, IPC_RMID, 0));
    int queue = msgget(IPC_PRIVATE, 0600);
    struct {
        long type;
        char text[10];
    } message = {5, "hey"};
    CHECK(!msgsnd(queue, &message, 10, 0) && msgrcv(queue, &message, 10, 5, 0) == 10);
    CHECK(!msgctl(queue, IPC_RMID, 0));
}

static volatile int ticks;

static void tick(int number, siginfo_t *information, void *context) {
    ticks++;
    CHECK(information->si_value.sival_int == 77);
}

static void times_and_limits(void) {
    struct timespec now, pause = {0, 2000000};
    CHECK(!clock_gettime(CLOCK_REALTIME, &now) && now.tv_sec > 1600000000 && !nanosleep(&pause, 0));
    struct tms spent;
    CHECK(sysconf(_SC_CLK_TCK) == 100 && times(&spent) != -1);
    struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK(!sigaction(SIGRTMIN + 1, &action, 0));
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1,
                             .sigev_value.sival_int = 77};
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    timer_t timer;
    CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &often, 0));
    while (ticks < 5)
        ;
    CHECK(!timer_delete(timer));
    struct utsname name;
    CHECK(!uname(&name) && !strcmp(name.machine, "ia64") && !strncmp(name.release, "6.1", 3));
    struct sysinfo system;
    CHECK(!sysinfo(&system) && system.totalram > 0);
    struct rlimit limit;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur > 0);
    /* Whatever it was started with: a higher niceness can always be asked for. */
    int niceness = getpriority(PRIO_PROCESS, 0);
    int higher = niceness < 19 ? niceness + 1 : niceness;
    CHECK(!setpriority(PRIO_PROCESS, 0, higher) && getpriority(PRIO_PROCESS, 0) == higher);
    cpu_set_t processors;
    CHECK(!sched_getaffinity(0, sizeof processors, &processors) && CPU_COUNT(&processors) > 0);
    CHECK(!prctl(PR_SET_NAME, "calls") && !prctl(PR_GET_NAME, buffer) && !strcmp(buffer, "calls"));
    CHECK(!getentropy(buffer, 16));
}

static ucontext_t main_context, other_context;
static int steps;

static void routine(void) {
    steps = 1;
    swapcontext(&other_context, &main_context);
    steps = 2;
}

static pthread_key_t key;
static long destroyed;

static void destroy(void *value) { destroyed = (long)value; }

static void *wait_for(void *semaphore) {
    sem_wait(semaphore);
    return (void *)5;
}

static void *wait_for_cancellation(void *argument) {
    pthread_setspecific(key, (void *)9);
    pause();
    return 0;
}

static void threads(void) {
    CHECK(!getcontext(&other_context));
    other_context.uc_stack.ss_sp = malloc(1000000);
    other_context.uc_stack.ss_size = 1000000;
    other_context.uc_link = &main_context;
    makecontext(&other_context, routine, 0);
    CHECK(!swapcontext(&main_context, &other_context) && steps == 1);
    CHECK(!swapcontext(&main_context, &other_context) && steps == 2);
    sem_t semaphore;
    pthread_t thread;
    void *result;
    CHECK(!sem_init(&semaphore, 0, 0) && !pthread_create(&thread, 0, wait_for, &semaphore));
    CHECK(!sem_post(&semaphore) && !pthread_join(thread, &result) && result == (void *)5);
    CHECK(!pthread_key_create(&key, destroy) && !pthread_create(&thread, 0, wait_for_cancellation, 0));
    usleep(2000);
    CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result));
    CHECK(result == PTHREAD_CANCELED && destroyed == 9);
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    CHECK(!pthread_mutexattr_init(&attributes));
    CHECK(!pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT));
    CHECK(!pthread_mutex_init(&mutex, &attributes) && !pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex));
    pthread_attr_t thread_attributes;
    void *stack;
    size_t size;
    CHECK(!pthread_getattr_np(pthread_self(), &thread_attributes));
    CHECK(!pthread_attr_getstack(&thread_attributes, &stack, &size));
    CHECK(stack < (void *)&size && (char *)stack + size > (char *)&size);
}

static void processes(void) {
    pid_t child;
    int status;
    char *arguments[] = {"x", "child", "argument", 0}, *environment[] = {"NAME=value", 0};
    CHECK(!posix_spawn(&child, "/proc/self/exe", 0, 0, arguments, environment));
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
    CHECK(posix_spawn(&child, "/nonexistent", 0, 0, arguments, environment) == ENOENT);
    child = vfork();
    if (!child) {
        execve("/proc/self/exe", arguments, environment);
        _exit(1);
    }
    siginfo_t information;
    CHECK(!waitid(P_PID, child, &information, WEXITED) && information.si_status == 9);
    child = fork();
    if (!child) {
        raise(SIGSTOP);
        _exit(4);
    }
    CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    kill(child, SIGCONT);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
    FILE *script = fopen("script", "w");
    fprintf(script, "#!/proc/self/exe child\n");
    CHECK(!fclose(script) && !chmod("script", 0755));
    CHECK(!posix_spawn(&child, "./script", 0, 0, arguments, environment));
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9 && !unlink("script"));
    FILE *host = popen("echo from the host", "r");
    CHECK(fgets(buffer, 100, host) && !strcmp(buffer, "from the host\n") && pclose(host) == 0);
    CHECK(readlink("/proc/self/exe", buffer, 100) > 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps && fgets(buffer, 1000, maps) && !fclose(maps));
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "child"))
        return getenv("NAME") && !strcmp(getenv("NAME"), "value") ? 9 : 8;
    char folder[] = "/tmp/sidestep-calls-XXXXXX";
    CHECK(mkdtemp(folder) && !chdir(folder));
    int file = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(file >= 0);
    files(file);
    memory(file);
    waiting();
    queued_signals();
    sockets(file);
    interprocess();
    message_queues();
    times_and_limits();
    threads();
    processes();
    CHECK(!unlink("f") && !chdir("/") && !rmdir(folder));
    return report();
}
