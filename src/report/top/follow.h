// Reads a trace that a recorder is still writing, frame by frame, and counts what is live in each process; or an aggregate,
// each time that it is rewritten.
#ifndef HEAPTAPE_TOP_FOLLOW_H
#define HEAPTAPE_TOP_FOLLOW_H

#include "analysis/file_stat.h"
#include "report/top/live.h"
#include "trace/reader.h"

enum follow_state {
    FOLLOW_READING, // there is more in the file
    FOLLOW_WAITING, // all that is written has been read
    FOLLOW_ENDED,   // the recording has ended
    FOLLOW_CUT_OFF, // it has not, but nobody writes the file any more
};

struct follow {
    struct input in;
    struct trace_reader reader;
    struct walk *walk; // NULL: the file has no first frame yet
    struct walk_options how;
    enum follow_state state;
    bool settled;
    uint64_t stamp;      // up to which the recording is read: of the last watermark, or of the end
    struct live **lives; // by number of the process
    size_t n_lives, capacity;
    // Of an aggregate:
    const char *path;        // NULL: it is a trace
    struct file_stat counts; // as read last, on which the lives stand
    uint64_t read_ino, read_ns;
    double interval_s; // of which the rates are; 0: of the whole recording
};

// Opens the trace or aggregate at `path`, which must outlive *f. 0 or a negative errno with the text set; *f can be closed in either case.
int follow_open(struct follow *f, const char *path, struct err *e);
void follow_close(struct follow *f);

// Reads what is there until `until_ns` on the monotonic clock, and sets the state. A recording that was reset begins anew. 0
// or a negative errno with the text set.
int follow_read(struct follow *f, uint64_t until_ns, struct err *e);

// Has anybody the file open for writing? True where that cannot be found out.
bool follow_is_written(const struct follow *f);

// Since the start of the recording, up to where it is read.
uint64_t follow_time_ns(const struct follow *f);

#endif
