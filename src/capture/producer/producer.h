// The producer's side of the spool: records events in a traced process. Does not allocate or lock,
// and is async-signal-safe. Calls nothing from libc except the vDSO clock and pthread_setspecific
// (libc.h).
//
// producer_put_sized and producer_put_plain are the fast path, inlined into the wrappers. All other
// cases go through producer_record: the first event of a process or thread, a full chunk, a new
// epoch, an address outside the window, an event of a signal handler.
//
// The state of the threads and of the process image is in mappings with MADV_WIPEONFORK. A fork
// child therefore reads zeros, even after a raw clone(2). The child has no chunk, so its first
// event takes the slow path, which creates a spool for the child. A vfork child shares its parent's
// memory and records as its parent.
#pragma once

#include "base/clock.h"
#include "capture/producer/producer_residency.h"
#include "capture/producer/producer_site.h"
#include "capture/spool/attach.h"
#include "capture/spool/control.h"
#include "capture/spool/entries.h"
#include "capture/spool/spool.h"
#include "trace/codec.h"
#include "trace/event/event.h"

#include <linux/rseq.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define producer_unlikely(x) __builtin_expect(!!(x), 0)

// A thread's stream of words. If a signal handler interrupts the writing of a record in stream 0,
// the handler's events go to stream 1.
//
// A stream contains its records in the order of the events. Most events can therefore reuse the
// ticks of the last counter reading (docs/design/capture.md, "Sparse readings").
struct producer_stream {
    // Address of the next word. If it is NULL or a multiple of SPOOL_PIECE_BYTES, there may be no
    // space.
    uint64_t *pos;
    struct codec_state state; // state of the encoder after the last word
    // Equals state.epoch, or PRODUCER_NO_EPOCH to force every event onto the slow path.
    uint64_t fast_epoch;
    struct spool_chunk *chunk; // owned, or NULL
    // `ticks` is the last reading of the counter, and `sequence` is the value of readings->sequence
    // before that reading. Through `readings`, the process and the recorder request readings. If
    // `readings` is NULL, every event reads the counter.
    uint64_t ticks;
    struct spool_readings *readings;
    uint32_t sequence;
    // If `pos & mask` is 0, the event must read the counter, or there may be no space for it. If
    // `mask` is 0, no event uses the fast path.
    uint32_t mask;
    // The following members are used only on the slow path and when the counter is read.
    uint64_t first_word; // offset of the chunk's first word in the stream, in words
    uint64_t lost;       // calls dropped since the last record (--lossy)
    uint64_t last_stamp; // stamp of the last event on the slow path
    uint64_t *read_at;   // `pos` at the last reading
    uint64_t unread;     // words without a reading, not yet added to readings->unread_words
};
_Static_assert(offsetof(struct producer_stream, first_word) == 64,
               "the fast path touches a single cache line of the thread");

#define PRODUCER_NO_EPOCH UINT64_MAX

struct producer_thread {
    // Aligned so that threads do not share cache lines.
    _Alignas(64) struct producer_stream streams[2];
    uint32_t live; // 1 if the thread may record; 0 in a fork child
    uint32_t number, tid, parent;
    uint32_t next;   // link in the pool or in the list of ending threads
    uint16_t ending; // 1 after the last round of the thread's key destructors
    uint16_t listed; // 1 if the thread is in the list of ending threads
    union {
        struct { // arguments of pthread_create, until the thread runs
            void *(*start)(void *);
            void *arg;
        };
        char name[16]; // name of the thread, from the kernel; set after the thread has exited
    };
    uint32_t index; // index in the pool; constant
    uint16_t muted; // 1 if the thread's events are discarded because recording is paused
    // 1 if the thread must not make system calls or cannot read the counter. The thread's events
    // are then lost.
    uint16_t forbidden;
    uintptr_t stack_low, stack_high; // bounds of the stack that can be walked; 0 if unknown
    struct unwind_memory *unwind;    // NULL before the first walk
    uint64_t walks;
    uint32_t slow_events;
    uint32_t timed_calls;
    // Big block released by a realloc in progress (producer_residency.c).
    uint64_t resized, resized_bytes;
    bool resized_zeroed;
    bool no_unwind; // no memory could be mapped for stack walks
    bool undefined; // the current event's site was looked up and is not defined
};

