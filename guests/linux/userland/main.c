/* The table of commands, and the choice among them by the name of the program. */

#include "userland.h"

static int help(int count, char **words);

const struct command commands[] = {
    { "init", "[COMMAND...]", init },
    { "sh", "[-c LINE]", shell },
    { "cat", "[FILE...]", cat },
    { "connect", "ADDRESS PORT", connect_to },
    { "context", "PROCESSES KILOBYTES ROUNDS", context_switch },
    { "cp", "FROM TO", copy },
    { "dmesg", "", kernel_messages },
    { "echo", "[WORD...]", echo },
    { "fault", "PAGES ROUNDS [FILE]", page_fault },
    { "help", "", help },
    { "ifconfig", "INTERFACE ADDRESS NETMASK [GATEWAY]", configure_interface },
    { "kill", "[-SIGNAL] PROCESS...", send_signal },
    { "listen", "PORT", serve_echo },
    { "ln", "[-s] TARGET NAME", link_file },
    { "load", "SECONDS FOLDER [ADDRESS PORT]", load },
    { "ls", "[-l] [FILE...]", list },
    { "mkdir", "FOLDER...", make_folder },
    { "mount", "[-t TYPE] [-o OPTIONS] DEVICE FOLDER", mount_file_system },
    { "ping", "ADDRESS [COUNT]", ask_for_echoes },
    { "poweroff", "", power_off },
    { "ps", "", processes },
    { "reboot", "", restart },
    { "rm", "FILE...", remove_file },
    { "sleep", "SECONDS", sleep_for },
    { "sum", "FILE...", checksum },
    { "sync", "", synchronise },
    { "time", "COMMAND...", time_command },
    { "umount", "FOLDER", unmount },
    { "uname", "", system_name },
    { 0, 0, 0 },
};

const struct command *find_command(const char *name)
{
    for (const char *at = name; *at; at++)
        if (*at == '/')
            name = at + 1;
    for (const struct command *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return 0;
}

int failure(const char *command, const char *subject, long error)
{
    print("%s: %s: error %ld\n", command, subject, error < 0 ? -error : error);
    return 1;
}

int misuse(const char *command)
{
    print("usage: %s %s\n", command, find_command(command)->usage);
    return 2;
}

static int help(int count, char **words)
{
    (void)count, (void)words;
    for (const struct command *command = commands; command->name; command++)
        print("  %s %s\n", command->name, command->usage);
    print("The shell has cd and exit; | < > >> && || ; & and quotes. Other programs are looked for in /bin.\n");
    return 0;
}

int main(int count, char **words)
{
    if (system_call(__NR_getpid) == 1)
        return init(count, words);
    const struct command *command = find_command(words[0]);
    if (!command) {
        print("%s: no such command; `help` lists them\n", words[0]);
        return 127;
    }
    return command->run(count, words);
}
