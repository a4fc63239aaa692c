// fakespool PID: creates a spool that claims to belong to process PID
#include "capture/spool/spool.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static uint64_t start(const char *pid)
{
    char p[64], t[1024];
    snprintf(p, 64, "/proc/%s/stat", pid);
    int fd = open(p, O_RDONLY);
    int n = read(fd, t, 1023);
    t[n] = 0;
    char *q = strrchr(t, ')') + 2;
    for (int i = 3; i < 22; i++)
        q = strchr(q, ' ') + 1;
    return strtoull(q, 0, 10);
}
int main(int c, char **v)
{
    const char *d = getenv("HEAPTAPE_SPOOL");
    char p[4096];
    snprintf(p, 4096, "%s/%s-99999.spool", d, v[1]);
    int fd = open(p, O_RDWR | O_CREAT | O_EXCL, 0600);
    ftruncate(fd, SPOOL_HEADER_BYTES + 8 * 65536);
    struct spool_header *h = mmap(0, SPOOL_HEADER_BYTES, 3, MAP_SHARED, fd, 0);
    h->pid = atoi(v[1]);
    h->max_chunks = 8;
    h->magic = SPOOL_MAGIC;
    h->wakeups++;
    printf("fake made\n");
    return 0;
}
