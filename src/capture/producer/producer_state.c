// State shared by all files of the producer, and stateless helpers.
#include "capture/producer/producer_private.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>

struct producer_inherited producer_inherited;

const struct producer_thread producer_no_thread;

extern char **environ;
static char **early_environment;

_Thread_local struct producer_tls producer_tls = {
    .thread = (struct producer_thread *)&producer_no_thread};

// The kernel requires this word in front of the abort handler of a critical section.
#if defined(__aarch64__)
static const uint32_t signature[] = {0xd428bc00, 0};
#else
static const uint32_t signature[] = {0x53053053, 0};
#endif

const struct rseq_cs producer_section = {.start_ip = (uintptr_t)&signature[0],
                                         .post_commit_offset = 1,
                                         .abort_ip = (uintptr_t)&signature[1]};

ptrdiff_t producer_section_at;

// Offset of struct rseq from the thread pointer, or 0 if unknown.
static ptrdiff_t rseq_at;

void producer_set_rseq(ptrdiff_t offset)
{
    rseq_at = offset;
}

// Returns true if the kernel updates the thread's struct rseq.
static bool has_rseq(const char *thread_pointer)
{
    int32_t cpu;
    memcpy(&cpu, thread_pointer + rseq_at + offsetof(struct rseq, cpu_id), sizeof cpu);
    return rseq_at && cpu >= 0;
}

void producer_begin_sparse(struct producer_process *p, struct producer_stream *stream, bool first)
{
    const char *thread_pointer = producer_thread_pointer();
    // libc registers rseq in all threads or in none.
    if (first || !producer_section_at)
        producer_section_at = has_rseq(thread_pointer)
                                  ? rseq_at + (ptrdiff_t)offsetof(struct rseq, rseq_cs)
                                  : (const char *)&producer_tls.section - thread_pointer;
    producer_request_reading(stream);
    stream->readings = &p->header->readings;
    stream->mask = PRODUCER_EACH_WORD;
}

uint64_t producer_signals_block(void)
{
    uint64_t all = UINT64_MAX, mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof mask);
    return mask;
}

void producer_signals_restore(uint64_t mask)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

uint32_t producer_thread_id(void)
{
    clockid_t clock;
    // The kernel's number of a thread's CPU clock contains the complement of the thread's ID.
    if (producer_inherited.filtered && pthread_getcpuclockid(pthread_self(), &clock) == 0)
        return ~(uint32_t)(clock >> 3);
    return (uint32_t)syscall(SYS_gettid);
}

uint32_t producer_process_id(void)
{
    return producer_inherited.filtered ? producer_thread_id() : (uint32_t)syscall(SYS_getpid);
}

// Appends the text, or the part of it that fits before `end`. Returns false if the text was
// truncated.
static bool append_text(char **to, const char *end, const char *text)
{
    while (*text && *to < end)
        *(*to)++ = *text++;
    return !*text;
}

bool producer_format(char *to, size_t room, const char *format, ...)
{
    const char *end = to + room - 1;
    bool fits = true;
    va_list values;
    va_start(values, format);
    for (; *format; format++) {
        char own[16] = "", *at = own + sizeof own - 1;
        bool is_value = *format == '%';
        if (is_value && *++format == 's') {
            fits &= append_text(&to, end, va_arg(values, const char *));
            continue;
        }
        unsigned number = is_value ? va_arg(values, unsigned) : 0;
        do
            *--at = is_value ? (char)('0' + number % 10) : *format;
        while (number /= 10);
        fits &= append_text(&to, end, at);
    }
    va_end(values);
    *to = 0;
    return fits;
}

const char *producer_env_value(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

void producer_set_environment(char **environment)
{
    early_environment = environment;
}

char **producer_environment(void)
{
    return environ ? environ : early_environment;
}
