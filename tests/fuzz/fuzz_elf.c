// Fuzzes the build ID of an executable file.

#include "base/build_id.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in;
    char path[32];
    fuzz_input(&in, data, n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", in.fd);
    char *id = build_id_of(path);
    if (id && strspn(id, "0123456789abcdef") != strlen(id))
        abort();
    free(id);
    input_close(&in);
    return 0;
}
