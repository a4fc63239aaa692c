// Runs processes with forty events each, one after another. Argument: number of processes (default
// 1,000)
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    for (int i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (size_t k = 1; k <= 20; k++)
                free(malloc(k));
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
