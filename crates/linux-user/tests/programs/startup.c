/* What a program finds when it starts: arguments, environment, auxiliary vector; how it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int count, char **arguments, char **environment) {
    if (count > 1 && !strcmp(arguments[1], "abort"))
        abort();
    if (count > 1 && !strcmp(arguments[1], "crash"))
        *(volatile int *)0x123450 = 1;
    if (count > 1 && !strcmp(arguments[1], "spin")) {
        puts("spinning");
        fflush(stdout);
        for (;;)
            ;
    }
    for (int i = 0; i < count; i++)
        printf("argument %s\n", arguments[i]);
    for (char **variable = environment; *variable; variable++)
        if (!strncmp(*variable, "SIDE", 4))
            printf("variable %s\n", *variable);
    printf("page %lu, file %s\n", getauxval(AT_PAGESZ), (char *)getauxval(AT_EXECFN));
    char line[100];
    while (fgets(line, sizeof line, stdin))
        printf("line %s", line);
    fflush(stdout);
    fprintf(stderr, "to the error stream\n");
    return 42;
}