// Bits of producer_tls.busy, which describe what the thread is doing. At each event, the producer
// checks the bits to detect what the event interrupted.
enum producer_busy {
    // The thread is writing a record in stream 0, so nothing else may use that stream. Other code
    // that uses the state of the thread, process or spool also sets this bit, so that detaching
    // does not unmap the state.
    PRODUCER_WRITING = 1,
    // The thread is inside a real function. Calls from the allocator's object are not events.
    PRODUCER_IN_ALLOCATOR = 2,
    PRODUCER_IN_OPERATOR = 4, // like PRODUCER_IN_ALLOCATOR, for the C++ operators
    PRODUCER_MUTED = 8,       // inside libc on behalf of heaptape, so all calls are ignored
    PRODUCER_NAMED = 64,      // recording a call to a second allocator with its own function names
    PRODUCER_UNSIZED = 128,   // like PRODUCER_NAMED, but usable sizes are unknown
    // The thread is writing a record in stream 1. The interrupted record is completed afterwards.
    PRODUCER_INTERRUPTING = 16,
};

struct producer_tls {
    struct producer_thread *thread; // never NULL; initially producer_no_thread
    uint32_t busy;
    uint32_t rounds; // rounds of the thread's key destructors
    void *failing;   // innermost throwing operator new in progress; used by wrap_cxx.c
    // Bytes left to allocate until the next stack is recorded. Negative if every stack is recorded,
    // INT64_MAX if no stacks are recorded.
    int64_t stack_left;
    uint64_t random;  // state of the random generator for stack_left; 0 before it is seeded
    uint32_t decided; // enum producer_decided, for an event on the slow path
    // The number that identifies the thread in the units (see producer_regions),
    // PRODUCER_UNNUMBERED, or 0 while the process is known to have one thread. The bits
    // PRODUCER_NOT_ONE are never set.
    uint32_t owner;
    int32_t untimed;  // number of calls to real functions until the next timed call
    uint64_t section; // replaces rseq_cs in a thread without rseq
};
// Whether the stack of an event is recorded.
enum producer_decided { PRODUCER_UNDECIDED = 0, PRODUCER_WITHOUT_STACK, PRODUCER_WITH_STACK };

extern _Thread_local struct producer_tls producer_tls __attribute__((visibility("hidden")));

enum {
    // Value of producer_stream.sequence that requests a reading. spool_readings.sequence never has
    // this value.
    PRODUCER_NO_SEQUENCE = 4,
    PRODUCER_EACH_WORD = 7, // value of `mask` to read the counter at every event
    // Value of `mask` for the maximum distance between readings.
    PRODUCER_MAX_READING_MASK = SPOOL_MAX_UNREAD_WORDS * 8 - 1,
    // Value of `mask` to check only whether there is space.
    PRODUCER_PIECE_MASK = SPOOL_PIECE_BYTES - 1,
};
_Static_assert(((PRODUCER_EACH_WORD | PRODUCER_MAX_READING_MASK) & ~PRODUCER_PIECE_MASK) == 0,
               "each mask finds the end of a piece");
_Static_assert((PRODUCER_NO_SEQUENCE & (SPOOL_READ_ALL | SPOOL_THREADS)) == 0 &&
                   PRODUCER_NO_SEQUENCE % SPOOL_READ_STEP != 0,
               "no sequence has this value");

// Offset, from the thread pointer, of a word that the kernel clears when it switches the thread
// out: rseq_cs of struct rseq. Without rseq, the offset of a word that is never cleared.
extern ptrdiff_t producer_section_at __attribute__((visibility("hidden")));

// A critical section for rseq(2) whose code is never executed. The kernel clears rseq_cs when it
// switches out a thread that is not inside the critical section, and does nothing else.
extern const struct rseq_cs producer_section __attribute__((visibility("hidden")));

static inline char *producer_thread_pointer(void)
{
#if defined(__x86_64__)
    char *self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
#else
    return __builtin_thread_pointer();
#endif
}

// Returns the address of the calling thread's word at producer_section_at. The word contains the
// address of producer_section unless the thread was switched out since the last reading of the
// counter.
static inline volatile uint64_t *producer_section_word(void)
{
#ifdef HEAPTAPE_DYNAMIC_TLS
    return &producer_tls.section;
#else
    return (volatile uint64_t *)(void *)(producer_thread_pointer() + producer_section_at);
#endif
}

