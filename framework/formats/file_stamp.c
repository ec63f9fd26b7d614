/* SPDX-License-Identifier: MIT */
#include "framework/formats/file_stamp.h"

#include <time.h>

#include "framework/portable.h"

static double seconds_between(struct timespec from, struct timespec to)
{
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
}

/* Waits until a change would get a later timestamp than this. Kernels with finer file times than the clock's tick may
 * be ahead of it by one; a time further in the future is from another clock: no wait is needed. */
static void wait_for_tick_after(struct timespec modified)
{
#ifdef CLOCK_REALTIME_COARSE
    struct timespec now, tick, pause = {.tv_nsec = 1000000};
    if (clock_getres(CLOCK_REALTIME_COARSE, &tick) != 0) return;
    for (int i = 0; i < 50 && clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0; i++) {
        double passed = seconds_between(modified, now), length = (double)tick.tv_sec + (double)tick.tv_nsec * 1e-9;
        if (passed < -length || passed >= length) return;
        nanosleep(&pause, NULL);
    }
#else
    (void)modified, (void)seconds_between;
#endif
}

file_stamp file_stamp_take(const struct stat *about)
{
    struct timespec modified = portable_modified(about);
    wait_for_tick_after(modified);
    return (file_stamp){.size = about->st_size, .modified = modified};
}

bool file_stamp_holds(const file_stamp *stamp, int descriptor)
{
    struct stat now;
    if (fstat(descriptor, &now) != 0) return true;
    struct timespec modified = portable_modified(&now);
    return now.st_size == stamp->size && modified.tv_sec == stamp->modified.tv_sec &&
           modified.tv_nsec == stamp->modified.tv_nsec;
}
