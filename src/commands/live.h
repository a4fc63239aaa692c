// `record --format`: the trace goes through a pipe to a process of heaptape's own, which writes it in the other format
// while the program runs.
#ifndef HEAPTAPE_COMMANDS_LIVE_H
#define HEAPTAPE_COMMANDS_LIVE_H

#include "base/fio.h"
#include "commands/export_file.h"

#include <sys/types.h>

// What is to be written and where, as the options and the environment say it.
struct live_target {
    const struct format *format; // NULL: a trace, as without all this
    const char *output;          // as for export_file; NULL: none was named
    int fd;                      // above 0: instead
    bool append;
    char *made; // what `output` points to when it had to be made up; the caller frees it
};

// Fills in what is missing in *t: what MALLOC_LOG and MTRACE_CTL_FILE ask for when nothing else was asked for, and the
// formats' default names. 0 or -ENOMEM.
int live_complete(struct live_target *t);

struct live {
    pid_t writer;
};

// Starts the writer; *to is the pipe to it. It ends when that is closed, whatever signals come. 0 or a negative errno with
// the text set.
int live_start(struct live *l, const struct export_file_options *o, struct output *to, struct err *e);

// Waits for the writer, whose pipe has been closed. False when it failed: it has said why.
bool live_finish(struct live *l);

// Nothing was recorded: removes the file.
void live_discard(const struct live_target *t);

#endif
