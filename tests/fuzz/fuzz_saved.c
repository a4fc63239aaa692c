// Fuzzes saved plans. The first byte selects the settings. The rest is a sequence of patches. A
// patch consists of its target (1 byte), the number of its bytes, the position (2 bytes), and the
// bytes. Checksums are correct unless a patch changes them. Plans that load are played.
#include "replay/plan/saved.h"

#include "../unit/trusted_ops.h"

#include "play.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

enum patched { PATCH_WORDS, PATCH_TAIL, PATCH_TRAILER, PATCH_CUT, PATCHES };

// Words of struct saved_trailer in replay/plan/saved.c.
enum { MAGIC, KEY, KEY_2, WORDS_AT, WORDS_HASH, TAIL_AT, TAIL_HASH, HASH, TRAILER_WORDS };

static const struct plan_key key = {{1, 2}};

static void need(bool ok)
{
    if (!ok)
        abort();
}

static struct plan_settings settings_of(uint8_t how, struct output *file)
{
    const struct plan_settings s = {.memory_bytes = 1 << 20,
                                    .streamed = how & 1,
                                    .one_thread = how & 2,
                                    .file = how & 1 ? file : NULL,
                                    .stats_every = how & 4 ? 3 : 0,
                                    .trim_every = how & 8 ? 5 : 0};
    return s;
}

// The bytes of a plan in the format of plan_save.
struct saved {
    uint8_t *bytes;
    size_t n, words_at, tail_at;
};

static uint64_t *trailer_of(const struct saved *s)
{
    return (uint64_t *)(void *)(s->bytes + s->n) - TRAILER_WORDS;
}

static struct saved save(uint8_t how)
{
    struct plan *p;
    struct output file;
    struct err e = {0};
    need(output_open_unnamed(&file, &e) == 0);
    const struct plan_settings settings = settings_of(how, &file);
    need(plan_new(&p, "fuzz", &settings, &e) == 0);
    need(trusted_ops_add(p, &e) == 0);
    need(plan_finish(p, &e) == 0 && plan_save(p, &key, &file, &e) == 0);
    plan_free(p);
    struct saved s = {.bytes = malloc(file.offset), .n = file.offset};
    need(s.bytes && pread(file.fd, s.bytes, s.n, 0) == (ssize_t)s.n);
    output_close(&file, false, &e);
    s.words_at = trailer_of(&s)[WORDS_AT];
    s.tail_at = trailer_of(&s)[TAIL_AT];
    return s;
}

// Returns a copy of a saved plan. The bits of `how` select the settings of the plan. The first call
// for each selection saves the plan; later calls copy the saved bytes.
static struct saved copy_saved(uint8_t how)
{
    static struct saved all[16];
    struct saved *of = &all[how % 16], s;
    if (!of->bytes)
        *of = save(how);
    s = *of;
    s.bytes = malloc(s.n);
    need(s.bytes);
    memcpy(s.bytes, of->bytes, s.n);
    return s;
}

static void put_hashes(struct saved *s)
{
    uint64_t *t = trailer_of(s);
    t[WORDS_HASH] = XXH3_64bits(s->bytes + s->words_at, s->tail_at - s->words_at);
    t[TAIL_HASH] = XXH3_64bits(s->bytes + s->tail_at, s->n - TRAILER_WORDS * 8 - s->tail_at);
    t[HASH] = XXH3_64bits(t, HASH * 8);
}

// Returns false if no more patches are possible.
static bool patch(struct saved *s, enum patched what, unsigned at, const uint8_t *from, size_t n)
{
    size_t begin = at, end = s->n;
    switch (what) {
    case PATCH_WORDS:
        begin += s->words_at;
        end = s->tail_at;
        break;
    case PATCH_TAIL:
        begin += s->tail_at;
        end -= TRAILER_WORDS * 8;
        break;
    case PATCH_TRAILER:
        begin = s->n - TRAILER_WORDS * 8 + at % (TRAILER_WORDS * 8);
        break;
    case PATCH_CUT:
    case PATCHES:
        s->n -= at < s->n ? at : s->n;
        return false;
    }
    if (begin < end)
        memcpy(s->bytes + begin, from, n < end - begin ? n : end - begin);
    if (what == PATCH_TRAILER)
        trailer_of(s)[HASH] = XXH3_64bits(trailer_of(s), HASH * 8);
    else
        put_hashes(s);
    return true;
}

static void patch_all(struct saved *s, const uint8_t *data, size_t n)
{
    enum { HEAD = 4 };
    bool more = true;
    while (n >= HEAD && more) {
        size_t bytes = data[1] < n - HEAD ? data[1] : n - HEAD;
        more = patch(s, data[0] % PATCHES, data[2] | (unsigned)data[3] << 8, data + HEAD, bytes);
        data += HEAD + bytes;
        n -= HEAD + bytes;
    }
}

static void load(int fd, uint8_t how)
{
    struct plan *p;
    struct err e = {0};
    struct plan_settings s = settings_of(how, NULL);
    if (plan_load(&p, "fuzz", &s, &key, fd, &e) < 0) {
        close(fd);
        return;
    }
    if (!s.streamed)
        play_plan(p, false);
    for (uint32_t thread = 0; thread < 3; thread++)
        plan_op_at(p, thread, s.streamed ? (1ull << 40) + 3 : 3);
    plan_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n)
        return 0;
    struct saved s = copy_saved(data[0]);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    patch_all(&s, data + 1, n - 1);
    need(fd >= 0 && write(fd, s.bytes, s.n) == (ssize_t)s.n);
    load(fd, data[0]);
    free(s.bytes);
    return 0;
}
