// `record --format`: the trace goes through a pipe to a process of heaptape's own, which writes it in the other format
// while the program runs.
#ifndef HEAPTAPE_FORMATS_EXPORT_LIVE_H
#define HEAPTAPE_FORMATS_EXPORT_LIVE_H

#include "base/fio.h"
#include "formats/export_file.h"

#include <sys/types.h>

// What is to be written and where, as the options and the environment say it.
struct export_live_target {
    const struct format *format; // NULL: a trace, as without all this
    const char *output;          // as for export_file; NULL: none was named
    int fd;                      // above 0: instead
    bool append;
    char *made; // what `output` points to when it had to be made up; the caller frees it
};

// Fills in what is missing in *t: what MALLOC_LOG, MTRACE_CTL_FILE and TCMALLOC_TRACE_OUTPUT ask for when nothing else was asked for, and the
// formats' default names. 0 or -ENOMEM.
int export_live_complete(struct export_live_target *t);

// Nothing was recorded: removes the file.
void export_live_discard(const struct export_live_target *t);

// How the writer ended.
struct export_live_end {
    int code; // its exit status; negative: it has not ended by itself
    struct err e;
};

struct export_live {
    pid_t writer;
    struct export_live_end *end; // in memory that both processes have
};

// Starts the writer; *to is the pipe to it. It ends when that is closed, whatever signals come. The notes of its watch come
// from the writer. 0 or a negative errno with the text set.
int export_live_start(struct export_live *l, const struct export_settings *s, struct output *to,
                      struct err *e);

// The same with another writer: `write` reads the trace from standard input, in the new process. 0 or a negative errno with
// the text set, as for export_live_finish; -ENODATA where nothing came.
int export_live_start_other(struct export_live *l, int (*write)(const void *context, struct err *e),
                            const void *context, struct output *to, struct err *e);

// Waits for the writer, whose pipe has been closed; with `hurry` for a second at most, as its output may accept no data. 0
// or a negative errno with the text set when it failed.
int export_live_finish(struct export_live *l, bool hurry, struct err *e);

#endif
