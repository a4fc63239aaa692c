#include "trace/losses.h"

#include <stdio.h>
#include <string.h>

static void keep_fact(struct trace_fact *to, const struct trace_process *p, const char *text)
{
    if (!text || to->processes++)
        return;
    to->pid = p->pid;
    snprintf(to->program, sizeof to->program, "%s", basename(p->exe ? p->exe : ""));
    snprintf(to->text, sizeof to->text, "%s", text);
}

static void keep_deepbound(struct trace_losses *l, const char *path)
{
    size_t n = strlen(path) + 1;
    for (uint32_t at = 0; at < l->deepbound_bytes; at += (uint32_t)strlen(l->deepbound + at) + 1) {
        if (strcmp(l->deepbound + at, path) == 0)
            return;
    }
    if (n > sizeof l->deepbound - l->deepbound_bytes)
        return;
    memcpy(l->deepbound + l->deepbound_bytes, path, n);
    l->deepbound_bytes += (uint32_t)n;
}

void trace_losses_add(struct trace_losses *l, const struct trace_process *p)
{
    l->lost_records += p->lost_records;
    keep_fact(&l->off, p, p->off_reason);
    keep_fact(&l->bypassed, p, p->bypassed_by);
    keep_fact(&l->without_units, p, p->without_units ? "" : NULL);
    for (uint32_t at = 0; at < p->deepbound_bytes; at += (uint32_t)strlen(p->deepbound + at) + 1)
        keep_deepbound(l, p->deepbound + at);
}
