/* A userland for a machine that has nothing else: one program that is every command, chosen by the name it is called
   by. main.c holds the table of commands; each other file a family of them. */

#ifndef USERLAND_H
#define USERLAND_H

#include "runtime.h"

#include <asm/unistd.h>
#include <asm/stat.h>
#include <asm/fcntl.h>

enum { PATH_BYTES = 512, LINE_BYTES = 1024, WORDS_MAX = 64, AT_CURRENT_FOLDER = -100 };

struct command {
    const char *name;
    const char *usage; /* its arguments */
    int (*run)(int count, char **words);
};

extern const struct command commands[];
const struct command *find_command(const char *name);

/* Says what went wrong with `subject` and answers 1, the exit code of a command that failed. */
int failure(const char *command, const char *subject, long error);
/* Says how a command is called and answers 2. */
int misuse(const char *command);

/* text.c */
long number_of(const char *text, long otherwise);
int starts_with(const char *text, const char *prefix);
char *copy_text(char *to, const char *end, const char *from);
/* Reads a file's first bytes, with a zero behind them; answers how many, or the negative error. */
long read_text(const char *path, char *buffer, size_t bytes);
/* Writes all bytes; answers 0 or the negative error. */
long write_all(int file, const void *from, size_t bytes);

/* process.c */
long fork_process(void);
/* Replaces the process by a program found in /bin unless its name has a slash; returns the negative error. */
long execute(char **words);
/* The same for a command of this image too, which is then run here. */
long become(int count, char **words);
/* Waits until what was written to a terminal is out. */
void drain_terminal(long file);

/* A wait's status as a shell tells it: the exit code, or 128 and the signal. */
int code_of_status(int status);
/* Waits for a child; its exit code, or 128 and the signal that ended it. */
int exit_code_of(long child);
void pause_for(long seconds, long nanoseconds);
/* Monotonic time in nanoseconds. */
long now(void);

/* shell.c: runs a line; answers the exit code of its last command. */
int run_line(char *line);

int init(int count, char **words);
int shell(int count, char **words);

int cat(int count, char **words);
int copy(int count, char **words);
int echo(int count, char **words);
int list(int count, char **words);
int link_file(int count, char **words);
int make_folder(int count, char **words);
int mount_file_system(int count, char **words);
int remove_file(int count, char **words);
int checksum(int count, char **words);
int synchronise(int count, char **words);
int unmount(int count, char **words);

int processes(int count, char **words);
int send_signal(int count, char **words);
int sleep_for(int count, char **words);
int system_name(int count, char **words);
int kernel_messages(int count, char **words);
int power_off(int count, char **words);
int restart(int count, char **words);
int time_command(int count, char **words);

/* A connection to an address in digits; the socket or the negative error. */
long open_connection(const char *address, const char *port);
/* Tells the other end of a connection that nothing more comes. */
void end_sending(long socket);
int configure_interface(int count, char **words);
int connect_to(int count, char **words);
int serve_echo(int count, char **words);
int ask_for_echoes(int count, char **words);

int context_switch(int count, char **words);
int page_fault(int count, char **words);

int load(int count, char **words);

#endif
