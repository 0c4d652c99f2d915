/* A program with a root folder of its own names what is below it, and nothing of the host beside what it was given.
 *
 * The test prepares the root: /etc/greeting ("inside\n"), /etc/absolute -> /etc/greeting, /x, /jail/program, /program
 * (both this program), and starts in a folder of the host that holds `given` ("given\n") and `out` -> /etc/greeting. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char buffer[4096];

static int contains(const char *path, const char *expected) {
    int file = open(path, O_RDONLY);
    if (file < 0)
        return 0;
    int length = read(file, buffer, sizeof buffer - 1);
    buffer[length < 0 ? 0 : length] = 0;
    close(file);
    return !strcmp(buffer, expected);
}

static int link_is(const char *path, const char *expected) {
    int length = readlink(path, buffer, sizeof buffer - 1);
    buffer[length < 0 ? 0 : length] = 0;
    return !strcmp(buffer, expected);
}

static void names_below_the_root(void) {
    struct stat status;
    CHECK(contains("/etc/greeting", "inside\n") && contains("/etc/absolute", "inside\n"));
    CHECK(contains("/../../etc/greeting", "inside\n"));
    CHECK(open("/etc/passwd", O_RDONLY) < 0 && errno == ENOENT);
    CHECK(stat("/etc/absolute", &status) == 0 && status.st_size == 7);
    CHECK(lstat("/etc/absolute", &status) == 0 && S_ISLNK(status.st_mode));
    CHECK(mkdir("/x", 0755) < 0 && errno == EEXIST);
    int file = open("/etc/made", O_CREAT | O_EXCL | O_RDWR, 0644);
    CHECK(file >= 0 && write(file, "made\n", 5) == 5 && !close(file));
    CHECK(open("/etc/made", O_CREAT | O_EXCL | O_RDWR, 0644) < 0 && errno == EEXIST);
    CHECK((file = creat("/etc/created", 0600)) >= 0 && !close(file) && !unlink("/etc/created"));
    CHECK(!mkdir("/made", 0755) && !mkdir("/made/deep/", 0755) && mkdir("/lacks/deep", 0755) < 0 && errno == ENOENT);
    CHECK(!rename("/etc/made", "/made/moved") && contains("/made/moved", "made\n"));
    CHECK(!link("/made/moved", "/made/linked") && !symlink("/made/moved", "/made/pointer"));
    CHECK(link_is("/made/pointer", "/made/moved") && contains("/made/pointer", "made\n"));
    CHECK(!chmod("/made/pointer", 0640) && !stat("/made/moved", &status) && (status.st_mode & 0777) == 0640);
    CHECK(!truncate("/made/pointer", 4) && contains("/made/linked", "made"));
    CHECK(!utimensat(AT_FDCWD, "/made/moved", 0, 0) && !access("/made/moved", R_OK));
    struct statfs system;
    CHECK(!statfs("/made", &system) && statfs("/lacks", &system) < 0);
    int watch = inotify_init();
    CHECK(inotify_add_watch(watch, "/made", IN_CREATE) == 1 && !close(watch));
    CHECK(!symlink("/made/later", "/made/dangling") && (file = open("/made/dangling", O_CREAT | O_WRONLY, 0600)) >= 0);
    CHECK(!close(file) && !unlink("/made/later") && !unlink("/made/dangling"));
    CHECK(open("/made/pointer", O_NOFOLLOW | O_RDONLY) < 0 && errno == ELOOP);
    CHECK(open("/made/moved/", O_RDONLY) < 0 && errno == ENOTDIR);
    CHECK(!symlink("loop", "/made/loop") && open("/made/loop", O_RDONLY) < 0 && errno == ELOOP && !unlink("/made/loop"));
    CHECK(!unlink("/made/linked") && !unlink("/made/pointer") && !unlink("/made/moved"));
    CHECK(!rmdir("/made/deep/") && rmdir("/made/.") < 0 && errno == EINVAL && !rmdir("/made"));
}

static void the_current_folder(void) {
    char before[4096];
    CHECK(getcwd(before, sizeof before) && before[0] == '/');
    CHECK(contains("given", "given\n") && contains("./given", "given\n"));
    CHECK(contains("out", "inside\n"));
    CHECK(open("../../../../../../../../etc/passwd", O_RDONLY) < 0 && errno == ENOENT);
    CHECK(contains("../../../../../../../../etc/greeting", "inside\n"));
    int file = open("written", O_CREAT | O_RDWR, 0600);
    CHECK(file >= 0 && !close(file) && !rename("written", "renamed") && !unlink("renamed"));
    CHECK(!chdir("/") && getcwd(buffer, sizeof buffer) && !strcmp(buffer, "/"));
    CHECK(contains("etc/greeting", "inside\n") && link_is("/proc/self/cwd", "/"));
    CHECK(!chdir("etc") && getcwd(buffer, sizeof buffer) && !strcmp(buffer, "/etc"));
    CHECK(contains("../../etc/absolute", "inside\n"));
    int folder = open("/x/..", O_RDONLY | O_DIRECTORY);
    CHECK((file = openat(folder, "../../etc/greeting", O_RDONLY)) >= 0 && !close(file));
    CHECK(faccessat(folder, "etc/absolute", R_OK, 0) == 0 && !close(folder));
    CHECK(!chdir(before) && contains("given", "given\n"));
}

static void proc_and_devices(void) {
    CHECK(link_is("/proc/self/root", "/") && contains("/proc/self/root/etc/greeting", "inside\n"));
    CHECK(open("/proc/1/root/etc/passwd", O_RDONLY) < 0 && open("/proc/self/ns/mnt", O_RDONLY) < 0);
    CHECK(open("/proc/sys/kernel/hostname", O_WRONLY) < 0 && errno == EACCES);
    CHECK(!symlink("/proc/1/root", "/etc/escape") && open("/etc/escape/etc/passwd", O_RDONLY) < 0);
    CHECK(!unlink("/etc/escape"));
    int null = open("/dev/null", O_RDWR);
    CHECK(null >= 0 && read(null, buffer, 1) == 0);
    snprintf(buffer, sizeof buffer, "/proc/self/fd/%d", null);
    int again = open(buffer, O_RDONLY);
    CHECK(again >= 0 && !close(again) && !close(null));
    CHECK(open("/dev/kmsg", O_RDONLY) < 0 && errno == ENOENT && unlink("/dev/null") < 0);
    CHECK(mount("none", "/x", "tmpfs", 0, 0) < 0 && errno == EPERM);
}

static void local_sockets(void) {
    struct sockaddr_un address = {AF_UNIX, "/etc/socket"}, found;
    socklen_t length = sizeof found;
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(!bind(server, (struct sockaddr *)&address, sizeof address) && !listen(server, 1));
    CHECK(!getsockname(server, (struct sockaddr *)&found, &length) && !strcmp(found.sun_path, "/etc/socket"));
    CHECK(!connect(client, (struct sockaddr *)&address, sizeof address));
    length = sizeof found;
    CHECK(!getpeername(client, (struct sockaddr *)&found, &length) && !strcmp(found.sun_path, "/etc/socket"));
    struct stat status;
    CHECK(!lstat("/etc/socket", &status) && S_ISSOCK(status.st_mode) && !unlink("/etc/socket"));
    close(server);
    close(client);
}

static int runs(char *path, char *argument) {
    int status;
    pid_t child = fork();
    if (!child) {
        char *arguments[] = {path, argument, 0};
        execv(path, arguments);
        _exit(99);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void execution(void) {
    CHECK(runs("/program", "child") == 7);
    CHECK(runs("/bin/sh", "child") == 99);
    int status;
    pid_t child = fork();
    if (!child) {
        if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(98);
        _exit(runs("/program", "child"));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 7 << 8);
    if (geteuid() == 0) {
        child = fork();
        if (!child)
            _exit(chroot("/jail") || chdir("/") ? 97 : runs("/program", "jailed"));
        CHECK(waitpid(child, &status, 0) == child && status == 8 << 8);
    }
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "child"))
        return contains("/etc/greeting", "inside\n") && link_is("/proc/self/exe", "/program") ? 7 : 1;
    if (count > 1 && !strcmp(arguments[1], "jailed"))
        return access("/etc/greeting", F_OK) < 0 && !access("/program", F_OK) ? 8 : 1;
    for (int descriptor = 3; descriptor < 2000; descriptor++)
        close(descriptor);
    syscall(SYS_close_range, 3, ~0u, 0);
    CHECK(dup2(1, 3) == 3 && !close(3));
    names_below_the_root();
    the_current_folder();
    proc_and_devices();
    local_sockets();
    execution();
    return report();
}
