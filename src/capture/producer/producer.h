// The producer's half of the spool: what a traced process does to record an event. Malloc-free, lock-free, and
// async-signal-safe: no function here calls anything of libc but the vDSO clock and pthread_setspecific (libc.h).
//
// producer_put_sized and producer_put_plain are the whole fast path, inlined into the wrappers. Everything else (the
// first event of a process or thread, a full chunk, a new epoch, addresses out of the window, events of signal
// handlers) goes through producer_record.
//
// All state of threads and of the process image lies in mappings with MADV_WIPEONFORK, so that a fork child, also
// one of a raw clone(2), reads zeros: no chunk, no room, hence the slow path, which begins a spool of the child's own.
// A vfork child shares its parent's memory and records as its parent.
#ifndef HEAPTAPE_CAPTURE_PRODUCER_H
#define HEAPTAPE_CAPTURE_PRODUCER_H

#include "base/clock.h"
#include "capture/producer/producer_residency.h"
#include "capture/producer/producer_site.h"
#include "capture/spool/attach.h"
#include "capture/spool/control.h"
#include "capture/spool/spool.h"
#include "trace/codec.h"
#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define producer_unlikely(x) __builtin_expect(!!(x), 0)

// One stream of words of a thread: stream 0, and stream 1 for signal handlers that interrupted the writing of a record.
struct producer_stream {
    uint64_t
        *pos; // of the next word; at a multiple of SPOOL_PIECE_BYTES (or NULL) there may be no room
    struct codec_state state; // of the words so far
    uint64_t
        fast_epoch; // as state.epoch; PRODUCER_NO_EPOCH while every event is to take the slow path
    struct spool_chunk *chunk; // owned, or NULL
    uint64_t first_word;       // place of the chunk's first word in the stream
    uint64_t lost;             // calls dropped since the last record (--lossy)
    uint64_t last_stamp;       // of an event that took the slow path
};
_Static_assert(sizeof(struct producer_stream) == 64,
               "the fast path touches one cache line of the thread");

#define PRODUCER_NO_EPOCH UINT64_MAX

struct producer_thread {
    _Alignas(64) struct producer_stream streams[2]; // threads do not share cache lines
    uint32_t live;                                  // 1 once it may record; 0 in a fork child
    uint32_t number, tid, parent;
    uint32_t next;   // link of the pool, or of the ending threads
    uint32_t ending; // 1 after the last round of its key destructors
    union {
        struct { // before it runs: for the trampoline of pthread_create
            void *(*start)(void *);
            void *arg;
        };
        char name[16]; // at its end, as the kernel has it
    };
    uint32_t index; // in the pool; constant
    uint16_t muted; // 1 once it has noticed that recording is paused
    uint16_t
        forbidden; // 1: it may make no system call, nor read the counter: nothing of it is recorded
    uintptr_t stack_low, stack_high; // of the frames that may be walked along; 0: not known yet
    struct unwind_memory *unwind;    // NULL: no walk yet
    uint64_t walks;
    uint32_t slow_events;
    uint32_t timed_calls;
    // The big block that a realloc under way has released: by producer_residency.c.
    uint64_t resized, resized_bytes;
    bool resized_zeroed;
    bool no_unwind; // 1: there was no memory for walks
    bool
        undefined; // 1: the stack of the event under way has been looked up, and its site is not defined
};

// Bits of producer_tls.busy: what the thread is doing, so that an event can see what it interrupts.
enum producer_busy {
    // A record: stream 0 must not be touched. Also whatever else uses the state of the thread, the process or the spool: while a
    // thread does, detaching does not unmap them.
    PRODUCER_WRITING = 1,
    PRODUCER_IN_ALLOCATOR =
        2, // inside a real function that may call wrapped ones: what its object calls is no event
    PRODUCER_IN_OPERATOR = 4, // the same for the C++ operators' object
    PRODUCER_MUTED = 8,       // inside heaptape's own calls of libc: nothing is an event
    PRODUCER_IN_RUNTIME =
        32, // never set: names the C++ runtime's object, whose operators call each other
    PRODUCER_NAMED = 64, // recording a call of an allocator beside the one in use, by its own names
    PRODUCER_INTERRUPTING = 16, // a record in stream 1: the interrupted one is finished afterwards
};

