#include "heaptape/heaptape.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    free(malloc(5));
    pid_t c = fork();
    if (c == 0) {
        usleep(300000);
        for (int i = 0; i < 100; i++) {
            void *p = malloc(5555);
            __asm__ volatile("" ::"r"(p) : "memory");
            free(p);
        }
        _exit(0);
    }
    usleep(100000);
    heaptape_pause();
    waitpid(c, 0, 0);
    return 0;
}
