// Code that is made while the program runs, and its names: jit FILE [stay]. The code calls a function that allocates, and
// FILE, the perf map, is gone when the program ends unless it is to stay.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void *volatile kept;

static void allocate(void)
{
    kept = malloc(7777);
}

int main(int argc, char **argv)
{
    // push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    uint8_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || at == MAP_FAILED)
        return 1;
    memcpy(at, code, sizeof code);
    mprotect(at, 4096, PROT_READ | PROT_EXEC);
    void (*f)(void (*)(void));
    memcpy(&f, &at, sizeof f);
    f(allocate);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *from = fopen(argv[1], "r"), *to = fopen(path, "w");
    int c;
    // What stands in FILE, with the address in place of @.
    while (from && to && (c = getc(from)) != EOF)
        c == '@' ? fprintf(to, "%lx", (unsigned long)(uintptr_t)at) : putc(c, to);
    if (!from || !to || fclose(to) != 0)
        return 1;
    fclose(from);
    if (argc == 2) {
        // The recorder looks twice a second, when the process does something.
        for (int i = 0; i < 90; i++) {
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            free(malloc(10));
        }
        unlink(path);
    }
    printf("%s\n", path);
    return 0;
}