// Each unit records which thread recorded the last event at an address. A unit is one byte. It
// covers PRODUCER_UNIT_BYTES of address space. Blocks may start at two addresses in that space, the
// multiples of PRODUCER_BLOCK_BYTES. The unit contains the number of a thread that recorded the
// last event at one address or at both. If the last event at the other address may be from another
// thread, the bit producer_other_bit is also set. A unit of 0 means that the thread is unknown. The
// units of a region are mapped together, at the first event in the region that sets a unit.
//
// If the same thread recorded the last event at the address, its stream orders the two events, and
// the new event needs no reading of the counter. Otherwise the thread first reads the unit and then
// the counter, so that the new event has a later stamp than the other thread's event
// (docs/design/convert.md). Relaxed accesses to a unit suffice, because the program or the
// allocator synchronizes the two threads between their events.
enum {
    PRODUCER_BLOCK_BYTES = 16,
    PRODUCER_UNIT_SHIFT = 5,
    PRODUCER_UNIT_BYTES = 1 << PRODUCER_UNIT_SHIFT,
    PRODUCER_REGION_SHIFT = 22,
    PRODUCER_REGION_UNITS = 1 << (PRODUCER_REGION_SHIFT - PRODUCER_UNIT_SHIFT),
    PRODUCER_REGIONS_SHIFT = 10,
    PRODUCER_REGIONS = 1 << PRODUCER_REGIONS_SHIFT,
    PRODUCER_NUMBERED = 63, // number of threads that have numbers
    // Bits of a unit. PRODUCER_NOT_SECOND: the unit does not apply to its second address.
    // PRODUCER_NOT_FIRST: the unit does not apply to its first address. PRODUCER_NOT_ONE: a mask of
    // both bits.
    PRODUCER_NOT_SECOND = 16,
    PRODUCER_NOT_FIRST = 32,
    PRODUCER_NOT_ONE = PRODUCER_NOT_FIRST | PRODUCER_NOT_SECOND,
    // A block of this size or more does not use a unit that is 0. Each page of units covers 128
    // KiB, so a page that is allocated for such blocks would be a large part of their memory.
    PRODUCER_BIG_BYTES = 1 << 14,
    // Value of producer_tls.owner in a thread without a number. No unit has this value.
    PRODUCER_UNNUMBERED = 256,
};
_Static_assert(PRODUCER_UNIT_BYTES == 2 * PRODUCER_BLOCK_BYTES &&
                   (int)PRODUCER_NOT_SECOND == (int)PRODUCER_BLOCK_BYTES &&
                   (int)PRODUCER_NOT_FIRST == 2 * PRODUCER_BLOCK_BYTES,
               "producer_other_bit returns one of the bits");

// Units of a region. If another region occupies its entry in the table, a region has no units.
struct producer_region {
    _Atomic uint64_t number;          // 1 + (address >> PRODUCER_REGION_SHIFT), or 0
    _Atomic(_Atomic uint8_t *) units; // where the unit of address 0 would be; set before `number`
};
extern struct producer_region producer_regions[PRODUCER_REGIONS]
    __attribute__((visibility("hidden")));

// Returns the entry of producer_regions for the address's region.
static inline struct producer_region *producer_region_at(uint64_t address)
{
    uint64_t number = address >> PRODUCER_REGION_SHIFT;
    return &producer_regions[(number ^ number >> PRODUCER_REGIONS_SHIFT) & (PRODUCER_REGIONS - 1)];
}

// Returns the unit of the address, or NULL if the region has no units.
static inline _Atomic uint8_t *producer_unit_at(uint64_t address)
{
    struct producer_region *r = producer_region_at(address);
    if (producer_unlikely(atomic_load_explicit(&r->number, memory_order_acquire) !=
                          (address >> PRODUCER_REGION_SHIFT) + 1))
        return NULL;
    return atomic_load_explicit(&r->units, memory_order_relaxed) + (address >> PRODUCER_UNIT_SHIFT);
}

// Returns the bit of the address's unit that is set if the unit does not apply to its other
// address.
static inline uint64_t producer_other_bit(uint64_t address)
{
    return PRODUCER_NOT_SECOND + (address & PRODUCER_BLOCK_BYTES);
}

