#include "flight/hook.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

pid_t hook_run(const char *command, const char *path, const char *trigger)
{
    static const int reset[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR2};
    pid_t pid = fork();
    if (pid)
        return pid < 0 ? -errno : pid;
    for (size_t i = 0; i < sizeof reset / sizeof *reset; i++)
        signal(reset[i], SIG_DFL);
    if (trigger)
        setenv("HEAPTAPE_TRIGGER", trigger, 1);
    execl("/bin/sh", "sh", "-c", command, "sh", path, (char *)NULL);
    _exit(127);
}
