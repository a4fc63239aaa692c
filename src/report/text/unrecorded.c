#include "report/text/unrecorded.h"

#include "base/printable.h"
#include "cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Writes only the printable characters of a text. Programs choose their own names, and files may be
// forged.
static void put_text(FILE *to, const char *text)
{
    printable_print(to, text, strlen(text));
}

char *unrecorded_line(const struct trace_missed *m)
{
    char *line = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&line, &n);
    if (!to)
        return NULL;
    fprintf(to, "process %u (", m->pid);
    put_text(to, m->name[0] ? m->name : "ended before its name was read");
    fputc(')', to);
    if (m->forks)
        fprintf(
            to, " and %s not recorded: ",
            human_items(m->forks, "process that it forked were", "processes that it forked were"));
    else
        fputs(" was not recorded: ", to);
    put_text(to, m->why);
    if (m->calls != UINT64_MAX)
        fprintf(to, " (%" PRIu64 " calls)", m->calls);
    else if (m->ns != UINT64_MAX)
        fprintf(to, " (it ran for %s)", human_time((double)m->ns));
    return fclose(to) == 0 ? line : NULL;
}

const char *unrecorded_limits(const struct trace_unrecorded *u)
{
    switch (u->by) {
    case TRACE_MISSED_KERNEL:
    case TRACE_MISSED_UNKNOWN:
        return NULL;
    case TRACE_MISSED_GAPS:
        return "the kernel did not report all processes: others may not have been recorded (record fewer processes, with --follow)";
    case TRACE_MISSED_PROC:
        return "the kernel did not report processes: others that lived for less than 0.1 s may not have been recorded (record as root, or with CAP_NET_ADMIN)";
    }
    return NULL;
}