struct producer_tls {
    struct producer_thread *thread; // never NULL; initially one without room
    uint32_t busy;                  // enum producer_busy
    uint32_t rounds;                // of the thread's key destructors
    void *failing; // capture's: the innermost operator new under way that may throw
    // Bytes to be allocated until the next stack is recorded: below 0 where all are, far away where none is.
    int64_t stack_left;
    uint64_t random;  // state of the generator that it is drawn from; 0: not seeded yet
    uint32_t decided; // enum producer_decided, of an event that takes the slow path
    uint32_t
        releaser; // the thread's number in producer_releases; 0 as long as it is known to be the only one
    int32_t untimed; // calls of real functions until the next one is timed
};
// Is the stack of the event recorded?
enum producer_decided { PRODUCER_UNDECIDED = 0, PRODUCER_WITHOUT_STACK, PRODUCER_WITH_STACK };

extern _Thread_local struct producer_tls producer_tls
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

// When blocks were freed last, by where they lie: the number of the thread, and above it the coarse time by the counter.
//
// The counter may be read before the load that brings the pointer to the block has got its cache line from another thread.
// So a free may seem to come before the free by which another thread gave up the same address shortly before, and then
// nothing tells to which of the two blocks each free belongs. That other free stands here: it was stored before the address
// could be allocated again, and it is found through the very pointer. Only where there may be one, because another thread
// has freed nearby within PRODUCER_NEAR_UNITS, is the counter read again, after a fence. A fence at every free would keep
// the program's cache misses from overlapping.
//
// Of two threads that store here at the same moment, one may hide its free from the other: then a fence is missing, and the
// converter sees what it would see without.
enum {
    PRODUCER_RELEASES = 4096,
    PRODUCER_RELEASES_SHIFT =
        10, // bytes that share an entry; threads with heaps of their own share no cache line
    PRODUCER_UNIT_SHIFT = 8,  // ticks of the coarse time: 100 ns at 2.6 GHz. It wraps after 6 ms.
    PRODUCER_NEAR_UNITS = 16, // more than the counter can be early, CONVERT_SKID_NS
};
extern _Atomic uint32_t producer_releases[PRODUCER_RELEASES] __attribute__((visibility("hidden")));

static inline _Atomic uint32_t *producer_release_at(uint64_t address)
{
    uint64_t place = (address ^ address >> PRODUCER_RELEASES_SHIFT) >> PRODUCER_RELEASES_SHIFT;
    return &producer_releases[place & (PRODUCER_RELEASES - 1)];
}

static inline uint32_t producer_release_word(uint64_t ticks, uint32_t releaser)
{
    return (uint32_t)(ticks >> PRODUCER_UNIT_SHIFT) << 16 | releaser;
}

// Was the free of `last` another thread's, at most shortly before the counter was at `ticks`, or after that? In one
// condition: whose free it was is hard to predict, and waits for the entry.
static inline bool producer_release_is_near(uint32_t last, uint64_t ticks, uint32_t releaser)
{
    uint32_t now = (uint32_t)(ticks >> PRODUCER_UNIT_SHIFT) + PRODUCER_NEAR_UNITS;
    uint32_t apart = (uint16_t)(now - (last >> 16)), other = (uint16_t)last ^ releaser;
    return (apart / (2 * PRODUCER_NEAR_UNITS) | (other - 1) >> 31) == 0;
}

