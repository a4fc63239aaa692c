#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile sink;
int main(int n, char **v)
{
    int k = atoi(v[1]);
    int *p = malloc(sizeof(int) * k);
    int go[2];
    pipe(go);
    for (int i = 0; i < k; i++)
        if (!(p[i] = fork())) {
            sink = malloc(10);
            free(sink);
            close(go[1]);
            char c;
            read(go[0], &c, 1);
            _exit(0);
        }
    usleep(300000);
    int l = fork();
    if (!l) {
        for (int i = 0; i < 3000000; i++) {
            sink = malloc(20);
            free(sink);
        }
        _exit(7);
    }
    int st;
    waitpid(l, &st, 0);
    close(go[1]);
    while (wait(0) > 0)
        ;
    printf("last child ended with %d\n", WEXITSTATUS(st));
    return 0;
}
