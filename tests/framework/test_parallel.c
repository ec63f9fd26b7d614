/* SPDX-License-Identifier: MIT */
/* Distributing items over threads: each is processed once, with any number of threads. */
#include <stdatomic.h>

#include "framework/parallel.h"
#include "testing.h"

enum { MOST = 1000 };

static _Atomic int calls[MOST];

static void count_call(void *context, int64_t item)
{
    _Atomic int64_t *sum = context;
    atomic_fetch_add(&calls[item], 1);
    atomic_fetch_add(sum, item);
}

static void each_item_once(void)
{
    static const int64_t counts[] = {0, 1, 2, 7, MOST};
    for (int threads = 0; threads < 100; threads = 2 * threads + 1) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            _Atomic int64_t sum = 0;
            for (int k = 0; k < MOST; k++) calls[k] = 0;
            parallel_for(counts[i], threads, count_call, &sum);
            CHECK_EQUAL(sum, counts[i] * (counts[i] - 1) / 2);
            for (int k = 0; k < MOST; k++) CHECK_EQUAL(calls[k], k < counts[i]);
        }
    }
}

int main(void)
{
    RUN(each_item_once);
    return test_summary();
}
