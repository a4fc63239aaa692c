// Makes a system call with six arguments, and a child of clone with zeros as thread-local storage,
// like Chromium's. The child maps and unmaps memory, makes a system call, and exits with 7.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[65536] __attribute__((aligned(64)));
static char storage[65536] __attribute__((aligned(64)));
static int child(void *unused)
{
    void *p = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || munmap(p, 4096))
        _exit(1);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_chdir, "/"))
        _exit(2);
    _exit(7);
}
static int maps_second_page(void)
{
    char want[16];
    int fd = open("/proc/self/exe", O_RDONLY);
    char *p =
        (char *)syscall(SYS_mmap, 0, 4096l, (long)PROT_READ, (long)MAP_PRIVATE, (long)fd, 4096l);
    return p != MAP_FAILED && pread(fd, want, sizeof want, 4096) == sizeof want &&
           memcmp(p, want, sizeof want) == 0;
}
int main(void)
{
    free(malloc(10));
    if (!maps_second_page())
        return 3;
    int status = 0;
    pid_t p = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD, 0,
                    0, storage + sizeof storage / 2, 0);
    if (p < 0 || waitpid(p, &status, 0) != p)
        return 1;
    printf("%x\n", status);
    free(malloc(10));
    return 0;
}
