// Fuzzes the verification of Parquet and CSV tables by `check`.
#include "tables/verify.h"

#include "fuzz.h"

#include <stdlib.h>

static void verify(int (*function)(struct input *in, uint64_t *rows, struct err *e),
                   const uint8_t *data, size_t n)
{
    struct input in;
    struct err e = {0};
    uint64_t rows;
    fuzz_input(&in, data, n);
    if ((function(&in, &rows, &e) < 0) != (e.text[0] != 0))
        abort();
    input_close(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    verify(tables_verify_parquet, data, n);
    verify(tables_verify_csv, data, n);
    return 0;
}