// Returns 0 if the address's unit shows that the thread `owner` recorded the last event at the
// address. Otherwise, or if the address is not a multiple of PRODUCER_BLOCK_BYTES, returns a
// nonzero value.
static inline __attribute__((always_inline)) uint64_t producer_is_foreign(uint64_t address,
                                                                          uint32_t owner)
{
    const _Atomic uint8_t *unit = producer_unit_at(address);
    if (producer_unlikely(!unit))
        return 1;
    return ((atomic_load_explicit(unit, memory_order_relaxed) ^ owner) &
            ~producer_other_bit(address)) |
           (address & (PRODUCER_BLOCK_BYTES - 1));
}

static inline void producer_compiler_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

// Reads the counter for the stream's next event, and decides when to read it next.
uint64_t producer_read_counter(struct producer_stream *stream)
    __attribute__((visibility("hidden")));

// Reads the counter for an event at the address, and makes the thread the owner of the address.
// `size` is as in producer_ticks. Preserves errno.
uint64_t producer_read_for(struct producer_stream *stream, uint64_t address, uint64_t size)
    __attribute__((visibility("hidden")));

// Returns a nonzero value if the thread was switched out, or a reading was requested, since the
// last reading of the counter. stream->readings must not be NULL.
static inline __attribute__((always_inline)) uint64_t
producer_is_disturbed(const struct producer_stream *stream)
{
    uint64_t switched = *producer_section_word() ^ (uint64_t)(uintptr_t)&producer_section;
    uint32_t asked =
        atomic_load_explicit(&stream->readings->sequence, memory_order_relaxed) ^ stream->sequence;
    return switched | asked;
}

// For the fast path: returns the ticks of the stream's next event, which is at `address`. If the
// ticks are valid, sets *due to 0. Otherwise, call producer_ticks instead.
static inline __attribute__((always_inline)) uint64_t
producer_last_ticks(const struct producer_stream *stream, uint64_t address, uint64_t *due)
{
    uint32_t owner = producer_tls.owner;
    *due = owner ? producer_is_foreign(address, owner) : 0;
    if (producer_unlikely(!stream->readings))
        return clock_counter();
    *due |= producer_is_disturbed(stream);
    return stream->ticks;
}

// Value of `size` below for an event that frees a block.
#define PRODUCER_FREES UINT64_MAX

// Returns the ticks of the stream's next event, and reads the counter if necessary. `size` is the
// number of bytes that the event allocates at the address, or PRODUCER_FREES.
uint64_t producer_ticks(struct producer_stream *stream, uint64_t address, uint64_t size)
    __attribute__((visibility("hidden")));

// Like producer_ticks, for a record of two words, the first of which is a note. Also reads the
// counter if a reading is due at the position of the second word.
uint64_t producer_noted_ticks(struct producer_stream *stream, uint64_t address, uint64_t size)
    __attribute__((visibility("hidden")));

// Returns true if `pos` is NULL or at the end of a piece. The alignment of `pos` shows the end, so
// the fast path needs no end pointer.
static inline bool producer_no_room(const uint64_t *pos)
{
    return ((uintptr_t)pos & PRODUCER_PIECE_MASK) == 0;
}

// Returns true if the piece has space for `words` words, which can then be published all at once.
static inline bool producer_has_room(const uint64_t *pos, unsigned words)
{
    uintptr_t used = (uintptr_t)pos & PRODUCER_PIECE_MASK;
    return used && used + words * sizeof *pos <= SPOOL_PIECE_BYTES;
}

// Makes the words before `end` visible to the recorder. Pairs with the acquire in spool_published.
static inline void producer_publish(struct producer_stream *stream, uint64_t *end)
{
    atomic_store_explicit(&stream->chunk->published, (uint32_t)(uintptr_t)end,
                          memory_order_release);
    stream->pos = end;
}

// Starts a record and returns the stream to write to. If the thread is busy, `obstacles` is not 0,
// or `pos & mask` is 0, changes nothing and returns NULL. The mask is stream->mask if `fast` is
// true, else PRODUCER_PIECE_MASK. Determine the ticks only after this call. Otherwise a signal
// handler could record an event between a stamp and its record, and the stamps of the stream would
// not be monotonic.
static inline __attribute__((always_inline)) struct producer_stream *
producer_begin(uint32_t obstacles, bool fast)
{
    // A signal handler that runs before `busy` is set restores all state that it changes.
    if (producer_unlikely(producer_tls.busy | obstacles))
        return NULL;
    producer_tls.busy = PRODUCER_WRITING;
    producer_compiler_fence();
    struct producer_stream *stream = &producer_tls.thread->streams[0];
    uint32_t mask = fast ? stream->mask : PRODUCER_PIECE_MASK;
    // Check this before reading the counter, because a process that is not recorded may have
    // disabled the counter.
    if (producer_unlikely(!((uintptr_t)stream->pos & mask))) {
        producer_tls.busy = 0;
        return NULL;
    }
    return stream;
}

