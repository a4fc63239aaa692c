// Counts the live blocks of each process while a recording is running. A trace is read frame by
// frame as it grows. An aggregate is read again each time it is rewritten.
#ifndef HEAPTAPE_TOP_FOLLOW_H
#define HEAPTAPE_TOP_FOLLOW_H

#include "analysis/file_stat.h"
#include "report/top/live.h"
#include "trace/reader.h"

enum follow_state {
    FOLLOW_READING, // the file has more data
    FOLLOW_WAITING, // all data has been read
    FOLLOW_ENDED,   // the recording has ended
    FOLLOW_CUT_OFF, // no END frame, but no process has the file open for writing
};

struct follow {
    struct input in;
    struct trace_reader reader;
    struct walk *walk; // NULL until the file has its first frame
    struct walk_options how;
    enum follow_state state;
    bool settled;
    uint64_t stamp;      // end of the range that has been read: the last watermark, or the end
    struct live **lives; // by process number
    size_t n_lives, capacity;
    // Only for an aggregate:
    const char *path;        // NULL for a trace
    struct file_stat counts; // result of the last reading; `lives` refers to it
    uint64_t read_ino, read_ns;
    double interval_s; // interval of the rates; 0: the whole recording
};

// Opens the trace or aggregate at `path`, which must outlive *f. Returns 0, or a negative errno
// with the message set; *f can be closed in either case.
int follow_open(struct follow *f, const char *path, struct err *e);
void follow_close(struct follow *f);

// Reads new data until `until_ns` on the monotonic clock and sets the state. If the recording was
// reset, starts again. Returns 0, or a negative errno with the message set.
int follow_read(struct follow *f, uint64_t until_ns, struct err *e);

// Returns true if a process has the file open for writing, or if that is unknown.
bool follow_is_written(const struct follow *f);

// Returns the time from the start of the recording to the end of the data that has been read.
uint64_t follow_time_ns(const struct follow *f);

#endif
