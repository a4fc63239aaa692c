#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile s;
static long cnt;
static void burst(int n)
{
    for (int i = 0; i < n; i++) {
        s = malloc(4999);
        free(s);
    }
    cnt += n;
}
static void *th(void *a)
{
    burst((long)a);
    return 0;
}
static void deny(int kill)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, kill ? SECCOMP_RET_KILL_PROCESS : (SECCOMP_RET_ERRNO | 1))};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}
int main(int n, char **v)
{
    const char *m = v[1];
    burst(1000);
    if (!strcmp(m, "closefrom")) {
        for (int i = 3; i < 1000; i++)
            close(i);
        int f[50];
        for (int i = 0; i < 50; i++)
            f[i] = open("/dev/null", O_RDWR);
        burst(100000);
        for (int i = 0; i < 4; i++)
            if (!fork()) {
                close_range(3, ~0u, 0);
                for (int k = 0; k < 30; k++)
                    open("/dev/zero", O_RDWR);
                burst(10000);
                _exit(0);
            }
        while (wait(0) > 0)
            ;
        cnt += 40000;
    }
    if (!strcmp(m, "seccomp")) {
        deny(0);
        burst(300000);
    }
    if (!strcmp(m, "seccompkill")) {
        deny(1);
        burst(300000);
    }
    if (!strcmp(m, "strict")) {
        fflush(0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        burst(300000);
        char b[32];
        int k = snprintf(b, 32, "%ld\n", cnt);
        write(1, b, k);
        syscall(SYS_exit, 0);
    }
    if (!strcmp(m, "forks")) {
        int N = atoi(v[2]);
        for (int i = 0; i < N; i++) {
            pid_t p = fork();
            if (!p) {
                burst(2);
                _exit(0);
            }
            if (p > 0)
                waitpid(p, 0, 0);
            cnt += 2;
        }
    }
    if (!strcmp(m, "bomb")) {
        int N = atoi(v[2]), ok = 0;
        for (int i = 0; i < N; i++) {
            pid_t p = fork();
            if (!p) {
                burst(200);
                usleep(500000);
                burst(200);
                _exit(0);
            }
            if (p > 0)
                ok++;
        }
        while (wait(0) > 0)
            ;
        cnt += 400 * ok;
    }
    if (!strcmp(m, "threads")) {
        int N = atoi(v[2]);
        pthread_t *t = mmap(0, N * 8, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_attr_t a;
        pthread_attr_init(&a);
        pthread_attr_setstacksize(&a, 65536);
        for (int b = 0; b < N; b += 500) {
            for (int i = b; i < b + 500; i++)
                if (pthread_create(t + i, &a, th, (void *)5L))
                    return 9;
            for (int i = b; i < b + 500; i++)
                pthread_join(t[i], 0);
        }
        cnt = 1000 + 5l * N;
    }
    if (!strcmp(m, "daemon")) {
        if (fork())
            _exit(0);
        setsid();
        if (fork())
            _exit(0);
        chdir("/");
        for (int i = 0; i < 3; i++)
            close(i);
        burst(50000);
        FILE *f = fopen("./w/daemon", "w");
        fprintf(f, "%ld\n", cnt);
        fclose(f);
        return 0;
    }
    char b[32];
    int k = snprintf(b, 32, "%ld\n", cnt);
    if (write(1, b, k) < 0)
        _exit(8);
    return 0;
}
