// Forks child F. F calls vfork before it calls malloc. The vfork child calls malloc, and then _exit
// or exec. F then continues and calls malloc.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int c, char **v)
{
    int how = c > 1 ? atoi(v[1]) : 0;
    long n = c > 2 ? atol(v[2]) : 1000000;
    pid_t f = fork();
    if (f == 0) {
        pid_t w = vfork();
        if (w == 0) {
            void *p = malloc(77);
            __asm__ volatile("" ::"r"(p) : "memory");
            if (how)
                execl("/bin/true", "true", (char *)0);
            _exit(0);
        }
        int st;
        waitpid(w, &st, 0);
        usleep(200000);
        for (long i = 0; i < n; i++) {
            void *p = malloc(5555);
            __asm__ volatile("" ::"r"(p) : "memory");
            free(p);
        }
        write(1, "F done\n", 7);
        _exit(0);
    }
    int st;
    waitpid(f, &st, 0);
    return 0;
}
