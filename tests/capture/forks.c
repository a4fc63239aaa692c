// Creates processes that count their own calls: forks WAY... Each argument is a way to create a
// process.
#include "told.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static const char *self;

static void use(int n, int times)
{
    for (int i = 0; i < times; i++)
        free(malloc(TOLD_SIZE(n)));
    told_count("malloc", TOLD_SIZE(n), (unsigned long)times);
    told_count("free", TOLD_SIZE(n), (unsigned long)times);
}

static void wait_for(pid_t pid)
{
    int status;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid || status)
        abort();
}

// The parent and the child each free a copy of the same block.
static void by_fork(void)
{
    void *p = malloc(100);
    TOLD_HIDE(p);
    pid_t pid = fork();
    free(p);
    use(pid ? 1 : 2, 100);
    if (pid == 0)
        _exit(0);
    wait_for(pid);
}

static void by_nested_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        by_fork();
        _exit(0);
    }
    wait_for(pid);
}

static _Atomic int stop;

static void *churn(void *count)
{
    while (!stop) {
        free(malloc(TOLD_SIZE(3)));
        ++*(unsigned long *)count;
    }
    return NULL;
}

static void with_threads(void)
{
    pthread_t threads[4];
    unsigned long counts[4] = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, &counts[i]);
    for (int i = 0; i < 10; i++)
        by_nested_fork();
    stop = 1;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        told_count("malloc", TOLD_SIZE(3), counts[i]);
        told_count("free", TOLD_SIZE(3), counts[i]);
    }
}

// A child of vfork shares its parent's memory and is recorded as its parent.
static void by_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        use(4, 10);
        _exit(0);
    }
    wait_for(pid);
    use(5, 10);
}

static void by_spawn(void)
{
    pid_t pid;
    char *argv[] = {(char *)self, "use", NULL};
    if (posix_spawn(&pid, self, NULL, NULL, argv, environ))
        abort();
    wait_for(pid);
}

// Forks by clone(2). The C library does not see this fork, so no handlers of pthread_atfork run.
static void by_clone(void)
{
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        use(6, 100);
        _exit(0);
    }
    wait_for(pid);
    use(7, 100);
}

// Executes itself `times` times without fork. Each image fills part of a chunk.
static void by_exec(int times)
{
    char number[16];
    use(8, 1000);
    if (times == 0)
        return;
    snprintf(number, sizeof number, "%d", times - 1);
    execl(self, self, number, NULL);
    abort();
}

// The child belongs to the session although its environment is empty.
static void without_environment(void)
{
    environ = NULL;
    by_fork();
}

static void without_files(void)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    close(0);
    by_fork();
}

// Allocates up to the limit of the address space. The mappings of the recorder must not use up this
// limit.
static void within_limit(void)
{
    struct rlimit limit = {128 << 20, 128 << 20};
    void *blocks[90];
    if (setrlimit(RLIMIT_AS, &limit))
        abort();
    for (int i = 0; i < 90; i++) {
        blocks[i] = malloc(1 << 20);
        if (!blocks[i])
            abort();
    }
    by_fork();
    for (int i = 0; i < 90; i++)
        free(blocks[i]);
}

// Forks children that cannot create files, because they cannot reach the session directory, or
// because open and write fail.
static void without_folder(void)
{
    if (chroot(".") || chdir("/"))
        abort();
    by_nested_fork();
}

static void without_rights(void)
{
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) || setrlimit(RLIMIT_FSIZE, &none))
        abort();
    for (int i = 0; i < 100; i++)
        by_nested_fork();
}

static void as_nobody(void)
{
    if (setgid(65534) || setuid(65534))
        abort();
    by_nested_fork();
}

// Starts a daemon like a service with systemd's Type=forking. No process waits for the daemon.
static void by_daemon(void)
{
    if (fork() == 0) {
        setsid();
        use(10, 10);
        if (fork() == 0) {
            if (chdir("/"))
                abort();
            umask(0);
            close(0);
            usleep(200000);
            use(11, 100);
        }
        _exit(0);
    }
    use(12, 10);
}

int main(int argc, char **argv)
{
    self = argv[0];
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {
        {"fork", by_fork},
        {"nested", by_nested_fork},
        {"threads", with_threads},
        {"vfork", by_vfork},
        {"spawn", by_spawn},
        {"clone", by_clone},
        {"bare", without_environment},
        {"closed", without_files},
        {"daemon", by_daemon},
        {"limit", within_limit},
        {"chroot", without_folder},
        {"rights", without_rights},
        {"nobody", as_nobody},
    };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "use") == 0)
            use(9, 10);
        if (argv[i][0] >= '0' && argv[i][0] <= '9')
            by_exec(atoi(argv[i]));
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            if (strcmp(argv[i], ways[k].name) == 0)
                ways[k].run();
        }
    }
    return 0;
}
