// Restricts itself to a few system calls and then frees large blocks. The argument selects how the
// filter is installed.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define OK(n)                                                                                      \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

enum { BLOCKS = 4, BYTES = 1 << 20 };

// Installs the filter by syscall(2) like libseccomp, or by prctl.
static int forbid(int by_prctl)
{
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              OK(SYS_read),
                              OK(SYS_write),
                              OK(SYS_exit_group),
                              OK(SYS_brk),
                              OK(SYS_mmap),
                              OK(SYS_munmap),
                              OK(SYS_mprotect),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)
                    : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
}

int main(int argc, char **argv)
{
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = i % 2 ? calloc(1, BYTES) : malloc(BYTES);
    if (argc < 2 || forbid(strcmp(argv[1], "prctl") == 0))
        return 2;
    for (int i = 0; i < BLOCKS - 1; i++) {
        memset(blocks[i], 1, BYTES);
        free(blocks[i]);
    }
    if (write(1, "alive\n", 6) != 6)
        return 3;
    _exit(0);
}
