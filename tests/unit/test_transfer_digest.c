#include "transfer/digest.h"
#include "unit.h"

#include <string.h>

// Tests the examples of RFC 1321, and inputs whose lengths are around the end of a block.
static void test_md5(void **state)
{
    static const struct {
        const char *text, *md5;
    } known[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "ef1772b6dff9a122358552954ad0df65"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "3b0c8ac703f828b04c6c197006d17218"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "014842d480b571495a4a0363793f7367"},
    };
    char text[DIGEST_DIGITS + 1];
    struct digest *d = digest_new(true);
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].text), half = n / 2;
        digest_restart(d);
        digest_add(d, known[i].text, half);
        digest_md5(d, text); // does not change the state
        digest_add(d, known[i].text + half, n - half);
        digest_md5(d, text);
        assert_string_equal(text, known[i].md5);
    }
    digest_free(d);
}

// Expected values by xxhsum -H2.
static void test_xxh3(void **state)
{
    char text[DIGEST_DIGITS + 1];
    struct digest *d = digest_new(true);
    (void)state;
    digest_xxh3(d, text);
    assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
    digest_add(d, "ab", 2);
    digest_restart(d);
    digest_add(d, "a", 1);
    digest_add(d, "bc", 2);
    digest_xxh3(d, text);
    assert_string_equal(text, "06b05ab6733a618578af5f94892f3950");
    digest_free(d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_md5),
    cmocka_unit_test(test_xxh3),
};

UNIT_MAIN(tests)
