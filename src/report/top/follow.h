// Counts the live blocks of each process during a recording. A growing trace is read frame by
// frame. An aggregate is reread each time the recorder has rewritten it.
#pragma once

#include "analysis/file_stat.h"
#include "report/top/live.h"
#include "trace/reader.h"

enum follow_state {
    FOLLOW_READING, // the file has more data
    FOLLOW_WAITING, // all data has been read
    FOLLOW_ENDED,   // the recording has ended
    FOLLOW_CUT_OFF, // the END frame is missing, but no process has the file open for writing
};

enum { FOLLOW_HEAD_BYTES = 4096 };

struct follow {
    struct input in;
    uint8_t head[FOLLOW_HEAD_BYTES]; // start of the file, which changes only after a reset
    size_t head_bytes;
    struct trace_reader reader;
    struct walk *walk; // NULL until the file has its first frame
    struct walk_options how;
    enum follow_state state;
    bool settled;
    // End of the range that was read: the last watermark, or the end of the recording.
    uint64_t stamp;
    struct live **lives; // indexed by process number
    size_t n_lives, capacity;
    // Used only for an aggregate:
    const char *path;        // NULL for a trace
    struct file_stat counts; // counts of the last reading, which `lives` refers to
    uint64_t read_ino, read_ns;
    double interval_s; // interval of the rates in seconds; 0 means the whole recording
};

// Opens the trace or aggregate at `path`, which must outlive *f. Returns 0, or a negative errno
// with the message set; *f can be closed in either case.
int follow_open(struct follow *f, const char *path, struct err *e);
void follow_close(struct follow *f);

// Reads new data until `until_ns` on the monotonic clock, and sets the state. If the recording was
// reset, starts over. Returns 0, or a negative errno with the message set.
int follow_read(struct follow *f, uint64_t until_ns, struct err *e);

// Returns true if a process has the file open for writing, or if this is unknown.
bool follow_is_written(const struct follow *f);

// Returns the time between the start of the recording and the end of the data read so far.
uint64_t follow_time_ns(const struct follow *f);

// Private. The part of follow_read for aggregates: reads the file if it was rewritten since the
// last reading, and sets the rates since that reading.
int follow_read_aggregate(struct follow *f, struct err *e);
