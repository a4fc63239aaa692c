// Fuzzes the plan of an ELF object's function entries.
#include "record/entries/plan.h"

#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in;
    struct entries_result r = {0};
    const struct entries_names names = {.families = UINT32_MAX, .reordered = true, .wrapped = true};
    fuzz_input(&in, data, n);
    const struct entries_object object = {.path = "fuzz", .file = in.fd, .memory = -1};
    if (entries_plan_object(&object, &names, &r, NULL) == 0 && r.plan && !entries_are_valid(r.plan))
        abort();
    entries_result_release(&r);
    input_close(&in);
    return 0;
}
