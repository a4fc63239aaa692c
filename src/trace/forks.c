#include "trace/forks.h"

#include "trace/fields.h"

#include <errno.h>
#include <stdlib.h>

// A process image that may be a parent.
struct forks_image {
    uint64_t start_stamp;
    size_t older; // index of the previous image with the same pid, plus 1, or 0
};

// Maximum number of images of a pid that are searched; chains of exec are shorter.
enum { MAX_OLDER = 1000 };

void trace_forks_release(struct trace_forks *f)
{
    free(f->items);
    *f = (struct trace_forks){0};
}

void trace_forks_finder_release(struct trace_forks_finder *s)
{
    map_release(&s->by_pid);
    free(s->images);
    *s = (struct trace_forks_finder){0};
}

// Returns the parent's number plus 1, or 0 if the parent is not in the trace. If the trace contains
// only the parent's pid, as old traces do, the last image with that pid is the parent.
static size_t find_parent(const struct trace_forks_finder *s, const struct trace_process *p)
{
    size_t at = p->forked_from ? map_get(&s->by_pid, p->forked_from) : 0;
    for (unsigned i = 0;
         at && p->forked_from_start && s->images[at - 1].start_stamp != p->forked_from_start; i++)
        at = i < MAX_OLDER ? s->images[at - 1].older : 0;
    return at;
}

int trace_forks_finder_add(struct trace_forks_finder *s, const struct trace_process *p,
                           struct trace_fork *fork)
{
    size_t parent = find_parent(s, p);
    if (HT_GROW(&s->images, &s->capacity, s->n + 1) < 0)
        return -ENOMEM;
    uint32_t number = (uint32_t)s->n++;
    s->images[number] = (struct forks_image){p->start_stamp, map_get(&s->by_pid, p->pid)};
    if (map_put(&s->by_pid, p->pid, number + 1ull) < 0)
        return -ENOMEM;
    if (parent)
        *fork = (struct trace_fork){(uint32_t)parent - 1, number,
                                    p->fork_stamp ? p->fork_stamp : p->start_stamp, p->fork_stamp};
    return parent > 0;
}

static int add_process(struct trace_forks *f, struct trace_forks_finder *s,
                       const struct trace_process *p)
{
    if (HT_GROW(&f->items, &f->capacity, f->n + 1) < 0)
        return -ENOMEM;
    int rc = trace_forks_finder_add(s, p, &f->items[f->n]);
    f->n += rc > 0;
    return rc < 0 ? rc : 0;
}

// Reads the next process. Returns 1 to continue, 0 at the end or at a damaged frame, or -ENOMEM.
static int read_process(struct trace_forks *to, struct trace_forks_finder *s,
                        struct frame_reader *frames)
{
    struct frame f;
    struct err ignored;
    struct trace_process p = {0};
    int rc = frame_next_of(frames, TRACE_PROCESS, &f, &ignored);
    if (rc <= 0)
        return rc == -ENOMEM ? rc : 0;
    if (fields_process_number(f.data, f.size) != s->n)
        return 0;
    rc = fields_get_process(f.data, f.size, &p) ?: add_process(to, s, &p);
    trace_process_release(&p);
    return rc == -ENOMEM ? rc : rc == 0;
}

int trace_forks_find(struct trace_forks *f, struct trace_file *t, struct err *e)
{
    struct trace_forks_finder s = {0};
    struct frame_reader frames;
    *f = (struct trace_forks){0};
    if (!t->in.size_bytes)
        return 0;
    int rc = input_seek(&t->in, 0, e);
    if (rc < 0)
        return rc;
    frame_reader_init(&frames, &t->in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    while ((rc = read_process(f, &s, &frames)) > 0)
        continue;
    frame_reader_release(&frames);
    trace_forks_finder_release(&s);
    if (rc < 0)
        return err_no_memory(e, t->in.name);
    return trace_file_rewind(t, e);
}

void trace_forks_keep(struct trace_forks *f, uint32_t process)
{
    size_t kept = f->n;
    for (size_t i = f->n; i-- > 0;) {
        if (f->items[i].child != process)
            continue;
        process = f->items[i].parent;
        f->items[--kept] = f->items[i];
    }
    if (kept < f->n)
        memmove(f->items, f->items + kept, (f->n - kept) * sizeof *f->items);
    f->n -= kept;
}
