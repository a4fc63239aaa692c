#include "replay/launch.h"
#include "replay/player/results.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    // The output, followed by the descriptors of struct launch_files in the order in results.h.
    LAUNCH_FDS = 4,
    FIRST_FD = RESULTS_LIBRARY_FD + 1,
};
_Static_assert(RESULTS_FD == RESULTS_PLAN_FD + 1 && RESULTS_STREAM_FD == RESULTS_FD + 1,
               "in that order");

// Returns true if two VAR=value strings name the same variable.
static bool same_variable(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strncmp(a, b, n) == 0 && b[n] == '=';
}

static bool is_set_here(const char *variable, const struct allocator *a)
{
    if (same_variable("LD_PRELOAD=", variable))
        return true;
    for (size_t i = 0; i < a->n_tunables; i++) {
        if (same_variable(a->tunables[i], variable))
            return true;
    }
    return false;
}

static bool needs_descriptor(const char *library)
{
    return library && strpbrk(library, " :");
}

static void open_library(const char *library, int fd, posix_spawn_file_actions_t *actions)
{
    if (needs_descriptor(library))
        posix_spawn_file_actions_addopen(actions, fd, library, O_RDONLY, 0);
}

// Returns the name of a library for LD_PRELOAD.
static const char *preloaded_name(const char *library, int fd, char descriptor[32])
{
    snprintf(descriptor, 32, "/proc/self/fd/%d", fd);
    return needs_descriptor(library) ? descriptor : library;
}

void launch_open_libraries(const struct allocator *a, const char *first,
                           posix_spawn_file_actions_t *actions)
{
    open_library(a->library, RESULTS_LIBRARY_FD, actions);
    open_library(first, FIRST_FD, actions);
}

char **launch_environment(const struct allocator *a, const char *first, const char *libc)
{
    static const char format[] = "LD_PRELOAD=%s%s%s";
    size_t n = 0, out = 0;
    char descriptors[2][32];
    const char *library =
        preloaded_name(a->library ? a->library : libc, RESULTS_LIBRARY_FD, descriptors[0]);
    first = preloaded_name(first, FIRST_FD, descriptors[1]);
    while (environ[n])
        n++;
    size_t most = n + a->n_tunables + 2;
    size_t bytes = sizeof format + strlen(first) + strlen(library);
    char **made = calloc(1, most * sizeof *made + bytes);
    if (!made)
        return NULL;
    made[out++] = (char *)(made + most);
    snprintf(made[0], bytes, format, first, *first ? ":" : "", library);
    for (size_t i = 0; i < a->n_tunables; i++)
        made[out++] = a->tunables[i];
    for (size_t i = 0; i < n; i++) {
        if (!is_set_here(environ[i], a))
            made[out++] = environ[i];
    }
    return made;
}

// Duplicates a descriptor to a number above all numbers that the player expects.
static int move_up(int fd)
{
    return fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, RESULTS_STREAM_FD + 1);
}

static int spawn_player(const char *player, const struct allocator *a, char **environment,
                        const int fds[LAUNCH_FDS], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *argv[] = {"heaptape-replay", NULL};
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    // Statistics that an allocator prints on stdout must not mix with our output.
    posix_spawn_file_actions_adddup2(&actions, fds[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fds[0], STDERR_FILENO);
    for (int i = 1; i < LAUNCH_FDS; i++) {
        if (fds[i] >= 0)
            posix_spawn_file_actions_adddup2(&actions, fds[i], RESULTS_PLAN_FD + i - 1);
    }
    launch_open_libraries(a, "", &actions);
    int rc = posix_spawn(pid, player, &actions, &attributes, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

// Returns 1 if the process has ended, 0 after the interval, or a negative errno. If there is no
// pidfd (before Linux 5.3, or when out of descriptors), checks the process after short sleeps.
static int wait_a_while(pid_t pid, int pidfd, uint64_t interval_ns, int *status)
{
    enum { NAP_MS = 2 };
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    int left_ms = (int)(interval_ns / 1000000), step_ms = pidfd < 0 ? NAP_MS : left_ms;
    for (; left_ms > 0; left_ms -= step_ms) {
        if (poll(&fd, pidfd >= 0, step_ms) < 0 && errno != EINTR)
            return -errno;
        pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended != 0)
            return ended > 0 ? 1 : -errno;
    }
    return 0;
}

static int wait_for_end(pid_t pid, struct watchdog *w, struct launch_outcome *s, struct err *e)
{
    int rc, pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    while ((rc = wait_a_while(pid, pidfd, watchdog_interval_ns(w), &s->status)) == 0) {
        if (s->stuck || !watchdog_is_stuck(w))
            continue;
        s->stuck = true;
        kill(pid, SIGKILL);
    }
    if (pidfd >= 0)
        close(pidfd);
    errno = -rc;
    return rc < 0 ? err_set_errno(e, "cannot wait for the player") : 0;
}

int launch_player(const char *player, const struct allocator *a, const struct launch_files *files,
                  struct launch_outcome *s, struct err *e)
{
    pid_t pid;
    int output = memfd_create("heaptape-output", MFD_CLOEXEC);
    int rc, fds[LAUNCH_FDS] = {move_up(output), move_up(files->plan), move_up(files->results),
                               move_up(files->stream)};
    char **environment = launch_environment(a, "", "");
    *s = (struct launch_outcome){.output = output};
    if (!environment || fds[0] < 0 || (files->plan >= 0 && fds[1] < 0) || fds[2] < 0 ||
        (files->stream >= 0 && fds[3] < 0)) {
        rc = err_set_errno(e, "cannot prepare the player's start");
        goto out;
    }
    rc = spawn_player(player, a, environment, fds, &pid);
    if (rc) {
        errno = rc;
        rc = err_set_errno(e, "%s", player);
        goto out;
    }
    rc = wait_for_end(pid, files->watchdog, s, e);
out:
    for (int i = 0; i < LAUNCH_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    free(environment);
    if (rc < 0 && output >= 0)
        close(output);
    return rc;
}
