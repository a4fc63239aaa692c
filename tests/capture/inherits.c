// Forks children that use and count the blocks of their parent: inherits WAY. Each child prints a
// line "PID BLOCKS BYTES BLOCKS BYTES": the number and the bytes of the blocks with sizes of
// TOLD_SIZE, first at the fork and then at the exit of the child.
#include "told.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { BLOCKS = 1000, HOLDERS = 4, CHURNERS = 2 };

static struct {
    void *at;
    size_t size;
} blocks[BLOCKS];

struct count {
    size_t blocks, bytes;
};

static struct count count(void)
{
    struct count c = {0};
    for (int i = 0; i < BLOCKS; i++) {
        c.blocks += blocks[i].at != NULL;
        c.bytes += blocks[i].at ? blocks[i].size : 0;
    }
    return c;
}

static void take(int i)
{
    blocks[i].size = TOLD_SIZE(i % 50);
    blocks[i].at = i % 3 ? malloc(blocks[i].size) : aligned_alloc(64, blocks[i].size);
}

static void give(int i)
{
    free(blocks[i].at);
    blocks[i].at = NULL;
}

static void resize(int i, size_t size)
{
    void *to = realloc(blocks[i].at, size);
    blocks[i].at = to;
    blocks[i].size = size;
}

static void take_all(int from, int to)
{
    for (int i = from; i < to; i++)
        take(i);
}

static void give_all(int from, int to, int step)
{
    for (int i = from; i < to; i += step) {
        if (blocks[i].at)
            give(i);
    }
}

// Runs in a child. Uses inherited blocks, and allocates blocks at addresses that the parent uses as
// well.
static void live(struct count at_fork)
{
    char line[128];
    for (int i = 0; i < BLOCKS; i++) {
        if (!blocks[i].at)
            take(i);
        else if (i % 7 == 0)
            resize(i, TOLD_SIZE(i % 50 + 3));
        else if (i % 2)
            give(i);
    }
    give_all(0, BLOCKS, 5);
    struct count end = count();
    int n = snprintf(line, sizeof line, "%d %zu %zu %zu %zu\n", (int)syscall(SYS_getpid),
                     at_fork.blocks, at_fork.bytes, end.blocks, end.bytes);
    if (write(1, line, (size_t)n) != n)
        abort();
}

static void wait_for(pid_t pid)
{
    int status;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid || status)
        abort();
}

static pid_t child_lives(void)
{
    struct count at_fork = count();
    pid_t pid = fork();
    if (pid == 0) {
        live(at_fork);
        _exit(0);
    }
    return pid;
}

// The parent continues immediately and frees blocks that are still live in the child.
static void by_points(void)
{
    pid_t children[10];
    for (int i = 0; i < 10; i++) {
        give_all(0, BLOCKS, 3);
        take_all(i * 100, i * 100 + 100);
        children[i] = child_lives();
        give_all(0, BLOCKS, 4);
    }
    for (int i = 0; i < 10; i++)
        wait_for(children[i]);
}

static pthread_barrier_t barrier;
static _Atomic int stop, churning;
static _Atomic unsigned churned;

static void *hold(void *number)
{
    int i = (int)(intptr_t)number;
    take_all(i * 200, i * 200 + 200);
    give_all(i * 200, i * 200 + 200, 9);
    pthread_barrier_wait(&barrier);
    while (!stop)
        usleep(1000);
    return NULL;
}

static void *churn(void *number)
{
    (void)number;
    pthread_barrier_wait(&barrier);
    while (!stop) {
        if (!churning) {
            usleep(100);
            continue;
        }
        free(malloc(100));
        churned++;
    }
    return NULL;
}

static void start_churning(void)
{
    unsigned before = churned;
    churning = 1;
    while (churned - before < 2000)
        usleep(100);
}

// The child inherits blocks of threads that do not exist in the child. Some of these threads are
// inside malloc during the fork.
static void by_threads(void)
{
    pthread_t threads[HOLDERS + CHURNERS];
    pthread_barrier_init(&barrier, NULL, HOLDERS + CHURNERS + 1);
    for (int i = 0; i < HOLDERS + CHURNERS; i++)
        pthread_create(&threads[i], NULL, i < HOLDERS ? hold : churn, (void *)(intptr_t)i);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 5; i++) {
        // Churn only around the fork, because recording the calls is costly.
        start_churning();
        take_all(800 + 40 * i, 840 + 40 * i);
        pid_t child = child_lives();
        churning = 0;
        wait_for(child);
        give_all(i, 800, 13);
    }
    stop = 1;
    for (int i = 0; i < HOLDERS + CHURNERS; i++)
        pthread_join(threads[i], NULL);
}

// A fork child forks another child. If `uses` is set, the first child makes calls, too.
static void by_nested(int uses)
{
    take_all(0, 500);
    pid_t pid = fork();
    if (pid == 0) {
        if (uses)
            give_all(0, 500, 6);
        wait_for(child_lives());
        _exit(0);
    }
    give_all(0, 500, 2);
    wait_for(pid);
}

// The child makes its first call long after its parent has freed its blocks and exited.
static void by_orphan(void)
{
    int ends[2];
    char byte;
    take_all(0, 500);
    struct count at_fork = count();
    if (pipe(ends))
        abort();
    if (fork() == 0) {
        close(ends[1]);
        if (read(ends[0], &byte, 1))
            abort();
        usleep(200000);
        live(at_fork);
        _exit(0);
    }
    give_all(0, 500, 1);
    take_all(500, 900);
}

// Forks by clone(2). The C library does not see this fork, so no handlers of pthread_atfork run.
static void by_clone(void)
{
    take_all(0, 500);
    struct count at_fork = count();
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        live(at_fork);
        _exit(0);
    }
    wait_for(pid);
}

// The parent pauses recording before the child's first call.
static void by_pause(void)
{
    int ends[2];
    char byte = 0;
    take_all(0, 500);
    struct count at_fork = count();
    if (pipe(ends))
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        if (read(ends[0], &byte, 1) != 1)
            abort();
        live(at_fork);
        _exit(0);
    }
    heaptape_pause();
    give_all(0, 500, 1);
    if (write(ends[1], &byte, 1) != 1)
        abort();
    wait_for(pid);
}

static void by_exec(void)
{
    take_all(0, 500);
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            execl("/bin/true", "true", NULL);
            _exit(1);
        }
        wait_for(pid);
    }
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "points") == 0)
        by_points();
    else if (strcmp(way, "threads") == 0)
        by_threads();
    else if (strcmp(way, "nested") == 0)
        by_nested(1);
    else if (strcmp(way, "silent") == 0)
        by_nested(0);
    else if (strcmp(way, "orphan") == 0)
        by_orphan();
    else if (strcmp(way, "clone") == 0)
        by_clone();
    else if (strcmp(way, "pause") == 0)
        by_pause();
    else if (strcmp(way, "exec") == 0)
        by_exec();
    else
        return 2;
    return 0;
}
