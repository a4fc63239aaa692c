// Runs a program under a seccomp filter:
//   filtered errno|kill|log|notify CALL PROGRAM…  applies the action to CALL, a system call by name
//                                                 (of filters_needs) or number
//   filtered only kill PROGRAM…                   allows the calls of the program and of a loaded
//                                                 libheaptape.so and applies the action to the rest
#include "record/attach/filters.h"

#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

enum { MAX_INSTRUCTIONS = 512 };

static struct sock_filter program[MAX_INSTRUCTIONS];
static unsigned short n;

static void add(struct sock_filter f)
{
    program[n++] = f;
}

// Skips the next instruction unless the system call is `call`.
static void add_test(long call)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1));
}

static uint32_t action_of(const char *name)
{
    return strcmp(name, "errno") == 0    ? SECCOMP_RET_ERRNO | 1
           : strcmp(name, "log") == 0    ? SECCOMP_RET_LOG
           : strcmp(name, "notify") == 0 ? SECCOMP_RET_USER_NOTIF
                                         : SECCOMP_RET_KILL_PROCESS;
}

static long number_of(const char *name)
{
    for (size_t i = 0; i < FILTERS_NEEDS; i++) {
        if (strcmp(filters_needs[i].name, name) == 0)
            return filters_needs[i].number;
    }
    return atol(name);
}

// System calls that aarch64 does not have.
#ifdef __x86_64__
#define OLD_CALLS SYS_access, SYS_arch_prctl,
#else
#define OLD_CALLS
#endif

static void add_allowed(void)
{
    // The system calls that tests/capture/service.c, execve, and the loader before main need.
    static const long own[] = {OLD_CALLS SYS_execve,
                               SYS_set_tid_address,
                               SYS_set_robust_list,
                               SYS_rseq,
                               SYS_getrandom,
                               SYS_clone,
                               SYS_clone3,
                               SYS_rt_sigaction,
                               SYS_write,
                               SYS_exit,
                               SYS_exit_group,
                               SYS_clock_nanosleep,
                               SYS_rt_sigreturn,
                               SYS_restart_syscall,
                               SYS_faccessat};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        add_test(own[i]);
        add((struct sock_filter)ALLOW);
    }
    for (size_t i = 0; i < FILTERS_NEEDS; i++) {
        add_test(filters_needs[i].number);
        add((struct sock_filter)ALLOW);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    bool only = strcmp(argv[1], "only") == 0;
    uint32_t action = action_of(argv[only ? 2 : 1]);
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    if (only) {
        add_allowed();
    } else {
        add_test(number_of(argv[2]));
        add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
    }
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, only ? action : SECCOMP_RET_ALLOW));
    struct sock_fprog all = {n, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all)) {
        perror("seccomp");
        return 2;
    }
    execv(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}
