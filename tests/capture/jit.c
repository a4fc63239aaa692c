// Generates code at run time and publishes its name. The code calls a function that allocates.
//   jit FILE [stay]   FILE is the perf map; the program removes it at exit without "stay"
//   jit --dump FILE   the name is in a jitdump in the working directory, followed by FILE
//   jit --late FILE   as --dump, but the jitdump is created after the code has run, and the program
//                     continues for a second
#include "heaptape/heaptape.h"

#include <stdbool.h>
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

// The recorder polls twice a second while the process makes calls. On a busy machine it may have no
// CPU time for a second, so each sync waits for a pass of the recorder.
static void go_on(void)
{
    for (int i = 0; i < 90; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        free(malloc(10));
        heaptape_sync();
    }
}

struct record {
    uint32_t kind, bytes;
    uint64_t time;
};

// Writes a jitdump for the code, and maps it as perf requires. The jitdump contains the name
// "dumped" and the lines 7 and 8 of a source file.
static FILE *make_dump(uint64_t code)
{
    static const char path[] = "/src/page.c", name[] = "dumped";
    const struct {
        uint32_t magic, version, bytes, machine, pad, pid;
        uint64_t time, flags;
    } head = {0x4a695444, 1, sizeof head, 62, 0, (uint32_t)getpid(), 1, 0};
    const struct {
        uint64_t address;
        uint32_t line, column;
    } lines[] = {{code, 7, 1}, {code + 4, 8, 1}};
    const struct {
        uint32_t pid, tid;
        uint64_t vma, address, bytes, number;
    } load = {(uint32_t)getpid(), (uint32_t)getpid(), code, code, 8, 1};
    const uint64_t of[2] = {code, 2};
    const struct record source = {2, sizeof source + sizeof of + 2 * (sizeof *lines + sizeof path),
                                  1},
                        loaded = {0, sizeof loaded + sizeof load + sizeof name + 8, 1};
    char file[32];
    snprintf(file, sizeof file, "jit-%d.dump", (int)getpid());
    FILE *to = fopen(file, "w+");
    if (!to || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(to), 0) == MAP_FAILED)
        exit(1);
    fwrite(&head, sizeof head, 1, to);
    fwrite(&source, sizeof source, 1, to);
    fwrite(of, sizeof of, 1, to);
    for (unsigned i = 0; i < 2; i++) {
        fwrite(&lines[i], sizeof *lines, 1, to);
        fwrite(path, sizeof path, 1, to);
    }
    fwrite(&loaded, sizeof loaded, 1, to);
    fwrite(&load, sizeof load, 1, to);
    fwrite(name, sizeof name, 1, to);
    fwrite("12345678", 8, 1, to);
    return to;
}

int main(int argc, char **argv)
{
    //   push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    uint8_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || at == MAP_FAILED)
        return 1;
    bool late = argc == 3 && strcmp(argv[1], "--late") == 0,
         dump = argc == 3 && strcmp(argv[1], "--dump") == 0;
    memcpy(at, code, sizeof code);
    FILE *dumped = dump ? make_dump((uint64_t)(uintptr_t)at) : NULL;
    mprotect(at, 4096, PROT_READ | PROT_EXEC);
    void (*f)(void (*)(void));
    memcpy(&f, &at, sizeof f);
    f(allocate);
    if (dump || late) {
        dumped = late ? make_dump((uint64_t)(uintptr_t)at) : dumped;
        FILE *tail = fopen(argv[2], "r");
        for (int c; tail && (c = getc(tail)) != EOF;)
            putc(c, dumped);
        if (!tail || fclose(tail) != 0 || fclose(dumped) != 0)
            return 1;
        if (late)
            go_on();
        return 0;
    }
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *from = fopen(argv[1], "r"), *to = fopen(path, "w");
    int c;
    // Copies FILE and replaces each @ by the address.
    while (from && to && (c = getc(from)) != EOF)
        c == '@' ? fprintf(to, "%lx", (unsigned long)(uintptr_t)at) : putc(c, to);
    if (!from || !to || fclose(to) != 0)
        return 1;
    fclose(from);
    if (argc == 2) {
        go_on();
        unlink(path);
    }
    printf("%s\n", path);
    return 0;
}