// The counter, for the free of the block.
static inline __attribute__((always_inline)) uint64_t producer_release_ticks(uint64_t address)
{
    uint64_t ticks = clock_counter();
    uint32_t releaser = producer_tls.releaser;
    if (producer_unlikely(releaser)) {
        _Atomic uint32_t *at = producer_release_at(address);
        if (producer_release_is_near(atomic_load_explicit(at, memory_order_relaxed), ticks,
                                     releaser))
            ticks = clock_counter_ordered();
        // All threads free NULL, and often.
        if (address)
            atomic_store_explicit(at, producer_release_word(ticks, releaser), memory_order_relaxed);
    }
    return ticks;
}

// Pieces of chunks are full by alignment alone: the fast path needs no end pointer, and NULL is full too.
static inline bool producer_no_room(const uint64_t *pos)
{
    return ((uintptr_t)pos & (SPOOL_PIECE_BYTES - 1)) == 0;
}

// Is there room for so many words, of which the recorder then sees all or none?
static inline bool producer_has_room(const uint64_t *pos, unsigned words)
{
    uintptr_t used = (uintptr_t)pos & (SPOOL_PIECE_BYTES - 1);
    return used && used + words * sizeof *pos <= SPOOL_PIECE_BYTES;
}

// Makes the words before `end` visible to the recorder, which pairs with the release.
static inline void producer_publish(struct producer_stream *stream, uint64_t *end)
{
    atomic_store_explicit(&stream->chunk->published, (uint32_t)(uintptr_t)end,
                          memory_order_release);
    stream->pos = end;
}

static inline void producer_compiler_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

// Begins a record of the fast path: the stream that it goes into, or NULL: nothing was done and producer_record must be called.
// The counter is read after this, so that a handler's event never comes between a stamp and its record: streams are monotonic.
static inline __attribute__((always_inline)) struct producer_stream *
producer_begin(uint32_t obstacles)
{
    // A handler that comes before the flag is set leaves all as it was.
    if (producer_unlikely(producer_tls.busy | obstacles))
        return NULL;
    producer_tls.busy = PRODUCER_WRITING;
    producer_compiler_fence();
    struct producer_stream *stream = &producer_tls.thread->streams[0];
    // Before the counter is read, which a process without a recording may have forbidden itself.
    if (producer_unlikely(producer_no_room(stream->pos))) {
        producer_tls.busy = 0;
        return NULL;
    }
    return stream;
}

// Ends it with the record's word; false, and no record, if `odd` says that it does not fit the form, or the epoch.
static inline __attribute__((always_inline)) bool
producer_end(struct producer_stream *stream, uint64_t ticks, uint64_t odd, uint64_t word)
{
    odd |= codec_epoch_of_ticks(ticks) ^ stream->fast_epoch;
    if (producer_unlikely(odd)) {
        producer_tls.busy = 0;
        return false;
    }
    *stream->pos = word;
    producer_publish(stream, stream->pos + 1);
    producer_compiler_fence();
    producer_tls.busy = 0;
    return true;
}

// Writes the one-word record of a SIZED kind. False: producer_record must be called. Big blocks take that path, which knows
// them.
static inline __attribute__((always_inline)) bool
producer_put_sized(unsigned kind, uint64_t size, uint64_t address, bool is_release)
{
    struct producer_stream *stream = producer_begin(0);
    if (!stream)
        return false;
    uint64_t ticks = is_release ? producer_release_ticks(address) : clock_counter();
    uint64_t rel = codec_relative(address, stream->state.base);
    return producer_end(stream, ticks, size >> HT_BIG_SIZE_BITS | rel >> CODEC_REL_BITS,
                        codec_sized(kind, ticks >> CODEC_STAMP_SHIFT, size, rel));
}

// The same for a call that allocates a block, unless its stack may have to be recorded.
static inline __attribute__((always_inline)) bool
producer_put_allocated(unsigned kind, uint64_t size, uint64_t address)
{
    producer_tls.stack_left = (int64_t)((uint64_t)producer_tls.stack_left - size);
    return !producer_unlikely(producer_tls.stack_left < 0) &&
           producer_put_sized(kind, size, address, false);
}

