// How many allocations a trace or workload has by size, in powers of two: size_histogram FILE
//     cc size_histogram.c $(pkg-config --cflags --libs heaptape-trace)
#include <heaptape/trace.h>

#include <inttypes.h>
#include <stdio.h>

enum { ROWS = 4096 };

int main(int argc, char **argv)
{
    static uint64_t sizes[ROWS];
    static uint32_t known[ROWS];
    static uint8_t failed[ROWS], operations[ROWS];
    const heaptape_column columns[] = {
        {HEAPTAPE_COLUMN_SIZE, sizeof sizes[0], sizes},
        {HEAPTAPE_COLUMN_KNOWN, sizeof known[0], known},
        {HEAPTAPE_COLUMN_FAILED, sizeof failed[0], failed},
        {HEAPTAPE_COLUMN_OPERATION, sizeof operations[0], operations},
    };
    uint64_t counts[65] = {0};
    heaptape_trace *t;
    int64_t n;

    if (argc != 2) {
        fprintf(stderr, "usage: size_histogram FILE\n");
        return 2;
    }
    n = heaptape_trace_open(&t, argv[1]);
    while (n >= 0 && (n = heaptape_trace_read_columns(t, columns, 4, ROWS)) > 0) {
        for (int64_t i = 0; i < n; i++) {
            if (heaptape_trace_allocates(operations[i]) && known[i] >> HEAPTAPE_COLUMN_SIZE & 1 &&
                !failed[i])
                counts[sizes[i] ? 64 - __builtin_clzll(sizes[i]) : 0]++;
        }
    }
    for (int i = 0; n == 0 && i <= 64; i++) {
        if (counts[i])
            printf("%20" PRIu64 " %12" PRIu64 "\n", i ? UINT64_C(1) << (i - 1) : 0, counts[i]);
    }
    if (n < 0)
        fprintf(stderr, "size_histogram: %s\n", heaptape_trace_error(t));
    heaptape_trace_close(t);
    return n < 0;
}
