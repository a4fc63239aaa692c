// A program that is hard to attach to: awkward calls | clones | execs | vforks MS | keeps. It
// prints "ready" and runs until it is killed.
//   calls      calls malloc and free without pause
//   clones     like calls, but never waits, and has a waiting thread without thread-local memory
//   execs      executes itself again and again
//   vforks MS  stays in vfork for MS milliseconds each time, which no signal interrupts
//   keeps      prints the usable sizes of the blocks allocated at the start. When the file "go"
//              exists, frees and reallocates them, and prints "released"
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void call(void)
{
    for (int i = 0; i < 50; i++) {
        free(malloc(1000));
        usleep(200);
    }
}

enum { KEPT = 200, TO_FREE = 5001, TO_RESIZE = 3001 };

static void *to_free[KEPT], *to_resize[KEPT];

static void keep(void)
{
    for (int i = 0; i < KEPT; i++) {
        to_free[i] = malloc(TO_FREE);
        to_resize[i] = malloc(TO_RESIZE);
    }
    printf("%zu\n%zu\n", malloc_usable_size(to_free[0]), malloc_usable_size(to_resize[0]));
}

static void release(void)
{
    for (int i = 0; i < KEPT; i++) {
        free(to_free[i]);
        to_resize[i] = realloc(to_resize[i], 100);
    }
    printf("released\n");
    fflush(stdout);
}

#ifdef __x86_64__
static int wait_forever(void *unused)
{
    (void)unused;
    for (;;) { // libc would need thread-local memory
        long number = SYS_pause;
        __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
    }
    return 0;
}

static void allocate_beside_clone(void)
{
    static char stack[1 << 16];
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                      CLONE_SYSVSEM | CLONE_SETTLS;
    void *none = NULL;
    clone(wait_forever, stack + sizeof stack, flags, NULL, NULL, none, NULL);
    for (;;)
        free(malloc(1000));
}
#else
static void allocate_beside_clone(void)
{
}
#endif

int main(int argc, char **argv)
{
    int status;
    bool keeps = argc > 1 && strcmp(argv[1], "keeps") == 0;
    if (argc < 2)
        return 2;
    if (keeps)
        keep();
    if (!getenv("AWKWARD")) {
        printf("ready\n");
        fflush(stdout);
        setenv("AWKWARD", "1", 1);
    }
    if (strcmp(argv[1], "clones") == 0)
        allocate_beside_clone();
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
    while (keeps && access("go", F_OK) != 0)
        call();
    if (keeps)
        release();
    do
        call();
    while (strcmp(argv[1], "execs") != 0);
    execv("/proc/self/exe", argv);
    return 1;
}
