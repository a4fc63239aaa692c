// Writes a trace from a description on standard input, so that tests know every byte of the
// expected output:
//   make_trace FILE
//   process PID ARGV...    starts a process; the following lines belong to it
//   THREAD STAMP KIND [KEY=N...]
//                          a record; KEY is ptr, size, count, align, result, value or error, the
//                          name of a note, or text=WORD with ^ for spaces
//   allocator PATH         allocator of the following processes
//   sample STAMP RSS       a sample of the process's memory
//   pages STAMP [KEY=N...] a map of pages of 4096 bytes; KEY is pss, swap, huge, minor, major, cpu,
//                          cgroup or limit, or the resident bytes in mappings of one kind: files,
//                          stack, shared, recording, other
//   mapping ADDRESS PAGES KIND [FIRST+N...]
//                          a mapping of the last map; KIND is heap, anonymous or library. N pages
//                          are resident from page FIRST of the mapping on
//   lost THREAD WORDS      WORDS words of the thread's stream are missing here
//   off WORD               recording turned itself off in the process; WORD is the reason
//   name ADDRESS BYTES WORD
//                          name of the process's code at the address
//   balance NAME=N...      data that is missing from the recording, as in TRACE_BALANCE
//   round                  ends a batch; its watermark is the highest stamp so far
//   exit                   the process ends before the next process starts
//   end [HZ]               the processes and the recording end normally; HZ is the measured clock
//                          rate. Without this line, the trace is truncated
// Stamps are nanoseconds.
#include "trace/codec.h"
#include "trace/names.h"
#include "trace/pages.h"
#include "trace/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 32, WORDS = 1 << 16, PROCESSES = 8, RECORD_WORDS = 1024 };

struct stream {
    uint32_t process, thread;
    uint64_t epoch, first_word, fed_epoch;
    uint64_t words[WORDS];
    size_t n;
};

static struct stream *streams[PROCESSES * THREADS];
static struct trace_process processes[PROCESSES];
static uint32_t n_processes;
static uint64_t latest;
static char *allocator;
static struct trace_pages pages; // the last map of pages; page_bytes is not 0 if the map was not
                                 // written yet
static struct trace_unrecorded unrecorded;
static bool has_balance;
static struct trace_writer writer;
static struct err e;

static void must(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "make_trace: %s\n", e.text);
    exit(1);
}

static void begin_process(char *words)
{
    struct trace_process *p = &processes[n_processes];
    char *pid = strtok(words, " \n"), *word, argv[1024];
    *p = (struct trace_process){
        .number = n_processes++, .pid = (uint32_t)atoi(pid), .ppid = 1, .exe = strdup("/bin/x")};
    p->allocator = allocator ? strdup(allocator) : NULL;
    while ((word = strtok(NULL, " \n"))) {
        memcpy(argv + p->argv_bytes, word, strlen(word) + 1);
        p->argv_bytes += (uint32_t)strlen(word) + 1;
    }
    p->argv = malloc(sizeof argv);
    memcpy(p->argv, argv, p->argv_bytes);
    must(trace_write_process(&writer, p, &e));
}

// Replaces ^ by spaces.
static char *unquote(char *word)
{
    for (char *c = word; (c = strchr(c, '^'));)
        *c = ' ';
    return word;
}

static void add_name(char *words)
{
    struct names names = {0};
    uint64_t at = strtoull(strtok(words, " \n"), NULL, 0);
    uint64_t bytes = strtoull(strtok(NULL, " \n"), NULL, 0);
    const char *name = strtok(NULL, " \n");
    must(names_begin(&names, 0, at, bytes));
    must(names_function(&names, name, strlen(name), "", 0, 0));
    must(trace_write_names(&writer, n_processes - 1, &names, &e));
    names_release(&names);
}

