/* SPDX-License-Identifier: MIT */
/* A write to a file after its stamp was taken is detected, however soon it follows. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "framework/formats/file_stamp.h"

#include "testing.h"

static int write_new(const char *path)
{
    test_write_file(path, "0123456789", 10);
    return open(path, O_RDWR | O_CLOEXEC);
}

static file_stamp stamp_of(int descriptor)
{
    struct stat about;
    CHECK(fstat(descriptor, &about) == 0);
    return file_stamp_take(&about);
}

/* True if the clock tick of that time is over. Newer systems give files that have been inspected times between ticks,
 * ahead of their clock. */
static bool is_past(struct timespec modified)
{
#ifdef CLOCK_REALTIME_COARSE
    struct timespec now, tick;
    CHECK(clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 && clock_getres(CLOCK_REALTIME_COARSE, &tick) == 0);
    int64_t passed = (int64_t)(now.tv_sec - modified.tv_sec) * 1000000000 + now.tv_nsec - modified.tv_nsec;
    return passed < 0 || passed >= tick.tv_nsec;
#else
    return modified.tv_sec >= 0;
#endif
}

/* Repeated many times, because a tick may end in between by chance. */
static void a_change_right_after_is_seen(void)
{
    int missed = 0;
    for (int i = 0; i < 40; i++) {
        int file = write_new(test_path("file"));
        file_stamp stamp = stamp_of(file);
        CHECK(file_stamp_holds(&stamp, file));
        CHECK(is_past(stamp.modified));
        CHECK(pwrite(file, "x", 1, 3) == 1); /* the same length */
        missed += file_stamp_holds(&stamp, file);
        close(file);
    }
    CHECK_EQUAL(missed, 0);
}

static void sizes_count(void)
{
    int file = write_new(test_path("size"));
    struct stat about;
    CHECK(fstat(file, &about) == 0);
    file_stamp stamp = {.size = about.st_size, .modified = about.st_mtim};
    CHECK(ftruncate(file, 5) == 0);
    CHECK(futimens(file, (const struct timespec[2]){about.st_atim, about.st_mtim}) == 0);
    CHECK(!file_stamp_holds(&stamp, file));
    close(file);
}

/* Names and permissions are not part of the content. */
static void names_do_not_count(void)
{
    int file = write_new(test_path("old"));
    file_stamp stamp = stamp_of(file);
    CHECK(rename(test_path("old"), test_path("new")) == 0);
    CHECK(file_stamp_holds(&stamp, file));
    CHECK(fchmod(file, 0400) == 0 && unlink(test_path("new")) == 0);
    CHECK(file_stamp_holds(&stamp, file));
    close(file);
    CHECK(file_stamp_holds(&stamp, -1)); /* unknown */
}

/* The number of times that this process has slept. */
static long sleeps(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nvcsw;
}

/* An old file, or one from a clock that is ahead, causes no wait. */
static void only_this_tick_is_waited_for(void)
{
    enum { STAMPS = 1000 };
    long before = sleeps();
    for (int i = 0; i < 2; i++) {
        int file = write_new(test_path("other"));
        struct timespec then = {.tv_sec = time(NULL) + (i ? 3600 : -3600)};
        CHECK(futimens(file, (const struct timespec[2]){then, then}) == 0);
        for (int j = 0; j < STAMPS; j++) (void)stamp_of(file);
        close(file);
    }
    CHECK(sleeps() - before < STAMPS / 2); /* waiting for a tick sleeps */
}

int main(void)
{
    RUN(a_change_right_after_is_seen);
    RUN(sizes_count);
    RUN(names_do_not_count);
    RUN(only_this_tick_is_waited_for);
    return test_summary();
}
