// A session without a recorder, for tests of the producer alone:
//   spool_tool new DIR [FLAGS]   makes DIR and its session file
//   spool_tool dump DIR          one line an event: pid thread lane stamp kind ptr size count align result error value text
//   spool_tool heads DIR         one line a spool: pid parent status threads chunks reason
#include "base/clock.h"
#include "spool/spool.h"
#include "trace/codec.h"

#include <dirent.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_session(const char *dir, unsigned flags)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, SPOOL_SESSION_FILE);
    if (mkdir(dir, 0777) && errno != EEXIST)
        error(1, errno, "%s", dir);
    struct spool_session session = {.magic = SPOOL_SESSION_MAGIC,
                                    .recorder_pid = (uint32_t)getppid(),
                                    .flags = flags,
                                    .clock_kind = clock_best(),
                                    .stamp_shift = CODEC_STAMP_SHIFT};
    FILE *f = fopen(path, "w");
    if (!f || fwrite(&session, sizeof session, 1, f) != 1 || fclose(f))
        error(1, errno, "%s", path);
}

static void dump_event(const struct spool_header *h, const struct spool_chunk *c, const struct event *ev)
{
    printf("%u %u %u %" PRIu64 " %s %#" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %#" PRIx64 " %u %" PRIu64
           " %.*s\n",
           h->pid, c->thread, c->lane, ev->stamp, event_infos[ev->kind].name, ev->ptr, ev->size, ev->count, ev->align,
           ev->result, ev->error, ev->value, (int)ev->text_bytes, ev->text ? ev->text : "");
}

static void dump_chunk(const struct spool_header *h, const struct spool_chunk *c)
{
    struct codec_state state = {.epoch = c->epoch0, .base = c->base0};
    uint64_t last = 0;
    for (uint32_t at = 0, used; at < c->used_words; at += used) {
        struct event ev;
        used = codec_get(&state, c->words + at, c->used_words - at, &ev);
        if (!used)
            error(1, 0, "pid %u: no record at word %u of thread %u", h->pid, at, c->thread);
        if (!ev.kind)
            continue;
        if (ev.stamp < last)
            error(1, 0, "pid %u: stamp goes back at word %u of thread %u", h->pid, at, c->thread);
        last = ev.stamp;
        dump_event(h, c, &ev);
    }
}

static const struct spool_header *map_spool(const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        error(1, errno, "%s", path);
    void *spool = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (spool == MAP_FAILED)
        error(1, errno, "%s", path);
    close(fd);
    return spool;
}

static void show(const char *path, int heads)
{
    const struct spool_header *h = map_spool(path);
    const struct spool_chunk *chunks = (const struct spool_chunk *)((const char *)h + SPOOL_HEADER_BYTES);
    if (heads) {
        printf("%u %u %u %u %u %u %s|%s|%s\n", h->pid, h->parent_spool_pid, h->status, h->threads_born, h->threads_live,
               h->fresh_chunks, h->exe, h->allocator, h->reason);
        return;
    }
    for (uint32_t i = 0; i < h->fresh_chunks; i++)
        dump_chunk(h, &chunks[i]);
}

static int is_spool(const struct dirent *d)
{
    return strstr(d->d_name, SPOOL_FILE_SUFFIX) != NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        error(2, 0, "usage: spool_tool new|dump|heads DIR");
    if (strcmp(argv[1], "new") == 0) {
        make_session(argv[2], argc > 3 ? (unsigned)atoi(argv[3]) : SPOOL_NO_RECORDER);
        return 0;
    }
    struct dirent **found;
    int n = scandir(argv[2], &found, is_spool, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[2], found[i]->d_name);
        show(path, strcmp(argv[1], "heads") == 0);
    }
    return 0;
}
