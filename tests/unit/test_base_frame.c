#include "base/frame.h"

#include "base/bytes.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

enum { N_FRAMES = 5, VERSION = 3 };

static const size_t sizes[N_FRAMES] = {0, 1, 100, 5000, 300};

// Fills `to` with compressible bytes that differ for each frame.
static void fill(uint8_t *to, unsigned frame)
{
    for (size_t i = 0; i < sizes[frame]; i++)
        to[i] = (uint8_t)(i / 64 + frame * 31);
}

// Opens a file in memory that the test can modify.
static int memory_file(void)
{
    int fd = memfd_create("frames", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static struct buf write_frames(enum frame_codec codec)
{
    struct output out = {.fd = memory_file(), .name = "m"};
    struct frame_writer w;
    struct buf file = {0};
    uint8_t raw[5000];
    frame_writer_init(&w, &out, FRAME_MAGIC_TRACE, VERSION, codec, 1);
    for (unsigned i = 0; i < N_FRAMES; i++) {
        fill(raw, i);
        assert_int_equal(frame_write(&w, (uint8_t)(i + 1), raw, sizes[i], NULL), 0);
    }
    frame_writer_release(&w);
    assert_int_equal(buf_resize(&file, out.offset), 0);
    assert_int_equal(pread(out.fd, file.data, file.size, 0), file.size);
    close(out.fd);
    return file;
}

static struct input input_of(const struct buf *file, size_t size)
{
    int fd = memory_file();
    assert_int_equal(write(fd, file->data, size), size);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return (struct input){.fd = fd, .owns_fd = true, .name = "m"};
}

// Reads frames until the end or an error and compares each with the written frame. Returns the
// final return code.
static int read_all(const struct buf *file, size_t size, unsigned *frames, struct err *e)
{
    struct input in = input_of(file, size);
    struct frame_reader r;
    struct frame f;
    uint8_t want[5000];
    int rc;
    *frames = 0;
    frame_reader_init(&r, &in, FRAME_MAGIC_TRACE, VERSION);
    while ((rc = frame_next(&r, &f, e)) == 1) {
        assert_true(*frames < N_FRAMES);
        fill(want, *frames);
        assert_int_equal(f.type, *frames + 1);
        assert_int_equal(f.sequence, *frames);
        assert_int_equal(f.version, VERSION);
        assert_int_equal(f.size, sizes[*frames]);
        assert_memory_equal(f.data, want, f.size);
        (*frames)++;
    }
    frame_reader_release(&r);
    input_close(&in);
    return rc;
}

static void round_trip(enum frame_codec codec)
{
    struct buf file = write_frames(codec);
    struct err e = {0};
    unsigned frames;
    assert_int_equal(read_all(&file, file.size, &frames, &e), 0);
    assert_int_equal(frames, N_FRAMES);
    size_t raw = N_FRAMES * FRAME_HEADER_BYTES + 0 + 1 + 100 + 5000 + 300;
    if (codec == FRAME_CODEC_NONE)
        assert_int_equal(file.size, raw);
    else
        assert_true(file.size < raw / 3);
    buf_release(&file);
}

static void every_codec_round_trips(void **state)
{
    round_trip(FRAME_CODEC_NONE);
    round_trip(FRAME_CODEC_LZ4);
    round_trip(FRAME_CODEC_ZSTD);
    (void)state;
}

static void incompressible_frames_are_stored(void **state)
{
    struct output out = {.fd = memory_file(), .name = "m"};
    struct frame_writer w;
    uint64_t random = 1, raw[500];
    for (size_t i = 0; i < 500; i++)
        raw[i] = unit_random(&random);
    frame_writer_init(&w, &out, FRAME_MAGIC_TRACE, VERSION, FRAME_CODEC_ZSTD, 1);
    assert_int_equal(frame_write(&w, 1, raw, sizeof raw, NULL), 0);
    assert_int_equal(out.offset, FRAME_HEADER_BYTES + sizeof raw);
    frame_writer_release(&w);
    close(out.fd);
    (void)state;
}

enum { PART_BYTES = 300000, PARTS = 3 }; // a part has three blocks of zstd

// Writes the parts as a frame, reads the frame, and returns its size in the file.
static size_t pass_parts(uint8_t parts[PARTS][PART_BYTES], struct frame_hint *hints)
{
    struct output out = {.fd = memory_file(), .name = "m"};
    struct frame_writer w;
    struct frame_reader r;
    struct frame f;
    struct frame_part given[PARTS];
    for (unsigned i = 0; i < PARTS; i++)
        given[i] = (struct frame_part){parts[i], PART_BYTES, &hints[i]};
    frame_writer_init(&w, &out, FRAME_MAGIC_TRACE, VERSION, FRAME_CODEC_ZSTD, 1);
    assert_int_equal(frame_write_parts(&w, 1, given, PARTS, NULL), 0);
    frame_writer_release(&w);
    assert_int_equal(lseek(out.fd, 0, SEEK_SET), 0);
    struct input in = {.fd = out.fd, .owns_fd = true, .name = "m"};
    frame_reader_init(&r, &in, FRAME_MAGIC_TRACE, VERSION);
    assert_int_equal(frame_next(&r, &f, NULL), 1);
    assert_int_equal(f.size, PARTS * PART_BYTES);
    assert_memory_equal(f.data, parts, f.size);
    frame_reader_release(&r);
    input_close(&in);
    return out.offset;
}

// Random bytes are stored, and equal bytes take one byte a block. A part whose bytes were equal and
// then differ in a few places is compressed with matches, because Huffman coding would leave a bit
// for each byte.
static void parts_without_compression(void **state)
{
    static uint8_t parts[PARTS][PART_BYTES];
    struct frame_hint hints[PARTS] = {{.fast = true}};
    uint64_t random = 1;
    (void)state;
    for (size_t i = 0; i < PART_BYTES; i++)
        parts[0][i] = (uint8_t)(unit_random(&random) >> 20);
    memset(parts[2], 77, PART_BYTES);
    assert_in_range(pass_parts(parts, hints), PART_BYTES, PART_BYTES + 200);
    for (size_t i = 0; i < PART_BYTES; i += 1000)
        parts[1][i] = parts[2][i] = 1;
    assert_in_range(pass_parts(parts, hints), PART_BYTES, PART_BYTES + 2 * PART_BYTES / 50);
}

// A part that has been compressed by Huffman coding is compressed in this way once more after its
// bytes have become noise, and then stored uncompressed.
static void methods_follow_the_bytes(void **state)
{
    static uint8_t parts[PARTS][PART_BYTES];
    struct frame_hint hints[PARTS] = {{.fast = true}};
    uint64_t random = 1;
    uint8_t methods[4];
    (void)state;
    for (unsigned frame = 0; frame < 4; frame++) {
        for (size_t i = 0; i < PART_BYTES; i++)
            parts[0][i] = (uint8_t)(unit_random(&random) >> 20 & (frame ? 0xff : 0x1f));
        pass_parts(parts, hints);
        methods[frame] = hints[0].method;
    }
    assert_int_equal(methods[1], methods[0]);
    assert_int_not_equal(methods[2], methods[0]);
    assert_int_equal(methods[3], methods[2]);
}

static void flips_are_found(enum frame_codec codec)
{
    struct buf file = write_frames(codec);
    size_t step = codec == FRAME_CODEC_NONE ? 37 : 1; // samples about 45,000 bit flips
    for (size_t bit = 0; bit < 8 * file.size; bit += step) {
        struct err e = {0};
        unsigned frames;
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int rc = read_all(&file, file.size, &frames, &e);
        if (rc != -EBADMSG && rc != -EPROTO && rc != -ENODATA)
            fail_msg("bit %zu flipped: frame_next gives %d after %u frames", bit, rc, frames);
        assert_non_null(strstr(e.text, "m: "));
        assert_non_null(strstr(e.text, "at byte "));
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buf_release(&file);
}

static void every_bit_flip_is_found(void **state)
{
    flips_are_found(FRAME_CODEC_NONE);
    flips_are_found(FRAME_CODEC_LZ4);
    flips_are_found(FRAME_CODEC_ZSTD);
    (void)state;
}

static void truncation_is_distinguished_from_corruption(void **state)
{
    struct buf file = write_frames(FRAME_CODEC_LZ4);
    size_t ends[N_FRAMES], at = 0;
    for (unsigned i = 0; i < N_FRAMES; i++)
        ends[i] = at += FRAME_HEADER_BYTES + get_u32(file.data + at + 8);
    assert_int_equal(at, file.size);
    for (size_t size = 0; size < file.size; size++) {
        struct err e = {0};
        unsigned frames, whole = 0;
        while (ends[whole] <= size)
            whole++;
        int rc = read_all(&file, size, &frames, &e);
        assert_int_equal(frames, whole);
        assert_int_equal(rc, whole && ends[whole - 1] == size ? 0 : -ENODATA);
    }
    buf_release(&file);
    (void)state;
}

static void resync_finds_the_frames_after_damage(void **state)
{
    struct buf file = write_frames(FRAME_CODEC_LZ4);
    size_t second = FRAME_HEADER_BYTES;
    file.data[second + 20] ^= 1; // header of the second frame
    struct input in = input_of(&file, file.size);
    struct frame_reader r;
    struct frame f;
    uint64_t skipped = 0;
    frame_reader_init(&r, &in, FRAME_MAGIC_TRACE, VERSION);
    assert_int_equal(frame_next(&r, &f, NULL), 1);
    assert_int_equal(frame_next(&r, &f, NULL), -EBADMSG);
    assert_int_equal(frame_resync(&r, &skipped, NULL), 1);
    assert_int_equal(skipped, 1); // payload of a frame whose header was already read
    for (unsigned i = 2; i < N_FRAMES; i++) {
        assert_int_equal(frame_next(&r, &f, NULL), 1);
        assert_int_equal(f.type, i + 1);
    }
    assert_int_equal(frame_next(&r, &f, NULL), 0);
    assert_int_equal(frame_resync(&r, &skipped, NULL), 0);
    frame_reader_release(&r);
    input_close(&in);
    buf_release(&file);
    (void)state;
}

static void resync_crosses_much_garbage(void **state)
{
    struct buf frames = write_frames(FRAME_CODEC_ZSTD), file = {0};
    uint64_t random = 2, skipped = 0;
    enum { GARBAGE = 200001 };
    buf_resize(&file, GARBAGE);
    for (size_t i = 0; i < GARBAGE; i++)
        file.data[i] = (uint8_t)unit_random(&random);
    put_u32(file.data + 70000, FRAME_MAGIC_TRACE); // a magic number without an intact header
    buf_put(&file, frames.data, frames.size);
    struct input in = input_of(&file, file.size);
    struct frame_reader r;
    struct frame f;
    frame_reader_init(&r, &in, FRAME_MAGIC_TRACE, VERSION);
    assert_int_equal(frame_resync(&r, &skipped, NULL), 1);
    assert_int_equal(skipped, GARBAGE);
    for (unsigned i = 0; i < N_FRAMES; i++)
        assert_int_equal(frame_next(&r, &f, NULL), 1);
    assert_int_equal(frame_next(&r, &f, NULL), 0);
    frame_reader_release(&r);
    input_close(&in);
    buf_release(&file);
    buf_release(&frames);
    (void)state;
}

static void assert_refused(struct buf *file, uint32_t magic, uint16_t max_version, const char *why)
{
    struct input in = input_of(file, file->size);
    struct frame_reader r;
    struct frame f;
    struct err e = {0};
    frame_reader_init(&r, &in, magic, max_version);
    assert_int_equal(frame_next(&r, &f, &e), -EPROTO);
    if (!strstr(e.text, why))
        fail_msg("'%s' does not say '%s'", e.text, why);
    frame_reader_release(&r);
    input_close(&in);
}

static void other_files_are_refused_by_name(void **state)
{
    struct buf file = write_frames(FRAME_CODEC_NONE), text = {0};
    assert_refused(&file, FRAME_MAGIC_WORKLOAD, VERSION, "is a trace, expected a workload");
    assert_refused(&file, FRAME_MAGIC_TRACE, VERSION - 1, "version 3 is newer");
    buf_put(&text, "#!/bin/sh\n", 10);
    assert_refused(&text, FRAME_MAGIC_TRACE, VERSION, "is not a heaptape trace");
    assert_int_equal(frame_magic_at(file.data, file.size, FRAME_MAGIC_TRACE), 1);
    assert_int_equal(frame_magic_at(file.data, 3, FRAME_MAGIC_TRACE), 0);
    assert_int_equal(frame_magic_at(file.data, file.size, FRAME_MAGIC_WORKLOAD), 0);
    buf_release(&text);
    buf_release(&file);
    (void)state;
}

// A later version may compress a payload with a codec that this version does not know. The header
// is then intact.
static void an_unknown_codec_is_newer(void **state)
{
    struct buf file = write_frames(FRAME_CODEC_ZSTD);
    struct err e = {0};
    unsigned frames;
    file.data[5] = FRAME_CODEC_ZSTD + 1;
    put_u64(file.data + 32, XXH3_64bits(file.data, 32));
    assert_int_equal(read_all(&file, file.size, &frames, &e), -EPROTO);
    assert_int_equal(frames, 0);
    assert_string_equal(e.text, "m: frame at byte 0: codec 3 of the payload is not known: written "
                                "by a newer heaptape?");
    buf_release(&file);
    (void)state;
}

// Offsets of the second frame, of its payload, and of the third frame in an uncompressed file.
enum {
    SECOND = FRAME_HEADER_BYTES,
    SECOND_PAYLOAD = 2 * FRAME_HEADER_BYTES,
    THIRD = SECOND_PAYLOAD + 1,
};

// Checks the message about the first `size` bytes of a file, or about the whole file if `size` is
// 0. One byte of the file was changed; with `sign`, the checksum of the second header was
// corrected.
static void check_damage(size_t at, uint8_t value, bool sign, size_t size, const char *text)
{
    struct buf file = write_frames(FRAME_CODEC_NONE);
    struct err e = {0};
    unsigned frames;
    file.data[at] = value;
    if (sign)
        put_u64(file.data + SECOND + 32, XXH3_64bits(file.data + SECOND, 32));
    assert_true(read_all(&file, size ? size : file.size, &frames, &e) < 0);
    assert_string_equal(e.text, text);
    buf_release(&file);
}

static void damage_is_named(void **state)
{
    (void)state;
    check_damage(SECOND, 0, false, 0, "m: expected a frame header, at byte 40");
    check_damage(SECOND + 4, 0, false, 0, "m: frame header is corrupt, at byte 40");
    check_damage(SECOND + 5, FRAME_CODEC_LZ4, true, 0, "m: frame does not decompress, at byte 40");
    check_damage(SECOND + 6, VERSION + 1, true, 0,
                 "m: format version 4 is newer than this heaptape reads (3), at byte 40");
    check_damage(SECOND + 8, 2, true, 0, "m: frame header has invalid lengths, at byte 40");
    check_damage(SECOND + 16, 7, true, 0, "m: found frame 7, expected frame 1, at byte 40");
    check_damage(SECOND_PAYLOAD, 1, false, 0, "m: frame checksum does not match, at byte 40");
    check_damage(THIRD + 40, 1, false, THIRD + 10, "m: cut off inside a frame header, at byte 81");
    check_damage(THIRD + 40, 1, false, THIRD + 50,
                 "m: cut off inside a frame of 140 bytes, at byte 81");
}

static void frame_over_the_limit_is_not_written(void **state)
{
    struct output out = {.fd = memory_file(), .name = "m"};
    struct frame_writer w;
    frame_writer_init(&w, &out, FRAME_MAGIC_TRACE, VERSION, FRAME_CODEC_NONE, 0);
    assert_int_equal(frame_write(&w, 1, "", FRAME_MAX_RAW_BYTES + 1, NULL), -E2BIG);
    assert_int_equal(out.offset, 0);
    frame_writer_release(&w);
    close(out.fd);
    (void)state;
}

// The linker option --wrap redirects realloc to __wrap_realloc.
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
static unsigned failing_realloc; // number of the first call that fails; 0 disables failures

void *__wrap_realloc(void *p, size_t size)
{
    return failing_realloc && --failing_realloc == 0 ? NULL : __real_realloc(p, size);
}

// Makes allocations fail. The writer must then reject the frame or store it uncompressed, but never
// store a wrong frame.
static void short_memory(enum frame_codec codec, unsigned failing)
{
    uint8_t bytes[600];
    struct output out;
    struct frame_writer w;
    struct err e = {0};
    memset(bytes, 'x', sizeof bytes);
    const struct frame_part parts[] = {{bytes, 300, NULL}, {bytes + 300, 300, NULL}};
    assert_int_equal(output_open_unnamed(&out, &e), 0);
    frame_writer_init(&w, &out, FRAME_MAGIC_TRACE, VERSION, codec, 1);
    failing_realloc = failing;
    int rc = frame_write_parts(&w, 1, parts, 2, &e);
    failing_realloc = 0;
    frame_writer_release(&w);
    if (rc < 0) {
        assert_true(rc == -ENOMEM && out.offset == 0);
        output_close(&out, false, NULL);
        return;
    }
    struct input in;
    struct frame_reader r;
    struct frame f;
    assert_int_equal(input_from_output(&in, &out, "frames", &e), 0);
    frame_reader_init(&r, &in, FRAME_MAGIC_TRACE, VERSION);
    assert_int_equal(frame_next(&r, &f, &e), 1);
    assert_int_equal(f.size, sizeof bytes);
    assert_memory_equal(f.data, bytes, sizeof bytes);
    frame_reader_release(&r);
    input_close(&in);
}

static void short_memory_spoils_no_frame(void **state)
{
    (void)state;
    for (unsigned failing = 1; failing < 6; failing++) {
        short_memory(FRAME_CODEC_ZSTD, failing);
        short_memory(FRAME_CODEC_LZ4, failing);
        short_memory(FRAME_CODEC_NONE, failing);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_codec_round_trips),
    cmocka_unit_test(incompressible_frames_are_stored),
    cmocka_unit_test(parts_without_compression),
    cmocka_unit_test(methods_follow_the_bytes),
    cmocka_unit_test(every_bit_flip_is_found),
    cmocka_unit_test(truncation_is_distinguished_from_corruption),
    cmocka_unit_test(resync_finds_the_frames_after_damage),
    cmocka_unit_test(resync_crosses_much_garbage),
    cmocka_unit_test(other_files_are_refused_by_name),
    cmocka_unit_test(an_unknown_codec_is_newer),
    cmocka_unit_test(damage_is_named),
    cmocka_unit_test(frame_over_the_limit_is_not_written),
    cmocka_unit_test(short_memory_spoils_no_frame),
};
UNIT_MAIN(tests)
