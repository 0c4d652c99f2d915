/* Commands on processes, the kernel and the machine. */

#include "userland.h"

enum { MOUNT_READ_ONLY = 1, MOUNT_AGAIN = 32 };

enum {
    REBOOT_MAGIC_1 = (int)0xfee1dead,
    REBOOT_MAGIC_2 = 672274793,
    REBOOT_POWER_OFF = 0x4321fedc,
    REBOOT_RESTART = 0x01234567,
    READ_ALL_MESSAGES = 3,
    MESSAGES_BYTES = 1 << 20,
    SIGTERM = 15,
};

struct names {
    char system[65], node[65], release[65], version[65], machine[65], domain[65];
};

/* The folder of /proc that comes next, by number; 0 at the end. */
static long next_process(long folder, char *block, size_t bytes, long *got, long *at)
{
    for (;;) {
        if (*at >= *got) {
            *got = system_call(__NR_getdents64, folder, block, bytes);
            *at = 0;
            if (*got <= 0)
                return 0;
        }
        char *entry = block + *at;
        *at += *(unsigned short *)(entry + 16);
        long number = number_of(entry + 19, 0);
        if (number)
            return number;
    }
}

/* The name and state from a line of /proc/N/stat: `N (name) S ...`. */
static void show_process(long number)
{
    char path[PATH_BYTES], line[LINE_BYTES], digits[24];
    char *digit = digits + sizeof digits;
    *--digit = 0;
    for (long rest = number; rest; rest /= 10)
        *--digit = (char)('0' + rest % 10);
    char *end = copy_text(path, path + sizeof path, "/proc/");
    end = copy_text(end, path + sizeof path, digit);
    copy_text(end, path + sizeof path, "/stat");
    if (read_text(path, line, sizeof line) <= 0)
        return;
    char *name = line, *close = 0;
    while (*name && *name != '(')
        name++;
    for (char *at = name; *at; at++)
        if (*at == ')')
            close = at;
    if (!close || !*name)
        return;
    *close = 0;
    print("%6ld %c %s\n", number, close[2], name + 1);
}

int processes(int count, char **words)
{
    (void)count, (void)words;
    char block[4096];
    long got = 0, at = 0, number;
    long folder = system_call(__NR_openat, (long)AT_CURRENT_FOLDER, "/proc", (long)(O_RDONLY | O_DIRECTORY), 0L);
    if (folder < 0)
        return failure("ps", "/proc", folder);
    while ((number = next_process(folder, block, sizeof block, &got, &at)) != 0)
        show_process(number);
    return 0;
}

int send_signal(int count, char **words)
{
    int first = 1, code = 0;
    long signal = SIGTERM;
    if (count > 1 && words[1][0] == '-') {
        signal = number_of(words[1] + 1, -1);
        first = 2;
    }
    if (count <= first || signal < 0)
        return misuse("kill");
    for (int i = first; i < count; i++) {
        long error = system_call(__NR_kill, number_of(words[i], -1), signal);
        if (error < 0)
            code = failure("kill", words[i], error);
    }
    return code;
}

int sleep_for(int count, char **words)
{
    long seconds = count == 2 ? number_of(words[1], -1) : -1;
    if (seconds < 0)
        return misuse("sleep");
    pause_for(seconds, 0);
    return 0;
}

int system_name(int count, char **words)
{
    (void)count, (void)words;
    struct names names;
    long error = system_call(__NR_uname, &names);
    if (error < 0)
        return failure("uname", "", error);
    print("%s %s %s %s %s\n", names.system, names.node, names.release, names.version, names.machine);
    return 0;
}

int kernel_messages(int count, char **words)
{
    (void)count, (void)words;
    char *messages = allocate(MESSAGES_BYTES);
    long got = system_call(__NR_syslog, (long)READ_ALL_MESSAGES, messages, (long)MESSAGES_BYTES);
    if (got < 0)
        return failure("dmesg", "the kernel's log", got);
    return write_all(1, messages, (size_t)got) < 0;
}

/* A terminal's driver sends as interrupts ask for more, and ending the machine does not wait for it. */
static void drain_console(void)
{
    long console = system_call(__NR_openat, (long)AT_CURRENT_FOLDER, "/dev/console", (long)O_WRONLY, 0L);
    if (console < 0)
        return;
    drain_terminal(console);
    system_call(__NR_close, console);
}

static int end_machine(const char *command, long how)
{
    drain_console();
    system_call(__NR_sync);
    /* A root on a disk is left clean, unless somebody writes: then its journal is replayed the next time. */
    system_call(__NR_mount, "", "/", "", (long)(MOUNT_AGAIN | MOUNT_READ_ONLY), "");
    long error = system_call(__NR_reboot, (long)REBOOT_MAGIC_1, (long)REBOOT_MAGIC_2, how, 0L);
    return failure(command, "the machine", error);
}

int power_off(int count, char **words)
{
    (void)count, (void)words;
    return end_machine("poweroff", REBOOT_POWER_OFF);
}

int restart(int count, char **words)
{
    (void)count, (void)words;
    return end_machine("reboot", REBOOT_RESTART);
}

int time_command(int count, char **words)
{
    if (count < 2)
        return misuse("time");
    long begun = now();
    long child = fork_process();
    if (child == 0)
        leave(failure("time", words[1], become(count - 1, words + 1)) + 126);
    int code = exit_code_of(child);
    print("%ld ms\n", (now() - begun) / 1000000);
    return code;
}