// Writes the word that completes the record. If the epoch has changed, or `odd` is not 0, writes
// nothing and returns false. The caller sets `odd` if the event does not fit in the short form or
// must read the counter.
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

// Writes a one-word record of a SIZED kind. Returns false if the caller must use producer_record,
// for example for big blocks.
static inline __attribute__((always_inline)) bool producer_put_sized(unsigned kind, uint64_t size,
                                                                     uint64_t address)
{
    struct producer_stream *stream = producer_begin(0, true);
    if (!stream)
        return false;
    uint64_t due, ticks = producer_last_ticks(stream, address, &due);
    uint64_t rel = codec_relative(address, stream->state.base);
    return producer_end(stream, ticks, due | size >> HT_BIG_SIZE_BITS | rel >> CODEC_REL_BITS,
                        codec_sized(kind, ticks >> CODEC_STAMP_SHIFT, size, rel));
}

// Like producer_put_sized, but for a call that allocates a block. Also returns false if the stack
// may have to be recorded.
static inline __attribute__((always_inline)) bool
producer_put_allocated(unsigned kind, uint64_t size, uint64_t address)
{
    producer_tls.stack_left = (int64_t)((uint64_t)producer_tls.stack_left - size);
    return !producer_unlikely(producer_tls.stack_left < 0) &&
           producer_put_sized(kind, size, address);
}

// Like producer_put_sized, but also moves the base to the block. If HT_CALLOC has a count other
// than 1, or `allocator` is above 0, also adds a note. Returns false if the caller must use
// producer_record; in that case nothing has changed.
bool producer_put_rebased(unsigned kind, uint64_t count, uint64_t size, uint64_t address,
                          unsigned allocator) __attribute__((visibility("hidden")));

// Like producer_put_allocated, but adds the note `allocator`. Returns false if the caller must use
// producer_record.
bool producer_put_noted(unsigned kind, uint64_t size, uint64_t address, unsigned allocator)
    __attribute__((visibility("hidden")));

// Returns 0 if the size and the count fit in a one-word record.
static inline uint64_t producer_odd_block(uint64_t count, uint64_t size)
{
    return (count - 1) >> HT_BIG_SIZE_BITS | (count * size) >> HT_BIG_SIZE_BITS;
}

// Call after producer_put_allocated has returned false. `caller` is the wrapper's return address,
// and `frame` is the frame address of the calling function.
static inline bool producer_put_retry(unsigned kind, uint64_t size, uint64_t address,
                                      const void *caller, const void *frame)
{
    if (producer_tls.stack_left < 0)
        return producer_put_with_stack(kind, 1, size, address, caller, frame);
    bool done = producer_put_rebased(kind, 1, size, address, 0);
    producer_tls.decided = done ? PRODUCER_UNDECIDED : PRODUCER_WITHOUT_STACK;
    return done;
}

// Completes a one-word record of a PLAIN kind, like producer_end.
static inline __attribute__((always_inline)) bool producer_end_plain(struct producer_stream *stream,
                                                                     uint64_t ticks, uint64_t odd,
                                                                     unsigned kind,
                                                                     uint64_t address)
{
    // If an address is above 2^48 or not a multiple of 8, its offset from base 0 has bits above the
    // field.
    return producer_end(stream, ticks, odd | codec_relative(address, 0) >> CODEC_PTR_BITS,
                        codec_plain(kind, ticks >> CODEC_STAMP_SHIFT, address));
}

// Writes a one-word record of a PLAIN kind. All these kinds free a block.
static inline __attribute__((always_inline)) bool producer_put_plain(unsigned kind,
                                                                     uint64_t address)
{
    // The hint is 0 unless the block may be big or heaptape has attached to the process.
    struct producer_stream *stream = producer_begin(producer_residency_hint(address), true);
    if (!stream)
        return false;
    uint64_t due, ticks = producer_last_ticks(stream, address, &due);
    return producer_end_plain(stream, ticks, due, kind, address);
}

