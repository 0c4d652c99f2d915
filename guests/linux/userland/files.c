/* Commands on files and file systems. */

#include "userland.h"

enum {
    BUFFER_BYTES = 65536,
    AT_NO_FOLLOW = 0x100,
    AT_REMOVE_FOLDER = 0x200,
    KIND = 0170000,
    KIND_FOLDER = 0040000,
    KIND_LINK = 0120000,
    KIND_CHARACTER_DEVICE = 0020000,
    KIND_BLOCK_DEVICE = 0060000,
};

struct entry {
    unsigned long number, next;
    unsigned short bytes;
    unsigned char kind;
    char name[];
};

static char buffer[BUFFER_BYTES];

static long open_file(const char *path, long flags)
{
    return system_call(__NR_openat, (long)AT_CURRENT_FOLDER, path, flags, 0644L);
}

/* Copies everything from one open file to another; answers 0 or the negative error. */
static long pump(long from, long to)
{
    long got;
    while ((got = system_call(__NR_read, from, buffer, (long)BUFFER_BYTES)) > 0) {
        long error = write_all((int)to, buffer, (size_t)got);
        if (error < 0)
            return error;
    }
    return got;
}

int cat(int count, char **words)
{
    int code = 0;
    if (count == 1)
        return pump(0, 1) < 0;
    for (int i = 1; i < count; i++) {
        long file = open_file(words[i], O_RDONLY);
        long error = file < 0 ? file : pump(file, 1);
        if (error < 0)
            code = failure("cat", words[i], error);
        if (file >= 0)
            system_call(__NR_close, file);
    }
    return code;
}

int copy(int count, char **words)
{
    if (count != 3)
        return misuse("cp");
    long from = open_file(words[1], O_RDONLY);
    if (from < 0)
        return failure("cp", words[1], from);
    long to = open_file(words[2], O_WRONLY | O_CREAT | O_TRUNC);
    if (to < 0)
        return failure("cp", words[2], to);
    long error = pump(from, to);
    return error < 0 ? failure("cp", words[2], error) : 0;
}

int echo(int count, char **words)
{
    for (int i = 1; i < count; i++) {
        write_all(1, words[i], strlen(words[i]));
        write_all(1, i + 1 < count ? " " : "\n", 1);
    }
    if (count == 1)
        write_all(1, "\n", 1);
    return 0;
}

static char letter_of(unsigned mode)
{
    switch (mode & KIND) {
    case KIND_FOLDER: return 'd';
    case KIND_LINK: return 'l';
    case KIND_CHARACTER_DEVICE: return 'c';
    case KIND_BLOCK_DEVICE: return 'b';
    default: return '-';
    }
}

static void show(const char *folder, const char *name, int is_long)
{
    char path[PATH_BYTES];
    struct stat about;
    char *end = copy_text(path, path + sizeof path, folder);
    if (*folder)
        end = copy_text(end, path + sizeof path, "/");
    copy_text(end, path + sizeof path, name);
    if (!is_long || system_call(__NR_newfstatat, (long)AT_CURRENT_FOLDER, path, &about, (long)AT_NO_FOLLOW) < 0) {
        print("%s\n", name);
        return;
    }
    char rights[11] = "-rwxrwxrwx";
    rights[0] = letter_of(about.st_mode);
    for (int bit = 0; bit < 9; bit++)
        if (!(about.st_mode >> (8 - bit) & 1))
            rights[1 + bit] = '-';
    print("%s %3lu %10lu %s\n", rights, (unsigned long)about.st_nlink, (unsigned long)about.st_size, name);
}

static int list_one(const char *path, int is_long)
{
    struct stat about;
    long error = system_call(__NR_newfstatat, (long)AT_CURRENT_FOLDER, path, &about, 0L);
    if (error < 0)
        return failure("ls", path, error);
    if ((about.st_mode & KIND) != KIND_FOLDER) {
        show("", path, is_long);
        return 0;
    }
    long folder = open_file(path, O_RDONLY | O_DIRECTORY);
    if (folder < 0)
        return failure("ls", path, folder);
    long got;
    while ((got = system_call(__NR_getdents64, folder, buffer, (long)BUFFER_BYTES)) > 0)
        for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->bytes) {
            const struct entry *entry = (struct entry *)(buffer + at);
            if (strcmp(entry->name, ".") && strcmp(entry->name, ".."))
                show(path, entry->name, is_long);
        }
    system_call(__NR_close, folder);
    return got < 0 ? failure("ls", path, got) : 0;
}

