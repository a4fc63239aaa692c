#include "trace/renumber.h"

#include "base/tlv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Sets an error for a payload that cannot be decoded. The reader does not check these payloads.
static int report_failure(const struct trace_writer *w, int rc, struct err *e)
{
    return rc == -ENOMEM
               ? err_no_memory(e, w->frames.out->name)
               : err_set(e, rc, "%s: cannot be written: %s", w->frames.out->name, strerror(-rc));
}

int renumber_samples(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                     struct err *e)
{
    struct trace_sample *samples = malloc((item->n_samples + 1) * sizeof *samples);
    size_t n = 0;
    for (size_t i = 0; samples && i < item->n_samples; i++) {
        samples[n] = item->samples[i];
        samples[n].process = numbers[item->samples[i].process];
        n += samples[n].process != RENUMBER_NONE;
    }
    int rc =
        samples ? trace_write_samples(w, samples, n, e) : err_no_memory(e, w->frames.out->name);
    free(samples);
    return rc;
}

int renumber_names(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                   uint32_t shift, struct err *e)
{
    struct names as_read = {0}, names = {0};
    uint32_t process;
    int rc = names_get(item->names, item->names_bytes, &as_read, &process)
                 ?: names_copy(&names, &as_read, shift);
    rc = rc < 0 ? report_failure(w, rc, e) : trace_write_names(w, numbers[process], &names, e);
    names_release(&as_read);
    names_release(&names);
    return rc;
}

// Copies the payload field by field, so that unknown or invalid fields are kept.
int renumber_pages(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                   struct err *e)
{
    const uint8_t *at = item->pages, *end = at + item->pages_bytes;
    struct buf b = {0};
    struct tlv f;
    int rc = tlv_put_u64(&b, TRACE_F_PROCESS, numbers[item->process->number]), more = 1;
    while (rc == 0 && (more = tlv_next(&at, end, &f)) > 0)
        rc = f.tag == TRACE_F_PROCESS ? 0 : tlv_put_bytes(&b, f.tag, f.bytes, f.size);
    if (rc == 0 && more < 0)
        rc = more;
    rc = rc < 0 ? report_failure(w, rc, e) : trace_write_pages(w, b.data, b.size, e);
    buf_release(&b);
    return rc;
}
