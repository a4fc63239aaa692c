// Control of a running capture, from inside the program. Nothing needs to be linked: where libheaptape.so is not
// preloaded, the calls do nothing.
#ifndef HEAPTAPE_HEAPTAPE_H
#define HEAPTAPE_HEAPTAPE_H

#ifdef __cplusplus
extern "C" {
#endif

// Puts a mark with this text (its first 1024 bytes) into the trace, at this point of the calling thread. NULL is an
// empty text.
void heaptape_mark(const char *text) __attribute__((weak));
#define heaptape_mark(text) (heaptape_mark ? heaptape_mark(text) : (void)0)

#ifdef __cplusplus
}
#endif

#endif
