// Ends in one of several ways after calls that it counts in a file:
//   ends exit|_exit|abort|kill MANY [slowly|held] counts in the file "count"; MANY 0 means forever
// If held, the program waits after 10,000 calls until the file "go" exists.
#include "told.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    unsigned long many = strtoul(argv[2], NULL, 0);
    int fd = open("count", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096))
        return 2;
    volatile unsigned long *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool slow = argc > 3 && strcmp(argv[3], "slowly") == 0,
         held = argc > 3 && strcmp(argv[3], "held") == 0;
    for (unsigned long i = 0; many == 0 || i < many; i++) {
        void *p = malloc(TOLD_SIZE(0));
        *count = i + 1;
        TOLD_HIDE(p);
        free(p);
        if (slow && i % 1000 == 0)
            usleep(1000);
        while (held && i + 1 == 10000 && access("go", F_OK) != 0)
            usleep(1000);
    }
    if (strcmp(argv[1], "_exit") == 0)
        _exit(3);
    if (strcmp(argv[1], "abort") == 0)
        abort();
    if (strcmp(argv[1], "kill") == 0)
        kill(getpid(), SIGKILL);
    return 0;
}
