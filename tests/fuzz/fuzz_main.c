// Runs a fuzz target on each file, to use a corpus as a test. Fails if the target crashes or
// rejects a file.
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rbe");
        size_t size = 1 << 20;
        uint8_t *data = malloc(size);
        if (!f || !data) {
            fprintf(stderr, "%s: cannot read\n", argv[i]);
            free(data);
            return 1;
        }
        size_t n = fread(data, 1, size, f);
        fclose(f);
        // Shrinks the buffer to the size of the file, so that AddressSanitizer detects overreads.
        uint8_t *exact = realloc(data, n ? n : 1);
        int rc = LLVMFuzzerTestOneInput(exact ? exact : data, n);
        free(exact ? exact : data);
        if (rc != 0) {
            fprintf(stderr, "%s: is no seed for this target\n", argv[i]);
            return 1;
        }
    }
    printf("%d files\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