// What producer_put_sized does not do: moves the base to the block, and notes a count that is not 1, of HT_CALLOC. False:
// nothing was done and producer_record must be called.
bool producer_put_moved(unsigned kind, uint64_t count, uint64_t size, uint64_t address,
                        bool is_release) __attribute__((visibility("hidden")));

// Not 0: the block is a big one, or one-word records do not have its count.
static inline uint64_t producer_odd_block(uint64_t count, uint64_t size)
{
    return (count - 1) >> HT_BIG_SIZE_BITS | (count * size) >> HT_BIG_SIZE_BITS;
}

// To be tried when that was false; `caller` is the wrapper's return address, `frame` that of the function that calls this.
static inline bool producer_put_again(unsigned kind, uint64_t size, uint64_t address,
                                      const void *caller, const void *frame)
{
    if (producer_tls.stack_left < 0)
        return producer_put_called(kind, 1, size, address, caller, frame);
    bool done = producer_put_moved(kind, 1, size, address, false);
    producer_tls.decided = done ? PRODUCER_UNDECIDED : PRODUCER_WITHOUT_STACK;
    return done;
}

// The same for a PLAIN kind, each of which frees its block.
static inline __attribute__((always_inline)) bool producer_put_plain(unsigned kind,
                                                                     uint64_t address)
{
    // The hint is 0 unless the block may be a big one.
    struct producer_stream *stream = producer_begin(producer_residency_hint(address));
    if (!stream)
        return false;
    uint64_t ticks = producer_release_ticks(address);
    // As with base 0: not a multiple of 8, or above 2^48, carries bits above the field.
    return producer_end(stream, ticks, codec_relative(address, 0) >> CODEC_PTR_BITS,
                        codec_plain(kind, ticks >> CODEC_STAMP_SHIFT, address));
}

// Records any event, in the shortest form that holds it; stamps it (ev->stamp is not looked at). `caller` is the
// return address of the wrapper: inside a real function (producer_enter) it tells the allocator's own nested calls
// from those of a signal handler or new_handler. Never fails: when tracing is off, nothing happens. Keeps errno. May
// wait for the recorder.
void producer_record(const struct event *ev, const void *caller);

// Is the call of a real function that comes now, outside of others, one that may be timed? Then producer_call_chosen decides
// and chooses the next one; the ticks of a call that is timed go to producer_call_add.
static inline bool producer_call_is_due(void)
{
    return producer_unlikely(--producer_tls.untimed < 0);
}
bool producer_call_chosen(void);
void producer_call_add(uint64_t ticks);

// The ticks when a call that is timed begins, else 0; and its end.
static inline uint64_t producer_call_begin(void)
{
    return producer_call_is_due() && producer_call_chosen() ? clock_counter() : 0;
}

static inline void producer_call_end(uint64_t begin)
{
    if (producer_unlikely(begin))
        producer_call_add(clock_counter() - begin);
}

// Brackets a real function that may itself call wrapped functions.
static inline uint32_t producer_enter(enum producer_busy what)
{
    uint32_t was = producer_tls.busy;
    producer_tls.busy = was | what;
    producer_compiler_fence();
    return was;
}

static inline void producer_leave(uint32_t was)
{
    producer_compiler_fence();
    producer_tls.busy = was;
}

// The code of the object whose calls are nested ones while PRODUCER_IN_ALLOCATOR or PRODUCER_IN_OPERATOR is set, or for
// PRODUCER_MUTED of the library that this is in.
void producer_set_object(enum producer_busy what, uintptr_t start, uintptr_t end);

// Does the address lie in the allocator's code?
bool producer_is_allocator(const void *address);

// Is the program to be recorded with its mappings? Joins the session, if it has not been tried yet.
bool producer_wants_maps(void);

// Sets the function that returns the usable size of the block that an event of that kind allocates or frees; 0: unknown.
// Call before the first event. Without it no usable sizes are recorded.
void producer_set_usable(size_t (*usable)(unsigned kind, void *block));

// The same for the blocks of calls that are recorded under PRODUCER_NAMED; NULL: it is not known.
void producer_set_named_usable(size_t (*usable)(void *block));

