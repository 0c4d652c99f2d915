/* Offers memory as docs/src/reference/formats.md says: a userfaultfd in minor mode over a memfd, and requests. One
   watcher at a time; the program's end ends the offer. */

#define _GNU_SOURCE
#include "offer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAGE = 4096, PATIENCE_MS = 2000, TEXT_BYTES = 1 << 14 };

static const size_t ARENA_BYTES = (size_t)4 << 30;

struct region {
    char *from, *to;
};

static char *arena, *used;
static struct region regions[INSTANCES_MAX];
static int region_count;

/* In place of the runtime's: pages of one memfd, which takes memory for those that are touched. */
void *allocate(size_t bytes)
{
    if (!arena) {
        int file = memfd_create("npb", 0);
        arena = MAP_FAILED;
        if (file >= 0 && ftruncate(file, ARENA_BYTES) == 0)
            arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (arena == MAP_FAILED) {
            perror("offered-npb: no shared memory");
            exit(2);
        }
        used = arena;
    }
    size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    if (pages > ARENA_BYTES - (size_t)(used - arena)) {
        fprintf(stderr, "offered-npb: out of memory\n");
        exit(2);
    }
    used += pages;
    return used - pages;
}

/* A descriptor that has the regions fault in minor mode, or -1. */
static int register_regions(void)
{
    int descriptor = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api interface = {
        .api = UFFD_API,
        .features = UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_MINOR_SHMEM,
    };
    if (descriptor < 0 || ioctl(descriptor, UFFDIO_API, &interface) < 0)
        return -1;
    for (int i = 0; i < region_count; i++) {
        struct uffdio_register request = {
            .range = {(uintptr_t)regions[i].from, regions[i].to - regions[i].from},
            .mode = UFFDIO_REGISTER_MODE_MINOR,
        };
        if (ioctl(descriptor, UFFDIO_REGISTER, &request) < 0)
            return -1;
    }
    return descriptor;
}

static void unregister_regions(int descriptor)
{
    for (int i = 0; i < region_count; i++) {
        struct uffdio_range range = {(uintptr_t)regions[i].from, regions[i].to - regions[i].from};
        ioctl(descriptor, UFFDIO_UNREGISTER, &range);
    }
    close(descriptor);
}

static int send_hello(int watcher, int descriptor)
{
    char text[TEXT_BYTES];
    int length = snprintf(text, sizeof text, "{\"sidestep_guest_memory\":1,\"regions\":[");
    for (int i = 0; i < region_count; i++)
        length += snprintf(text + length, sizeof text - length, "%s{\"address\":%lu,\"size\":%lu,\"page_size\":%d}",
                           i ? "," : "", (unsigned long)regions[i].from,
                           (unsigned long)(regions[i].to - regions[i].from), PAGE);
    length += snprintf(text + length, sizeof text - length, "]}\n");
    char control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec line = {text, length};
    struct msghdr message = {
        .msg_iov = &line, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    return sendmsg(watcher, &message, MSG_NOSIGNAL) == length;
}

/* Does what a line asks for; 0 if it asks for what is not offered. */
static int serve_line(const char *line)
{
    unsigned long address, size;
    if (strstr(line, "\"alive\""))
        return 1;
    const char *numbers = strstr(line, "\"address\":");
    if (!numbers || sscanf(numbers, "\"address\":%lu,\"size\":%lu", &address, &size) != 2)
        return 0;
    for (int i = 0; i < region_count; i++) {
        uintptr_t from = (uintptr_t)regions[i].from, to = (uintptr_t)regions[i].to;
        if (address >= from && address <= to && size <= to - address && !(address % PAGE) && !(size % PAGE))
            return madvise((void *)address, size, MADV_DONTNEED) == 0;
    }
    return 0;
}

/* Until the watcher ends, asks for what it may not have, or says nothing for too long. */
static void serve_watcher(int watcher)
{
    char text[TEXT_BYTES];
    size_t length = 0;
    for (;;) {
        struct pollfd waits = {.fd = watcher, .events = POLLIN};
        if (poll(&waits, 1, PATIENCE_MS) <= 0)
            return;
        ssize_t bytes = read(watcher, text + length, sizeof text - 1 - length);
        if (bytes <= 0)
            return;
        length += bytes;
        text[length] = 0;
        char *line = text, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            if (!serve_line(line))
                return;
        }
        length -= line - text;
        memmove(text, line, length);
        if (length == sizeof text - 1)
            return;
    }
}

static void *serve(void *listener)
{
    for (;;) {
        int watcher = accept((int)(intptr_t)listener, NULL, NULL);
        if (watcher < 0)
            continue;
        struct ucred peer;
        socklen_t size = sizeof peer;
        int is_ours = getsockopt(watcher, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                      (peer.uid == 0 || peer.uid == geteuid());
        int descriptor = is_ours ? register_regions() : -1;
        if (descriptor < 0)
            fprintf(stderr, "offered-npb: a watcher is left alone\n");
        else if (send_hello(watcher, descriptor))
            serve_watcher(watcher);
        if (descriptor >= 0)
            unregister_regions(descriptor);
        close(watcher);
    }
    return NULL;
}

int offer_begin(const char *name, const struct instances *instances)
{
    const char *path = getenv("NPB_OFFER");
    if (!path)
        return 1;
    for (int i = 0; i < instances->count; i++) {
        /* Between a team and the next lies the state of its benchmark. */
        size_t team = (sizeof(struct team) + PAGE - 1) / PAGE * PAGE;
        char *next = i + 1 < instances->count ? (char *)instances->all[i + 1].team : used;
        regions[region_count++] = (struct region){(char *)instances->all[i].team + team, next};
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t server;
    if (strlen(path) < sizeof address.sun_path)
        memcpy(address.sun_path, path, strlen(path));
    unlink(path);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0 ||
        pthread_create(&server, NULL, serve, (void *)(intptr_t)listener) != 0) {
        fprintf(stderr, "%s: NPB_OFFER: `%s` cannot be offered: %s\n", name, path, strerror(errno));
        return 0;
    }
    return 1;
}
