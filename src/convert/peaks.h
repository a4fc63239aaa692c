// How many live bytes each process of a trace had at its peak, without putting its events in order as a conversion does: in
// about half of its time, and in memory that depends neither on the length of the trace nor on the number of live blocks.
#ifndef HEAPTAPE_CONVERT_PEAKS_H
#define HEAPTAPE_CONVERT_PEAKS_H

#include "base/progress.h"
#include "trace/file.h"

struct peak {
    uint32_t process, pid;
    uint64_t events;
    // Requested bytes of blocks that the process allocated itself: not of those that it had of its parent at a fork.
    uint64_t peak_bytes, end_bytes, end_blocks;
    // By how much its private memory was more than at its first sample, at most. 0: there are no two samples.
    uint64_t private_bytes;
};

struct peaks {
    struct peak *items; // of the processes with events, the highest peak first; owned
    size_t n;
    size_t with_idle; // and behind them, up to this number, those of which there are samples alone
    bool
        estimated; // over 2^18 blocks were live at a time: of small ones some stand for all, within about 0.5 %
};

// Reads the trace through, up to where it is cut off: the reader then knows all processes. `pid`: of these images alone, 0: of
// all. `progress` may be NULL. 0 or a negative errno with the text set. Release *p in either case.
int peaks_count(struct peaks *p, struct trace_file *t, uint32_t pid, struct progress *progress,
                struct err *e);
void peaks_release(struct peaks *p);

// Chooses the process with the highest peak, or that of the images with this pid (0: any), and starts again. The trace was
// opened to be read twice; it is read through only if its end names several. Then *p lists them, else it is empty; release
// it in either case. The figures of a chosen process that makes nearly all calls are those up to where it was chosen. *n is the number of processes with events in the trace. -ENOENT if there is none; the text then lists
// the pids that there are.
int peaks_choose(struct peaks *p, struct trace_file *t, uint32_t pid, uint32_t *process, size_t *n,
                 struct progress *progress, struct err *e);

#endif
