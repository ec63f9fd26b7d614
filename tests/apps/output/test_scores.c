/* SPDX-License-Identifier: MIT */
/* Class scores: which are invalid, and which probabilities they give. */
#include "apps/output/scores.h"

#include <math.h>

#include "testing.h"

static void scores_that_are_none(void)
{
    const double mixed[] = {1, NAN, 2, INFINITY}, none[] = {NAN, NAN}, masked[] = {-INFINITY, 0.5, -INFINITY},
                 all[] = {-INFINITY, -INFINITY}, good[] = {3, -4};
    CHECK_FAILS(scores_check(mixed, 4), SDLF_ERROR_NUMERIC, "the network's outputs are not finite: 2 of 4 are NaN or");
    CHECK_FAILS(scores_check(none, 2), SDLF_ERROR_NUMERIC, "2 of 2");
    CHECK_FAILS(scores_check(all, 2), SDLF_ERROR_NUMERIC, "2 of 2");
    CHECK_OK(scores_check(masked, 3));
    CHECK_OK(scores_check(good, 2));
    CHECK_OK(scores_check(good, 0));
}

static void probabilities(void)
{
    double already[] = {0.25, 0.75}, logits[] = {0, log(3)}, logarithms[] = {log(0.1), log(0.9)},
           masked[] = {-INFINITY, 700, 700};
    scores_to_probabilities(already, 2);
    scores_to_probabilities(logits, 2);
    scores_to_probabilities(logarithms, 2);
    scores_to_probabilities(masked, 3);
    CHECK_CLOSE(already[1], 0.75, 0);
    CHECK_CLOSE(logits[0], 0.25, 1e-12);
    CHECK_CLOSE(logarithms[1], 0.9, 1e-12);
    CHECK_CLOSE(masked[0], 0, 0);
    CHECK_CLOSE(masked[2], 0.5, 1e-12);
}

int main(void)
{
    RUN(scores_that_are_none);
    RUN(probabilities);
    return test_summary();
}
