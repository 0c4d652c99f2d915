/* Closes its standard error, as GNU programs do to find out whether all was written, and finds nobody there then. */

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    if (fclose(stderr) != 0)
        return 1;
    return write(2, "lost", 4) == -1 && errno == EBADF ? 0 : 2;
}