// Call after producer_put_plain has returned false. Writes the record in two cases: only a reading
// of the counter was due, or heaptape has attached to the process and the block was certainly
// allocated after the attach. Returns false if the caller must use producer_record; in that case
// nothing has changed.
bool producer_retry_plain(unsigned kind, uint64_t address) __attribute__((visibility("hidden")));

// Like producer_put_plain and producer_retry_plain, but adds the note `allocator`.
bool producer_put_noted_plain(unsigned kind, uint64_t address, unsigned allocator)
    __attribute__((visibility("hidden")));

// Stamps any event (ev->stamp is ignored) and records it in the shortest form that can represent
// it. `caller` is the wrapper's return address. Inside a real function (producer_enter), `caller`
// distinguishes nested calls by the allocator from calls by a signal handler or new_handler. Never
// fails: does nothing if tracing is off. Preserves errno. May wait for the recorder.
void producer_record(const struct event *ev, const void *caller);

// Sets the offset of struct rseq from the thread pointer. Call before the first event. Without this
// call, the producer does not detect thread switches.
void producer_set_rseq(ptrdiff_t offset);

// Counts a call to a real function. If the result is true, call producer_call_choose, which decides
// whether to time the call and selects the next candidate. Pass the ticks of a timed call to
// producer_call_add.
static inline bool producer_call_is_due(void)
{
    return producer_unlikely(--producer_tls.untimed < 0);
}
bool producer_call_choose(void);
void producer_call_add(uint64_t ticks);

// If the call is timed, returns the ticks at its start, else 0.
static inline uint64_t producer_call_begin(void)
{
    return producer_call_is_due() && producer_call_choose() ? clock_counter() : 0;
}

static inline void producer_call_end(uint64_t begin)
{
    if (producer_unlikely(begin))
        producer_call_add(clock_counter() - begin);
}

// producer_enter and producer_leave bracket a call to a real function that may itself call wrapped
// functions.
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

// Objects whose calls are not events while PRODUCER_IN_ALLOCATOR or PRODUCER_IN_OPERATOR is set.
enum producer_object {
    PRODUCER_OBJECT_ALLOCATOR, // defines the real malloc
    PRODUCER_OBJECT_OPERATOR,  // defines the real operator new
    PRODUCER_OBJECT_RUNTIME,   // the C++ runtime, whose operators call each other
    // This library. If a real function makes a tail call, the call seems to come from this library.
    PRODUCER_OBJECT_OWN,
    PRODUCER_OBJECTS
};
void producer_set_object(enum producer_object object, uintptr_t start, uintptr_t end);

// Returns true if the address lies in the object that defines the real malloc. Returns false before
// next_resolve.
bool producer_is_allocator(const void *address);

// Returns true if the program's mappings are recorded. Joins the session first if the process has
// not tried to join yet.
bool producer_wants_maps(void);

// Function that returns the usable size of a block, or 0 if unknown. `kind` is the kind of event
// that allocates or frees the block. Set before the first event. If it is NULL, the producer
// records no usable sizes.
extern size_t (*producer_usable)(unsigned kind, void *block) __attribute__((visibility("hidden")));

// Like producer_usable, for calls recorded under PRODUCER_NAMED.
extern size_t (*producer_named_usable)(void *block) __attribute__((visibility("hidden")));

// Sets the allocator's path in the spool's header. The executable's path is "", as in the loader's
// list.
void producer_set_allocator(const char *path);

// Call at exit: closes the streams of ended threads and measures the live blocks. Does nothing if
// system calls are filtered.
void producer_finish(void);

// Reads the process's peak RSS and CPU time again, except in a sandbox. Call after the destructors
// of all libraries.
void producer_finish_last(void);

// Like producer_finish, for an exit that skips destructors. Does nothing if a sandbox might forbid
// the system calls.
void producer_exit(void);

// producer_control executes the verb on the recording of this process, and returns errors like
// control_execute. producer_control_state returns the enum spool_recording of this process. Both
// return -ENOENT if the process is not recorded.
int producer_control(enum control_verb verb);
int producer_control_state(void);

// Sets the environment to use until the C library has set environ.
void producer_set_environment(char **environment);

