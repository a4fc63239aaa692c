// Locks its memory under a limit. With an argument, instead locks current and future mappings, and
// prints by how many KiB the locked memory grows when blocks are allocated in a heap that is
// already mapped.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void *none(void *a)
{
    return a;
}

static long locked_kib(void)
{
    static char text[8192];
    int fd = open("/proc/self/status", O_RDONLY);
    text[read(fd, text, sizeof text - 1)] = 0;
    close(fd);
    return strtol(strstr(text, "VmLck:") + 6, NULL, 10);
}

static int lock_future(void)
{
    pthread_t t;
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    free(malloc(32 << 20));
    pthread_create(&t, NULL, none, NULL);
    pthread_join(t, NULL);
    int r = mlockall(MCL_CURRENT | MCL_FUTURE);
    long before = locked_kib();
    for (int i = 0; i < 2500; i++)
        malloc(10000);
    printf("mlockall %s, %ld KiB more\n", r ? strerror(errno) : "ok", locked_kib() - before);
    return 0;
}
int main(int argc, char **argv)
{
    free(malloc(10));
    if (argc > 1)
        return lock_future();
    struct rlimit l = {6 << 20, 6 << 20};
    setrlimit(RLIMIT_MEMLOCK, &l);
    setgid(65534);
    setuid(65534);
    int r = mlockall(MCL_CURRENT);
    printf("mlockall %s\n", r ? strerror(errno) : "ok");
    return 0;
}
