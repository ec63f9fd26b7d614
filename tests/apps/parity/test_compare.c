/* SPDX-License-Identifier: MIT */
/* The difference of two tensors, by its definition. */
#include "testing.h"

#include <math.h>

#include "apps/parity/compare.h"

static void errors_are_shares_of_the_largest(void)
{
    const float a[] = {1, -4, 0, 2}, b[] = {1, -3, 0.5f, 2}, zeros[4] = {0}, wrong[] = {1, NAN, 0, 2};
    parity_error e = parity_compare(SDLF_FLOAT32, a, b, 4, 0);
    CHECK_CLOSE(e.scale, 4, 0);
    CHECK_CLOSE(e.largest, 0.25, 1e-12);
    CHECK_CLOSE(e.mean, 1.5 / 4 / 4, 1e-12);
    CHECK_EQUAL(e.element, 1);
    CHECK(e.a == -4 && e.b == -3);
    parity_error back = parity_compare(SDLF_FLOAT32, b, a, 4, 0);
    CHECK(back.largest == e.largest && back.mean == e.mean && back.scale == e.scale); /* neither side is the truth */
    e = parity_compare(SDLF_FLOAT32, zeros, zeros, 4, 0);
    CHECK(e.largest == 0 && e.mean == 0);
    e = parity_compare(SDLF_FLOAT32, zeros, a, 4, 0);
    CHECK_CLOSE(e.largest, 1, 0);
    e = parity_compare(SDLF_FLOAT32, wrong, wrong, 4, 0);
    CHECK(isinf(e.largest) && e.element == 1);
    e = parity_compare(SDLF_FLOAT32, a, b, 4, 100);
    CHECK_CLOSE(e.scale, 100, 0);
    CHECK_CLOSE(e.largest, 0.01, 1e-12);
    const double x[] = {1, 1 + 1e-12}, y[] = {1, 1};
    CHECK_CLOSE(parity_compare(SDLF_FLOAT64, x, y, 2, 0).largest, 1e-12, 1e-14);
}

int main(void)
{
    RUN(errors_are_shares_of_the_largest);
    return test_summary();
}
