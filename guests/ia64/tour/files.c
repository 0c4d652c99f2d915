#include "tour.h"

#include <asm/unistd.h>

enum { AT_FDCWD = -100, O_RDWR = 2, O_CREAT = 0100, O_EXCL = 0200, O_DIRECTORY = 0200000, AT_REMOVEDIR = 0x200, ENOENT = 2 };

/* The fields of Linux/ia64's `struct stat` that are looked at. */
struct status {
    uint64_t device, inode, links;
    uint32_t mode, user, group, padding;
    uint64_t special_device, size;
    uint64_t others[16];
};

static char folder[32], path[64], renamed[64];

static void name(char *to, const char *first, const char *second, long number)
{
    while (*first)
        *to++ = *first++;
    for (long place = 100000000; place; place /= 10)
        *to++ = '0' + number / place % 10;
    while (*second)
        *to++ = *second++;
    *to = 0;
}

/* Whether the folder lists `wanted` (by its getdents64 records). */
static int lists(long descriptor, const char *wanted)
{
    static char entries[1024] __attribute__((aligned(8)));
    long length = system_call(__NR_getdents64, descriptor, entries, (long)sizeof entries);
    int found = 0;
    for (long at = 0; at < length; at += *(uint16_t *)(entries + at + 16))
        found |= strcmp(entries + at + 19, wanted) == 0;
    return found;
}

void file_part(void)
{
    long process = system_call(__NR_getpid);
    name(folder, "/tmp/tour-", "", process);
    name(path, "/tmp/tour-", "/first", process);
    name(renamed, "/tmp/tour-", "/second", process);

    check(system_call(__NR_mkdirat, (long)AT_FDCWD, folder, 0700L) == 0, "mkdirat");
    long file = system_call(__NR_openat, (long)AT_FDCWD, path, (long)(O_RDWR | O_CREAT | O_EXCL), 0640L);
    check(file >= 0, "openat");
    check(system_call(__NR_write, file, "Itanium sidestep", 16L) == 16, "write");
    check(system_call(__NR_lseek, file, 8L, 0L) == 8, "lseek");
    char text[16] = {0};
    check(system_call(__NR_read, file, text, 16L) == 8 && memcmp(text, "sidestep", 8) == 0, "read");
    struct status status;
    check(system_call(__NR_fstat, file, &status) == 0 && status.size == 16, "the file's size");
    check((status.mode & 0170000) == 0100000 && (status.mode & 0700) == 0600 && status.links == 1, "the file's mode and links");
    check(system_call(__NR_ftruncate, file, 3L) == 0 && system_call(__NR_lseek, file, 0L, 2L) == 3, "ftruncate");
    check(system_call(__NR_close, file) == 0 && system_call(__NR_read, file, text, 1L) == -9, "a closed file");

    check(system_call(__NR_renameat, (long)AT_FDCWD, path, (long)AT_FDCWD, renamed) == 0, "renameat");
    long opened = system_call(__NR_openat, (long)AT_FDCWD, folder, (long)O_DIRECTORY, 0L);
    check(opened >= 0 && lists(opened, "second"), "the folder lists the file");
    system_call(__NR_close, opened);
    check(system_call(__NR_unlinkat, (long)AT_FDCWD, renamed, 0L) == 0, "unlinkat");
    check(system_call(__NR_openat, (long)AT_FDCWD, renamed, 0L, 0L) == -ENOENT, "a removed file");
    check(system_call(__NR_unlinkat, (long)AT_FDCWD, folder, (long)AT_REMOVEDIR) == 0, "the folder is removed");
}
