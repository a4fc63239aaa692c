// A program that runs until SIGUSR1: service THREADS [rests] [forks] [LIBRARY]. The threads
// allocate blocks of ascending sizes, so that a missing call shows in the trace. At exit it reports
// whether the loader's relocations have their original values.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST = 1000, SIZES = 5000, KEPT = 64, MAX_THREADS = 1024, PAUSE_AFTER = 200 };

static atomic_int stop;
static useconds_t pause_us = 1000; // after every PAUSE_AFTER blocks
static const char *library;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

static void *work(void *arg)
{
    void *kept[KEPT] = {0};
    for (unsigned i = 0; !stop; i++) {
        free(kept[i % KEPT]);
        kept[i % KEPT] = malloc(FIRST + i % SIZES);
        if (i % PAUSE_AFTER == 0)
            usleep(pause_us);
    }
    for (unsigned i = 0; i < KEPT; i++)
        free(kept[i]);
    return arg;
}

static void *do_fork(void *arg)
{
    int status = 0;
    while (!stop) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 100; i++)
                free(malloc(7000));
            _exit(0);
        }
        if (child > 0 && waitpid(child, &status, 0) == child && status) {
            printf("a child ended with %d\n", status);
            exit(1);
        }
        usleep(5000);
    }
    return arg;
}

static void *load(void *arg)
{
    while (!stop) {
        void *handle = dlopen(library, RTLD_NOW);
        if (!handle) {
            printf("%s\n", dlerror());
            exit(1);
        }
        void (*call)(void) = (void (*)(void))dlsym(handle, "service_call");
        for (int i = 0; call && i < 20; i++) {
            call();
            usleep(1000);
        }
        dlclose(handle);
        usleep(1000);
    }
    return arg;
}

// glibc relocates the pointers in the dynamic section, musl does not.
static const ElfW(Rela) * table_at(const struct dl_phdr_info *info, const ElfW(Dyn) * d)
{
    uintptr_t at = d->d_un.d_ptr;
    return (const ElfW(Rela) *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);
}

// Adds all relocated addresses of functions and variables of an object to the sum.
static int add_object(struct dl_phdr_info *info, size_t size, void *sum)
{
    const ElfW(Dyn) *d = NULL;
    const ElfW(Rela) * tables[2] = {0};
    size_t bytes[2] = {0};
    (void)size;
    if (strstr(info->dlpi_name, "/proc/self/fd/") || strstr(info->dlpi_name, "libheaptape") ||
        strstr(info->dlpi_name, "vdso"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    for (; d && d->d_tag; d++) {
        if (d->d_tag == DT_JMPREL)
            tables[0] = table_at(info, d);
        if (d->d_tag == DT_RELA)
            tables[1] = table_at(info, d);
        if (d->d_tag == DT_PLTRELSZ)
            bytes[0] = d->d_un.d_val;
        if (d->d_tag == DT_RELASZ)
            bytes[1] = d->d_un.d_val;
    }
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < bytes[k] / sizeof(ElfW(Rela)); i++) {
            uint64_t type = ELF64_R_TYPE(tables[k][i].r_info);
            if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
                *(uint64_t *)sum =
                    *(uint64_t *)sum * 31 + *(uint64_t *)(info->dlpi_addr + tables[k][i].r_offset);
        }
    }
    return 0;
}

static uint64_t sum_tables(void)
{
    uint64_t sum = 0;
    dl_iterate_phdr(add_object, &sum);
    return sum;
}

int main(int argc, char **argv)
{
    pthread_t threads[MAX_THREADS + 2];
    int n = argc > 1 ? atoi(argv[1]) : 1, more = 0;
    signal(SIGUSR1, on_signal);
    uint64_t before = sum_tables();
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "rests") == 0)
            pause_us *= 50;
        else if (strcmp(argv[i], "forks") == 0)
            pthread_create(&threads[MAX_THREADS + more++], NULL, do_fork, NULL);
        else if ((library = argv[i]))
            pthread_create(&threads[MAX_THREADS + more++], NULL, load, NULL);
    }
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    printf("ready\n");
    fflush(stdout);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < more; i++)
        pthread_join(threads[MAX_THREADS + i], NULL);
    printf("%s\n", sum_tables() == before ? "the same" : "changed");
    return 0;
}
