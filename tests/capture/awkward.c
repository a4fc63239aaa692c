// Programs that are hard to attach to; they print "ready" and go on until they are killed: awkward calls | execs | vforks MS. `execs`
// executes itself again all the time; in `vforks` the thread stands in vfork for MS milliseconds each time, where no signal stops it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void call(void)
{
    for (int i = 0; i < 50; i++) {
        free(malloc(1000));
        usleep(200);
    }
}

int main(int argc, char **argv)
{
    int status;
    if (argc < 2)
        return 2;
    if (!getenv("AWKWARD")) {
        printf("ready\n");
        fflush(stdout);
        setenv("AWKWARD", "1", 1);
    }
    while (strcmp(argv[1], "vforks") == 0 && argc > 2) {
        call();
        useconds_t us = (useconds_t)atoi(argv[2]) * 1000;
        pid_t child = vfork();
        if (child == 0) {
            usleep(us);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    do
        call();
    while (strcmp(argv[1], "execs") != 0);
    execv("/proc/self/exe", argv);
    return 1;
}
