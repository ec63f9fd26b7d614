/* SPDX-License-Identifier: MIT */
/* The prefetch thread: items in order, slots untouched while in use, seeks, errors, stopping. */
#include <string.h>
#include <time.h>

#include "framework/prefetch.h"
#include "testing.h"

enum { SLOTS = 3 };

/* Produces item n by writing n into its slot; items from `fails` on fail. */
typedef struct maker {
    int64_t slot[SLOTS];
    int64_t fails;
    int64_t made; /* how many items were produced */
    int64_t delay_nsec;
} maker;

static sdlf_status make(void *context, int64_t number, int slot)
{
    maker *m = context;
    if (m->delay_nsec > 0) nanosleep(&(struct timespec){.tv_nsec = m->delay_nsec}, NULL);
    __atomic_add_fetch(&m->made, 1, __ATOMIC_RELAXED);
    if (number >= __atomic_load_n(&m->fails, __ATOMIC_RELAXED)) {
        return sdlf_fail(SDLF_ERROR_DEVICE, "item %lld broke", (long long)number);
    }
    m->slot[slot] = number;
    return SDLF_OK;
}

/* Get the next item, and check that it is `number` and does not change for a while. */
static void check_next(sdlf_prefetch *prefetch, const maker *m, int64_t number)
{
    int slot = -1;
    if (!CHECK_OK(sdlf_prefetch_take(prefetch, &slot))) return;
    if (!CHECK(slot >= 0 && slot < SLOTS)) return;
    CHECK_EQUAL(m->slot[slot], number);
    if (number % 16 == 0) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    CHECK_EQUAL(m->slot[slot], number);
}

static void gives_items_in_order(void)
{
    maker m = {.fails = INT64_MAX};
    sdlf_prefetch prefetch;
    if (!CHECK_OK(sdlf_prefetch_start(&prefetch, SLOTS, make, &m))) return;
    for (int64_t i = 0; i < 500; i++) check_next(&prefetch, &m, i);
    sdlf_prefetch_stop(&prefetch);
    CHECK(m.made <= 500 + SLOTS);
}

static void seeks(void)
{
    static const int64_t places[] = {0, 7, 7, 3, 1000000007, 5, 6, 6};
    maker m = {.fails = INT64_MAX};
    sdlf_prefetch prefetch;
    if (!CHECK_OK(sdlf_prefetch_start(&prefetch, SLOTS, make, &m))) return;
    for (int i = 0; i < 400; i++) {
        int64_t place = places[i % 8];
        sdlf_prefetch_seek(&prefetch, place);
        for (int64_t n = 0; n < i % 5; n++) check_next(&prefetch, &m, place + n);
        if (i % 3 == 0) sdlf_prefetch_give_back(&prefetch);
    }
    sdlf_prefetch_stop(&prefetch);
}

static void keeps_what_is_made_when_it_is_sought(void)
{
    maker m = {.fails = INT64_MAX};
    sdlf_prefetch prefetch;
    if (!CHECK_OK(sdlf_prefetch_start(&prefetch, SLOTS, make, &m))) return;
    for (int64_t i = 0; i < 100; i++) {
        sdlf_prefetch_seek(&prefetch, i);
        check_next(&prefetch, &m, i);
    }
    sdlf_prefetch_stop(&prefetch);
    CHECK(m.made <= 100 + SLOTS);
}

static void reports_errors_of_the_thread(void)
{
    maker m = {.fails = 5};
    sdlf_prefetch prefetch;
    int slot;
    if (!CHECK_OK(sdlf_prefetch_start(&prefetch, SLOTS, make, &m))) return;
    for (int64_t i = 0; i < 5; i++) check_next(&prefetch, &m, i);
    CHECK_FAILS(sdlf_prefetch_take(&prefetch, &slot), SDLF_ERROR_DEVICE, "item 5 broke");
    sdlf_fail(SDLF_ERROR_IO, "another message");
    CHECK_FAILS(sdlf_prefetch_take(&prefetch, &slot), SDLF_ERROR_DEVICE, "item 5 broke");
    sdlf_prefetch_seek(&prefetch, 3);
    check_next(&prefetch, &m, 3);
    check_next(&prefetch, &m, 4);
    CHECK_FAILS(sdlf_prefetch_take(&prefetch, &slot), SDLF_ERROR_DEVICE, "item 5 broke");
    __atomic_store_n(&m.fails, INT64_MAX, __ATOMIC_RELAXED);
    sdlf_prefetch_seek(&prefetch, 5); /* to the current position, which retries it */
    for (int64_t i = 5; i < 20; i++) check_next(&prefetch, &m, i);
    sdlf_prefetch_stop(&prefetch);
}

static void stops_at_any_time(void)
{
    for (int i = 0; i < 60; i++) {
        maker m = {.fails = i % 4 == 3 ? 0 : INT64_MAX, .delay_nsec = i % 2 * 300000};
        sdlf_prefetch prefetch;
        if (!CHECK_OK(sdlf_prefetch_start(&prefetch, 2 + i % 2, make, &m))) return;
        if (i % 3 == 0) nanosleep(&(struct timespec){.tv_nsec = i * 10000}, NULL);
        sdlf_prefetch_stop(&prefetch);
    }
    CHECK(true);
}

int main(void)
{
    RUN(gives_items_in_order);
    RUN(seeks);
    RUN(keeps_what_is_made_when_it_is_sought);
    RUN(reports_errors_of_the_thread);
    RUN(stops_at_any_time);
    return test_summary();
}