static void set_balance(char *words)
{
    has_balance = true;
    for (char *word = strtok(words, " \n"); word; word = strtok(NULL, " \n")) {
        char *value = strchr(word, '=');
        *value++ = 0;
#define HT_X(name, tag, meaning)                                                                   \
    if (strcmp(word, #name) == 0)                                                                  \
        unrecorded.balance.name = strtoull(value, NULL, 0);
        TRACE_BALANCE(HT_X)
#undef HT_X
    }
}

static struct stream *stream_of(unsigned thread)
{
    struct stream **s = &streams[(n_processes - 1) * THREADS + thread];
    if (!*s)
        *s = calloc(1, sizeof **s);
    (*s)->process = n_processes - 1;
    (*s)->thread = thread;
    return *s;
}

static void set(struct event *ev, const char *key, const char *value)
{
    static const char *const names[] = {"ptr", "size", "count", "align", "result", "value"};
    uint64_t *const fields[] = {&ev->ptr,   &ev->size,   &ev->count,
                                &ev->align, &ev->result, &ev->value};
    for (size_t i = 0; i < 6; i++) {
        if (strcmp(key, names[i]) == 0)
            *fields[i] = strtoull(value, NULL, 0);
    }
    for (size_t i = 0; i < HT_NOTES; i++) {
        if (event_note_names[i] && strcmp(key, event_note_names[i]) == 0)
            ev->notes[i] = strtoull(value, NULL, 0);
    }
    if (strcmp(key, "error") == 0)
        ev->error = (uint8_t)atoi(value);
    if (strcmp(key, "text") == 0) {
        static char text[1024];
        ev->text = unquote(strcpy(text, value));
        ev->text_bytes = (uint32_t)strlen(text);
    }
}

static void write_batch(void)
{
    must(trace_batch_begin(&writer, &e));
    for (size_t i = 0; i < PROCESSES * THREADS; i++) {
        struct stream *s = streams[i];
        if (!s || !s->n)
            continue;
        struct trace_segment segment = {.process = s->process,
                                        .thread = s->thread,
                                        .tid = processes[s->process].pid + s->thread,
                                        .first_word = s->first_word,
                                        .epoch0 = s->fed_epoch,
                                        .n_words = (uint32_t)s->n,
                                        .words = s->words};
        must(trace_batch_add(&writer, &segment, &e));
        s->first_word += s->n;
        s->fed_epoch = s->epoch;
        s->n = 0;
    }
    must(trace_batch_end(&writer, latest, &e));
}

static void add_record(char *line)
{
    char *words = line;
    struct stream *s = stream_of((unsigned)atoi(strtok(words, " \n")));
    struct event ev = {.stamp = strtoull(strtok(NULL, " \n"), NULL, 0)};
    int kind = event_kind_by_name(strtok(NULL, " \n"));
    if (kind < 0)
        must(err_set(&e, -1, "unknown kind"));
    ev.kind = (uint8_t)kind;
    for (char *word; (word = strtok(NULL, " \n"));) {
        char *value = strchr(word, '=');
        *value++ = 0;
        set(&ev, word, value);
    }
    if (s->n + RECORD_WORDS > WORDS)
        write_batch();
    latest = ev.stamp > latest ? ev.stamp : latest;
    if (codec_epoch(ev.stamp) != s->epoch) {
        s->epoch = codec_epoch(ev.stamp);
        s->words[s->n++] = codec_epoch_record(s->epoch);
    }
    for (unsigned i = 0; i < HT_NOTES; i++) {
        if (ev.notes[i])
            s->words[s->n++] = codec_note(i, ev.notes[i]);
    }
    s->n += codec_put_long(s->words + s->n, &ev);
}

static void end_process(struct trace_process *p)
{
    if (p->end_stamp)
        return;
    p->end_stamp = latest;
    must(trace_write_process_end(&writer, p, &e));
}

static void end_all(uint64_t clock_hz)
{
    write_batch();
    for (uint32_t i = 0; i < n_processes; i++)
        end_process(&processes[i]);
    if (has_balance)
        must(trace_write_unrecorded(&writer, &unrecorded, &e));
    must(trace_write_end(&writer, latest, clock_hz, &e));
}

static void write_pages(void)
{
    struct buf b = {0};
    if (!pages.page_bytes)
        return;
    for (unsigned kind = 0; kind < TRACE_MEMORY_KINDS; kind++)
        pages.rss_bytes += pages.rss_of[kind];
    must(trace_pages_put(&b, &pages));
    must(trace_write_pages(&writer, b.data, b.size, &e));
    trace_pages_release(&pages);
    buf_release(&b);
}

static void begin_pages(char *words)
{
    static const char *const names[] = {"pss",    "swap",      "huge",  "minor", "major",
                                        "cpu",    "cgroup",    "limit", "files", "stack",
                                        "shared", "recording", "other", "more"};
    uint64_t *const fields[] = {&pages.pss_bytes,
                                &pages.swap_bytes,
                                &pages.huge_bytes,
                                &pages.minor_faults,
                                &pages.major_faults,
                                &pages.cpu_ns,
                                &pages.cgroup_bytes,
                                &pages.cgroup_limit_bytes,
                                &pages.rss_of[TRACE_MEMORY_FILE],
                                &pages.rss_of[TRACE_MEMORY_STACK],
                                &pages.rss_of[TRACE_MEMORY_SHARED],
                                &pages.rss_of[TRACE_MEMORY_RECORDING],
                                &pages.rss_of[TRACE_MEMORY_OTHER],
                                &pages.rss_bytes};
    uint64_t stamp = strtoull(strtok(words, " \n"), NULL, 0);
    write_batch();
    pages = (struct trace_pages){.process = n_processes - 1,
                                 .stamp = stamp,
                                 .end_stamp = stamp,
                                 .page_bytes = 4096,
                                 .cgroup_bytes = TRACE_PAGES_UNKNOWN,
                                 .cgroup_limit_bytes = TRACE_PAGES_UNKNOWN};
    for (char *word; (word = strtok(NULL, " \n"));) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (strncmp(word, names[i], strlen(names[i])) == 0)
                *fields[i] = strtoull(strchr(word, '=') + 1, NULL, 0);
        }
    }
}

