#include "report/page/page.h"

#include "base/fio.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Appends JSON for a script element. Escapes "<", which occurs only in strings.
static int put_escaped(struct buf *b, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "<");
        int rc = buf_put(b, text, n);
        if (rc == 0 && text[n])
            rc = buf_put(b, "\\u003c", 6);
        if (rc < 0)
            return rc;
        text += n + (text[n] != 0);
    }
    return 0;
}

static int write_page(struct output *out, const char *text, struct err *e)
{
    struct buf b = {0};
    int rc = buf_put(&b, page_head, page_head_bytes)
                 ?: put_escaped(&b, text)
                 ?: buf_put(&b, page_tail, page_tail_bytes);
    if (rc < 0)
        err_no_memory(e, out->name);
    else if (b.size > PAGE_MAX_BYTES)
        rc = err_set(e, -EFBIG, "%s: the report would exceed 3 MiB; pass fewer results", out->name);
    else
        rc = output_write(out, b.data, b.size, e);
    buf_release(&b);
    return rc;
}

int page_save(const struct document *d, const char *path, bool force, struct err *e)
{
    struct output out;
    char *text = document_text(d);
    if (!text)
        return err_no_memory(e, path);
    int rc = output_open(&out, path, OUTPUT_ASIDE | (force ? OUTPUT_FORCE : 0), e);
    if (rc == 0)
        rc = output_finish(&out, write_page(&out, text, e), e);
    free(text);
    return rc;
}
