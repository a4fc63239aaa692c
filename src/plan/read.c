#include "plan/read.h"

int plan_read_ops(struct plan *p, struct workload_reader *r, const struct plan_progress *progress, struct err *e)
{
    enum { REPORT_EVERY = 1 << 16 };
    uint32_t thread;
    const struct workload_op *op;
    uint64_t n = 0;
    int rc;
    while ((rc = workload_next_op(r, &thread, &op, e)) > 0) {
        rc = plan_add_op(p, thread, op, e);
        if (rc < 0)
            return rc;
        if (++n % REPORT_EVERY == 0 && progress)
            progress->report(progress->context, n);
    }
    return rc;
}

int plan_read(struct plan *p, struct workload_reader *r, const struct plan_progress *progress, struct err *e)
{
    int rc = plan_read_ops(p, r, progress, e);
    return rc < 0 ? rc : plan_finish(p, e);
}