int list(int count, char **words)
{
    int is_long = count > 1 && strcmp(words[1], "-l") == 0;
    int first = 1 + is_long, code = 0;
    if (count == first)
        return list_one(".", is_long);
    for (int i = first; i < count; i++)
        code |= list_one(words[i], is_long);
    return code;
}

int link_file(int count, char **words)
{
    int is_symbolic = count > 1 && strcmp(words[1], "-s") == 0;
    if (count != 3 + is_symbolic)
        return misuse("ln");
    const char *target = words[1 + is_symbolic], *name = words[2 + is_symbolic];
    long here = AT_CURRENT_FOLDER;
    long error = is_symbolic ? system_call(__NR_symlinkat, target, here, name)
                             : system_call(__NR_linkat, here, target, here, name, 0L);
    return error < 0 ? failure("ln", name, error) : 0;
}

int make_folder(int count, char **words)
{
    int code = count == 1 ? misuse("mkdir") : 0;
    for (int i = 1; i < count; i++) {
        long error = system_call(__NR_mkdirat, (long)AT_CURRENT_FOLDER, words[i], 0755L);
        if (error < 0)
            code = failure("mkdir", words[i], error);
    }
    return code;
}

int remove_file(int count, char **words)
{
    int code = count == 1 ? misuse("rm") : 0;
    for (int i = 1; i < count; i++) {
        long error = system_call(__NR_unlinkat, (long)AT_CURRENT_FOLDER, words[i], 0L);
        if (error == -21) /* EISDIR */
            error = system_call(__NR_unlinkat, (long)AT_CURRENT_FOLDER, words[i], (long)AT_REMOVE_FOLDER);
        if (error < 0)
            code = failure("rm", words[i], error);
    }
    return code;
}

int mount_file_system(int count, char **words)
{
    const char *type = "ext4", *options = "";
    int i = 1;
    if (count == 1) {
        char *all[] = { words[0], "/proc/mounts" };
        return cat(2, all);
    }
    for (; i + 1 < count && words[i][0] == '-'; i += 2) {
        if (strcmp(words[i], "-t") == 0)
            type = words[i + 1];
        else if (strcmp(words[i], "-o") == 0)
            options = words[i + 1];
        else
            return misuse("mount");
    }
    if (count != i + 2)
        return misuse("mount");
    /* Read-only is a flag, not an option of the file system's; it is the first here. */
    long flags = 0;
    if (options[0] == 'r' && options[1] == 'o' && (options[2] == ',' || options[2] == 0)) {
        flags = 1;
        options += options[2] ? 3 : 2;
    }
    long error = system_call(__NR_mount, words[i], words[i + 1], type, flags, options);
    return error < 0 ? failure("mount", words[i], error) : 0;
}

int unmount(int count, char **words)
{
    if (count != 2)
        return misuse("umount");
    long error = system_call(__NR_umount, words[1], 0L);
    return error < 0 ? failure("umount", words[1], error) : 0;
}

/* The CRC of ISO 3309, as zlib's crc32 and many tools print it. */
static uint32_t crc(uint32_t value, const unsigned char *bytes, size_t count)
{
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t entry = i;
            for (int bit = 0; bit < 8; bit++)
                entry = entry >> 1 ^ (entry & 1 ? 0xedb88320u : 0);
            table[i] = entry;
        }
    value = ~value;
    for (size_t i = 0; i < count; i++)
        value = table[(value ^ bytes[i]) & 0xff] ^ value >> 8;
    return ~value;
}

int checksum(int count, char **words)
{
    int code = count == 1 ? misuse("sum") : 0;
    for (int i = 1; i < count; i++) {
        long file = open_file(words[i], O_RDONLY), got = file;
        uint32_t value = 0;
        unsigned long total = 0;
        while (file >= 0 && (got = system_call(__NR_read, file, buffer, (long)BUFFER_BYTES)) > 0) {
            value = crc(value, (unsigned char *)buffer, (size_t)got);
            total += (unsigned long)got;
        }
        if (got < 0)
            code = failure("sum", words[i], got);
        else
            print("%x %lu %s\n", value, total, words[i]);
        if (file >= 0)
            system_call(__NR_close, file);
    }
    return code;
}

int synchronise(int count, char **words)
{
    (void)count, (void)words;
    system_call(__NR_sync);
    return 0;
}
