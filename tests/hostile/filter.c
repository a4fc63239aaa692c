// Installs a filter like a sandbox, which allows only these system calls: read write exit_group brk
// mmap munmap mprotect futex clock_gettime. Other system calls kill the process.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define OK(n)                                                                                      \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
int main(int c, char **v)
{
    long n = atol(v[1]);
    int action = c > 2 ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              OK(SYS_read),
                              OK(SYS_write),
                              OK(SYS_exit_group),
                              OK(SYS_brk),
                              OK(SYS_mmap),
                              OK(SYS_munmap),
                              OK(SYS_mprotect),
                              OK(SYS_futex),
                              OK(SYS_clock_gettime),
                              OK(SYS_fstat),
                              OK(SYS_newfstatat),
                              OK(SYS_rt_sigreturn),
                              BPF_STMT(BPF_RET | BPF_K, action)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    free(malloc(10));
    setvbuf(stdout, 0, _IONBF, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
        return 2;
    for (long i = 0; i < n; i++) {
        void *p = malloc(100);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
    write(1, "alive\n", 6);
    _exit(0);
}
