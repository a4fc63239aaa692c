// Prints the signals, descriptors and child processes that the program sees. Recording must not
// change this output.
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t children_ended;

static void on_child(int sig)
{
    (void)sig;
    children_ended++;
}

static void print_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *d;
    int n = 0;
    while (dir && (d = readdir(dir)))
        n += d->d_name[0] != '.';
    if (dir)
        closedir(dir);
    printf("descriptors %d\n", n);
}

static void print_signals(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        if ((strncmp(line, "Sig", 3) == 0 && line[3] != 'Q') || strncmp(line, "Shd", 3) == 0)
            fputs(line, stdout);
    }
    if (status)
        fclose(status);
}

int main(void)
{
    int status;
    print_signals();
    signal(SIGCHLD, on_child);
    print_descriptors();
    pid_t found = waitpid(-1, &status, __WALL);
    printf("wait: %s\n", found < 0 && errno == ECHILD ? "no child" : "a child");
    pid_t own = fork();
    if (own == 0)
        _exit(3);
    found = wait(&status);
    printf("own: %s\n", found == own && WEXITSTATUS(status) == 3 ? "the child" : "another");
    printf("wait: %s\n",
           waitpid(-1, &status, __WALL) < 0 && errno == ECHILD ? "no child" : "a child");
    printf("signals: %d\n", (int)children_ended);
    for (int i = 0; i < 1000; i++)
        free(malloc(100));
    return 5;
}
