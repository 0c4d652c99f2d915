/* The first process: mounts what a system needs, then runs a command or a shell, and ends the machine.

   What stands behind `--` on the kernel's command line is the command. A command that fails makes init end with its
   exit code, which the kernel answers with a panic: so the machine's end tells success from failure. */

#include "userland.h"

enum { TIOCSCTTY = 0x540e, SIG_SETMASK = 2 };

struct file_system {
    const char *type, *folder;
};

static const struct file_system file_systems[] = {
    { "proc", "/proc" },
    { "sysfs", "/sys" },
    { "devtmpfs", "/dev" },
    { "tmpfs", "/tmp" },
};

static void mount_all(void)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++) {
        const struct file_system *wanted = &file_systems[i];
        system_call(__NR_mkdirat, (long)AT_CURRENT_FOLDER, wanted->folder, 0755L);
        long error = system_call(__NR_mount, wanted->type, wanted->folder, wanted->type, 0L, "");
        if (error < 0 && error != -16) /* EBUSY: mounted already */
            failure("init", wanted->folder, error);
    }
}

/* Links of the commands to this program, where the archive brings none. */
static void link_commands(void)
{
    system_call(__NR_mkdirat, (long)AT_CURRENT_FOLDER, "/bin", 0755L);
    for (const struct command *command = commands; command->name; command++) {
        char path[PATH_BYTES];
        copy_text(copy_text(path, path + sizeof path, "/bin/"), path + sizeof path, command->name);
        system_call(__NR_symlinkat, "/init", (long)AT_CURRENT_FOLDER, path);
    }
}

/* Makes the console the controlling terminal of a new session, so that Ctrl-C reaches what runs there. */
static void take_terminal(void)
{
    char path[PATH_BYTES], name[64];
    long length = read_text("/sys/class/tty/console/active", name, sizeof name);
    if (length <= 0)
        return;
    char *last = name;
    for (char *at = name; *at; at++) {
        if (*at == ' ')
            last = at + 1;
        if (*at == '\n')
            *at = 0;
    }
    copy_text(copy_text(path, path + sizeof path, "/dev/"), path + sizeof path, last);
    system_call(__NR_setsid);
    long terminal = system_call(__NR_openat, (long)AT_CURRENT_FOLDER, path, (long)O_RDWR, 0L);
    if (terminal < 0)
        return;
    system_call(__NR_ioctl, terminal, (long)TIOCSCTTY, 0L);
    for (long file = 0; file < 3; file++)
        system_call(__NR_dup3, terminal, file, 0L);
    system_call(__NR_close, terminal);
}

/* The first process of a session: runs the command in a child, and waits until all that was written is out. For when it
   ends, the kernel hangs the terminal up, and what was not sent yet is lost. */
static void lead_session(char **words)
{
    take_terminal();
    long child = fork_process();
    if (child == 0) {
        long error = execute(words);
        leave(failure("init", words[0], error) + 126);
    }
    /* Ctrl-C is the command's. */
    uint64_t all = ~0ul;
    system_call(__NR_rt_sigprocmask, (long)SIG_SETMASK, &all, 0L, (long)sizeof all);
    int code = exit_code_of(child);
    drain_terminal(1);
    leave(code);
}

static int run_session(char **words)
{
    long child = fork_process();
    if (child == 0)
        lead_session(words);
    int code = 127, status = 0;
    for (;;) {
        /* Orphans come to init: it takes them all. */
        long ended = system_call(__NR_wait4, -1L, &status, 0L, 0L);
        if (ended == child) {
            code = code_of_status(status);
            break;
        }
        if (ended < 0 && ended != -4)
            break;
    }
    return code;
}

int init(int count, char **words)
{
    mount_all();
    link_commands();
    char *interactive[] = { "sh", 0 };
    print("init: up after %ld ms\n", now() / 1000000);
    int code = run_session(count > 1 ? words + 1 : interactive);
    if (count > 1 && code != 0) {
        print("init: `%s` ended with %d\n", words[1], code);
        return code;
    }
    return power_off(1, words);
}
