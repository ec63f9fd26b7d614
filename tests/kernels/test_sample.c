/* SPDX-License-Identifier: MIT */
/* The sampling of cases by the kernel tests when there is not enough time for all. */
#include "sample.h"

#include <string.h>

#include "testing.h"

enum { CASES = 12266 };

static unsigned char taken[CASES];

/* One pass of the generators; returns the number of cases run. */
static int turn(sample *s)
{
    int found = 0;
    for (int i = 0; i < CASES; i++) {
        bool takes = sample_takes(s, s->emitted++);
        taken[i] += takes;
        found += takes;
    }
    return found;
}

static void every_case_has_its_turn(void)
{
    sample s;
    int turns = 0, least = CASES, most = 0;
    memset(taken, 0, sizeof taken);
    sample_begin(&s, 1e9, 200);
    do {
        int found = turn(&s);
        if (found < least) least = found;
        if (found > most) most = found;
        turns++;
    } while (sample_next(&s));
    CHECK_EQUAL(turns, SAMPLE_PARTS);
    CHECK_EQUAL(s.seen, CASES);
    CHECK_EQUAL(s.eligible, CASES);
    CHECK(least >= CASES / SAMPLE_PARTS - 2 && most <= CASES / SAMPLE_PARTS + 3);
    int wrong = 0;
    for (int i = 0; i < CASES; i++) wrong += taken[i] != 1;
    CHECK_EQUAL(wrong, 0);
}

/* Consecutive runs of a number of parts, each starting where the last one ended, cover every case once. */
static void runs_of_some_parts_go_on(void)
{
    sample s;
    int64_t seed = 250;
    memset(taken, 0, sizeof taken);
    for (int run = 0; run < SAMPLE_PARTS / 16; run++) {
        sample_begin_parts(&s, 16, seed);
        CHECK(turn(&s) >= CASES / 16 - 32);
        CHECK(!sample_next(&s) && !s.late);
        seed = sample_goes_on(&s);
    }
    CHECK_EQUAL(seed, 250);
    int wrong = 0;
    for (int i = 0; i < CASES; i++) wrong += taken[i] != 1;
    CHECK_EQUAL(wrong, 0);
}

/* A part has some of each range of cases, and also of every second or sixteenth case, since families emit cases in
 * loops. */
static void parts_are_spread(void)
{
    enum { STRETCHES = 6 };
    for (int seed = 0; seed < SAMPLE_PARTS; seed += 37) {
        sample s;
        memset(taken, 0, sizeof taken);
        sample_begin(&s, 1e9, seed);
        turn(&s);
        for (int stretch = 0; stretch < STRETCHES; stretch++) {
            int found = 0;
            for (int i = CASES / STRETCHES * stretch; i < CASES / STRETCHES * (stretch + 1); i++) found += taken[i];
            CHECK(found >= 5 && found <= 11); /* of 2044 in 256 parts, 8 */
        }
        int even = 0, sixteenth = 0;
        for (int i = 0; i < CASES; i += 2) even += taken[i];
        for (int i = 0; i < CASES; i += 16) sixteenth += taken[i];
        CHECK(even >= 12 && even <= 36 && sixteenth <= 12);
    }
}

/* Two runs with almost no time: the second starts where the first says, and not at the same part again. */
static void a_run_ends_in_time_and_the_next_goes_on(void)
{
    sample s;
    memset(taken, 0, sizeof taken);
    sample_begin(&s, 1e-9, 255);
    CHECK(turn(&s) == 0 && s.late);
    CHECK(!sample_next(&s));
    CHECK_EQUAL(s.eligible, CASES);
    CHECK_EQUAL(sample_goes_on(&s), 0);
    s = (sample){.on = true, .first = 10, .deadline = 1e300};
    for (int part = 0; part < 3; part++) {
        turn(&s);
        CHECK(sample_next(&s));
    }
    s.late = true;
    CHECK(!sample_next(&s));
    CHECK_EQUAL(sample_goes_on(&s), 13);
}

/* A case that exceeded the time does not count as run, and is the last. */
static void a_case_that_takes_too_long_is_not_counted(void)
{
    sample s = {.on = true, .deadline = 1e300};
    CHECK(sample_takes(&s, 0));
    sample_took(&s);
    CHECK(s.seen == 1 && !s.late);
    CHECK(sample_takes(&s, 0));
    s.deadline = 0;
    sample_took(&s);
    CHECK(s.seen == 1 && s.late);
    CHECK(!sample_next(&s));
}

static void without_it_all_are_taken(void)
{
    sample s = {.on = false};
    memset(taken, 0, sizeof taken);
    CHECK_EQUAL(turn(&s), CASES);
}

int main(void)
{
    RUN(every_case_has_its_turn);
    RUN(runs_of_some_parts_go_on);
    RUN(parts_are_spread);
    RUN(a_run_ends_in_time_and_the_next_goes_on);
    RUN(a_case_that_takes_too_long_is_not_counted);
    RUN(without_it_all_are_taken);
    return test_summary();
}
