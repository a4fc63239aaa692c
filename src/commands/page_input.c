#include "commands/page_input.h"

#include "cli/command.h"
#include "commands/stat_gather.h"
#include "workload/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// JSON that is longer is not ours.
enum { MAX_JSON_BYTES = 256 << 20 };

static int read_all(struct input *in, struct buf *b, struct err *e)
{
    enum { STEP = 1 << 16 };
    ssize_t n;
    do {
        if (b->size > MAX_JSON_BYTES)
            return err_set(e, -EFBIG, "%s: JSON of over 256 MiB", in->name);
        if (buf_reserve(b, STEP) < 0)
            return err_set(e, -ENOMEM, "%s: out of memory", in->name);
        n = input_read(in, b->data + b->size, STEP, e);
        b->size += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    return (int)n;
}

static int add_json(struct document *d, struct input *in, int side, struct err *e)
{
    struct buf b = {0};
    int rc = read_all(in, &b, e);
    if (rc == 0)
        rc = document_add(d, in->name, side, (const char *)b.data, b.size, e);
    buf_release(&b);
    return rc;
}

static int add_counted(struct document *d, const char *path, int side, struct err *e)
{
    struct file_stat s;
    char *text = NULL;
    size_t n = 0;
    int rc = file_stat(&s, path, false, e);
    if (rc < 0)
        return rc;
    if (s.cut.text[0])
        note("%s", s.cut.text);
    FILE *to = open_memstream(&text, &n);
    if (to) {
        struct json j = {.to = to};
        print_stat_object(&j, &s);
    }
    if (!to || fclose(to) != 0)
        rc = err_set(e, -ENOMEM, "%s: out of memory", path);
    else
        rc = document_add(d, path, side, text, n, e);
    free(text);
    file_stat_release(&s);
    return rc;
}

int page_add_file(struct document *d, const char *path, int side, struct err *e)
{
    struct input in;
    int rc = input_open(&in, path, e);
    if (rc < 0)
        return rc;
    int kind = file_sniff(&in, FILE_TRACE | FILE_WORKLOAD | FILE_JSON, e);
    bool json = kind == FILE_JSON, pipe = !json && kind >= 0 && !in.size_bytes;
    rc = kind < 0 ? kind : json ? add_json(d, &in, side, e) : 0;
    input_close(&in);
    if (rc == 0 && pipe)
        return err_set(e, -ESPIPE, "%s: cannot read a trace or workload from a pipe; use a file", path);
    return rc < 0 || json ? rc : add_counted(d, path, side, e);
}