// Joins the session named in the environment, unless this process image has already tried. The
// first event does the same.
void producer_start(void);

// Call once before main, after the C library has set environ. If this process started its recorder
// itself (with LD_PRELOAD alone), makes the programs that the process executes join the session.
void producer_alone_share(void);

// Call at exit. If this process started the recorder itself, waits until that recorder has ended.
// Does not wait if the recorder continues for other processes.
void producer_alone_finish(void);

// Call before producer_attach. Turns recording off until then, so that events do not trigger a
// search for a session. Returns 0 or a positive errno.
int producer_attach_prepare(void);

// Call after producer_detach with the PID of the process that ended the recording.
void producer_set_ended_by(uint32_t pid);

// Like producer_start, for a running process and the session in directory `dir`. Returns 0 or a
// positive errno. From then on, if a block that was allocated earlier is freed, the free is
// recorded with the block's usable size, if known.
int producer_attach(const char *dir);

// Ends the recording of this process: calls that begin afterwards are not recorded. The other
// threads keep running and may use the memory of the recording until heaptape_clear. Returns false
// if there is neither a recording nor memory of an ended recording.
bool producer_detach(void);

enum producer_plan {
    PRODUCER_NO_PLAN, // no function can be redirected, or the process is not recorded
    PRODUCER_HAS_PLAN,
    PRODUCER_PLAN_IS_LATE,
};

// Reads the plan of the object in the file `fd`. If the plan does not exist, asks the recorder to
// make it and waits for at most 100 ms. Call after producer_start.
enum producer_plan producer_read_plan(int fd, struct entries_plan *to);

// Returns the functions of --wrap, or NULL if the option is not used. Call after producer_start.
const struct spool_wrap *producer_wrap(void);

// Sets the path of the object whose malloc the program calls instead of this library's malloc. Pass
// "" if there is no such object.
void producer_set_bypass(const char *path);

// Adds the path of an object whose malloc calls bypass the library, unless the path is already
// listed.
void producer_add_deepbound(const char *path);

// Returns the spool's header if the malloc calls of some objects bypass this library and the
// process may create a child that queries their malloc. Otherwise returns NULL, for example in a
// sandbox or a vfork child.
struct spool_header *producer_malloc_query_header(void);

// Returns true if the loader's lock may be held by a thread that no longer exists, because a
// multithreaded process forked this one. Also returns true if the process is not recorded.
bool producer_loader_may_be_locked(void);

// Returns true if the process is recorded and may open files and write to its own code. Returns
// false in a sandbox, and in an attached process with a seccomp filter.
bool producer_may_open_files(void);

// Call if another C library may create threads. When such a thread ends, the destructors of this
// library's keys do not run.
void producer_watch_threads(void);

// Sets the path of libheaptape.so (copied), and the path of the heaptape executable relative to the
// directory of libheaptape.so (borrowed).
void producer_set_library(const char *path, const char *heaptape);

// Call in the parent right before a fork. The child inherits the blocks that are live at this
// point, and the current state of the recording.
void producer_before_fork(void);

// Call in a fork child before any of the program's code runs. Records the child's identity.
// Otherwise, if this child made a vfork, the vfork child might record the first event in the shared
// memory and be mistaken for this child.
void producer_after_fork(void);

// Call before the program filters its system calls. Allocates all memory that the recording may
// need, so that no system calls are needed from then on. `now` is true if the wrapped call itself
// installs the filter; fork children then cannot start a recording. Returns the changes made, for
// producer_sandbox_refused.
unsigned producer_before_sandbox(bool now);

// Call if the kernel rejected the filter. Undoes the changes that producer_before_sandbox returned.
void producer_sandbox_refused(unsigned changes);

// producer_disable stops recording the calling thread, or the whole process if `process` is true.
// Call when the thread or process is about to lose the ability to record. producer_enable resumes
// recording the thread.
void producer_disable(bool process);
void producer_enable(void);

// For the pthread_create wrapper: allocates the new thread's state and records THREAD_CREATE.
// Returns NULL if tracing is off or too many threads exist. Pass the state to producer_thread_begin
// in the new thread, or to producer_thread_cancel if pthread_create failed.
struct producer_thread *producer_thread_create(void *(*start)(void *), void *arg);
void producer_thread_begin(struct producer_thread *t);
void producer_thread_cancel(struct producer_thread *t);
