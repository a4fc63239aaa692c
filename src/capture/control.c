// The program steers its own recording.
#include "capture/wrap.h"
#include "heaptape/heaptape.h"

#undef heaptape_start
#undef heaptape_stop
#undef heaptape_pause
#undef heaptape_resume
#undef heaptape_unpause
#undef heaptape_sync
#undef heaptape_reset
#undef heaptape_status

#define VERB(name, verb)                                                                                               \
    WRAPPER int heaptape_##name(void)                                                                                  \
    {                                                                                                                  \
        return -producer_control(verb);                                                                                \
    }
VERB(start, CONTROL_START)
VERB(stop, CONTROL_STOP)
VERB(pause, CONTROL_PAUSE)
VERB(resume, CONTROL_RESUME)
VERB(unpause, CONTROL_RESUME) // glibc's word
VERB(sync, CONTROL_SYNC)
VERB(reset, CONTROL_RESET)

WRAPPER enum heaptape_state heaptape_status(void)
{
    switch (producer_control_state()) {
    case SPOOL_RECORDING:
        return HEAPTAPE_RECORDING;
    case SPOOL_PAUSED:
        return HEAPTAPE_PAUSED;
    case SPOOL_STOPPED:
        return HEAPTAPE_STOPPED;
    default:
        return HEAPTAPE_NONE;
    }
}
