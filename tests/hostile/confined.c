// confined [-n] [-p] [-t] [-f] [-e]: installs a filter of system calls in all threads, which allows
// only the calls that libc makes for threads, forks and exits, and kills the process otherwise. -n:
// no filter. -p: with PR_SET_NO_NEW_PRIVS, else only root may install the filter. -t: runs threads.
// -f: forks children that allocate. -e: ends with exit, else with _exit.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define OK(n)                                                                                      \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static void *work(void *a)
{
    for (int i = 0; i < 100; i++) {
        void *p = malloc(100);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
    return a;
}
static void threads(int rounds)
{
    pthread_t t[4];
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 4; k++)
            if (pthread_create(&t[k], 0, work, 0))
                exit(3);
        for (int k = 0; k < 4; k++)
            pthread_join(t[k], 0);
    }
}
static void children(void)
{
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t child = fork();
        if (!child) {
            work(0);
            if (i)
                exit(0);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status)
            _exit(4);
    }
}
int main(int c, char **v)
{
    int has[128] = {0}, option;
    while ((option = getopt(c, v, "nptfe")) > 0)
        has[option] = 1;
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              OK(SYS_read),
                              OK(SYS_write),
                              OK(SYS_exit),
                              OK(SYS_exit_group),
                              OK(SYS_brk),
                              OK(SYS_mmap),
                              OK(SYS_munmap),
                              OK(SYS_mprotect),
                              OK(SYS_futex),
                              OK(SYS_rt_sigreturn),
                              OK(SYS_clone),
                              OK(SYS_clone3),
                              OK(SYS_set_robust_list),
                              OK(SYS_rseq),
                              OK(SYS_rt_sigprocmask),
                              OK(SYS_madvise),
                              OK(SYS_wait4),
                              OK(SYS_getrandom),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    setvbuf(stdout, 0, _IONBF, 0);
    threads(1);
    if (has['p'] && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 2;
    if (!has['n'] && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p))
        return 2;
    if (has['t'])
        threads(20);
    if (has['f'])
        children();
    write(1, "alive\n", 6);
    if (has['e'])
        exit(0);
    _exit(0);
}