static void add_mapping(char *words)
{
    struct trace_mapping m = {.start = strtoull(strtok(words, " \n"), NULL, 0)};
    m.bytes = strtoull(strtok(NULL, " \n"), NULL, 0) * 4096;
    const char *kind = strtok(NULL, " \n");
    m.kind = strcmp(kind, "heap") == 0 ? TRACE_MEMORY_HEAP : TRACE_MEMORY_ANONYMOUS;
    m.after_file = strcmp(kind, "library") == 0;
    must(trace_pages_add(&pages, &m));
    for (char *word; (word = strtok(NULL, " \n"));) {
        uint64_t n = strtoull(strchr(word, '+') + 1, NULL, 0);
        must(trace_pages_add_run(&pages, m.start / 4096 + strtoull(word, NULL, 0), n));
        pages.mappings[pages.n_mappings - 1].rss_bytes += n * 4096;
        pages.rss_bytes += n * 4096;
    }
}

static void add_sample(char *words)
{
    struct trace_sample s = {.process = n_processes - 1,
                             .stamp = strtoull(strtok(words, " \n"), NULL, 0)};
    s.rss_bytes = strtoull(strtok(NULL, " \n"), NULL, 0);
    write_batch();
    must(trace_write_samples(&writer, &s, 1, &e));
}

static void do_line(char *line)
{
    if (strncmp(line, "mapping ", 8) == 0) {
        add_mapping(line + 8);
        return;
    }
    write_pages();
    if (strncmp(line, "pages ", 6) == 0)
        begin_pages(line + 6);
    else if (strncmp(line, "sample ", 7) == 0)
        add_sample(line + 7);
    else if (strncmp(line, "off ", 4) == 0)
        processes[n_processes - 1].off_reason = strdup(unquote(strtok(line + 4, " \n")));
    else if (strncmp(line, "name ", 5) == 0)
        add_name(line + 5);
    else if (strncmp(line, "balance ", 8) == 0)
        set_balance(line + 8);
    else if (strncmp(line, "allocator ", 10) == 0) {
        line[strcspn(line, "\n")] = 0;
        free(allocator);
        allocator = strdup(line + 10);
    } else if (strncmp(line, "process ", 8) == 0)
        begin_process(line + 8);
    else if (strncmp(line, "exit", 4) == 0) {
        write_batch();
        end_process(&processes[n_processes - 1]);
    } else if (strncmp(line, "round", 5) == 0)
        write_batch();
    else if (strncmp(line, "end", 3) == 0)
        end_all(strtoull(line + 3, NULL, 0));
    else if (strncmp(line, "lost ", 5) == 0) {
        struct stream *s = stream_of((unsigned)atoi(strtok(line + 5, " \n")));
        write_batch();
        s->first_word += (uint64_t)atoi(strtok(NULL, " \n"));
    } else if (line[0] != '\n' && line[0] != '#')
        add_record(line);
}

int main(int argc, char **argv)
{
    struct output out;
    char line[1024], copy[1024];
    struct trace_session session = {.clock_hz = 1000000000};
    if (argc != 2)
        return 2;
    must(output_open(&out, argv[1], OUTPUT_FORCE, &e));
    trace_writer_init(&writer, &out, FRAME_CODEC_ZSTD, 1);
    must(trace_write_session(&writer, &session, &e));
    while (fgets(line, sizeof line, stdin)) {
        memcpy(copy, line, sizeof line);
        do_line(copy);
    }
    write_pages();
    free(allocator);
    trace_writer_release(&writer);
    must(output_close(&out, true, &e));
    for (size_t i = 0; i < PROCESSES * THREADS; i++)
        free(streams[i]);
    for (uint32_t i = 0; i < n_processes; i++)
        trace_process_release(&processes[i]);
    return 0;
}