// Sets the path of the allocator that the process's spool names. `path` is copied. Call before the first event.
void producer_set_allocator(const char *path);

// Closes what ended threads have left open: for the end of the program.
void producer_finish(void);

// The same for an end without destructors, unless a sandbox could object to it.
void producer_exit(void);

// Controls the recording of this process, or returns its state: enum control_verb and its errors, enum spool_recording.
// -ENOENT: it is not recorded.
int producer_control(enum control_verb verb);
int producer_control_state(void);

// Joins the session of the environment, if it has not been tried yet in this process image. The first event does so
// too.
void producer_start(void);

// After that: programs that this one executes join the session whose recorder it has started itself (LD_PRELOAD alone).
void producer_alone_share(void);

// At the end of the process: waits until that recorder has ended, unless it goes on for other processes.
void producer_alone_finish(void);

// Before producer_attach: calls that come meanwhile are not recorded, and none of them looks for a session. 0 or an errno.
int producer_attach_later(void);

// The PID of the recorder that records this process and lives; 0: there is none.
uint32_t producer_recorder(void);

// After producer_detach: the process that had the recording ended.
void producer_ended_by(uint32_t pid);

// As producer_start for a process that runs already, in the session of that directory. 0 or an errno. Then blocks that were
// allocated before are freed with their usable size, if it is known.
int producer_attach(const char *dir);

// Ends the recording of this process, when no thread but this one runs or is in the middle of a record. The state of the other
// threads must be made this one's before they go on.
void producer_detach(void);

// Records blocks from before the recording. No other thread runs. 0, or EAGAIN: the process is not recorded now.
int producer_list(const struct spool_block *blocks, size_t n);

// After producer_detach, when no thread but this one runs or is in the middle of a record: forgets everything, so that the process may
// be attached to again. 0, or EAGAIN: a thread has been created that has not begun yet.
int producer_clear(void);

// The object whose malloc the program calls instead of the library's.
void producer_set_bypass(const char *path);

// An object, by its path, whose calls of malloc's functions bypass the library. One that is known is not added again.
void producer_add_deepbound(const char *path);

// Where there are such objects, and a child may be made to ask malloc about itself: the spool's header, for the answer. NULL in
// a sandbox and in a child of vfork.
struct spool_header *producer_may_ask_malloc(void);

// May the loader's lock be held by a thread that does not exist, because the process was forked by one of several? Also true
// of a process that is not recorded.
bool producer_is_uncertain(void);

// The path of libheaptape.so, and from its folder that of the executable of heaptape, borrowed.
void producer_set_library(const char *path, const char *heaptape);

// In the parent, right before a fork: the child begins with the blocks that are live now, and in this state of recording.
void producer_before_fork(void);

// In a fork child, before anything of the program runs there: says who the child is. A vfork child of it, which shares its
// memory, may be the first to record an event, and would be taken for it.
void producer_after_fork(void);

// Before the program puts a filter on its system calls: fetches all the memory that recording may come to need, and makes no
// system call for records any more. `now`: the filter comes with this call, so fork children cannot begin a recording.
// Returns what has changed, for producer_sandbox_refused.
unsigned producer_before_sandbox(bool now);

// After the kernel has refused the filter: undoes the changes that producer_before_sandbox returned.
void producer_sandbox_refused(unsigned changes);

// Ends the recording of the calling thread, because it will not be able to go on (`process`: of all of the process); or
// resumes that of the thread, because it is able after all.
void producer_forbid(bool process);
void producer_allow(void);

// For the wrapper of pthread_create: makes the state of the thread to come and records THREAD_CREATE. NULL when
// tracing is off or there are too many threads. Pass it to producer_thread_begin in the new thread, or to
// producer_thread_cancel when the creation failed.
struct producer_thread *producer_thread_create(void *(*start)(void *), void *arg);
void producer_thread_begin(struct producer_thread *t);
void producer_thread_cancel(struct producer_thread *t);

#endif
