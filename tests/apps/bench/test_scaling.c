/* SPDX-License-Identifier: MIT */
/* sdlf bench scaling: consistent figures for 1 to 3 ranks, printed once. */
#include "testing.h"

#include <math.h>

#include <jansson.h>

#include "apps/mpirun.h"

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* From the first brace on: mpirun may have printed something before. */
static json_t *read_json(void)
{
    const char *begin = strchr(output, '{');
    json_t *found = begin != NULL ? json_loads(begin, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (!CHECK(found != NULL)) printf("no JSON in:\n%s\n", output);
    return found;
}

static void check_kind(const json_t *points, int ranks, bool weak)
{
    const json_t *one = json_array_get(points, 0);
    CHECK_EQUAL(json_array_size(points), ranks);
    for (int n = 1; n <= ranks; n++) {
        const json_t *p = json_array_get(points, (size_t)n - 1);
        CHECK_CLOSE(number(p, "ranks"), n, 0);
        CHECK_CLOSE(number(p, "batch"), weak ? 12 * n : 12, 0);
        CHECK(number(p, "seconds") > 0 && number(p, "compute_seconds") > 0);
        CHECK_CLOSE(number(p, "samples_per_second") * number(p, "seconds"), number(p, "batch"), 1e-3);
        CHECK_CLOSE(number(p, "times"), number(p, "samples_per_second") / number(one, "samples_per_second"), 1e-3);
        CHECK_CLOSE(number(p, "efficiency") * n, number(p, "times"), 1e-3);
        /* lenet5 has 61,706 parameters; the gaps between them are small */
        CHECK(number(p, "gradient_bytes") >= 4 * 61706 && number(p, "gradient_bytes") < 4 * 61706 + 2000);
        CHECK_CLOSE(number(p, "buckets"), 1, 0);
        CHECK_CLOSE(number(p, "sent_bytes"), 2.0 * (n - 1) / n * number(p, "gradient_bytes"), 1);
        if (n == 1) {
            CHECK(json_is_null(json_object_get(p, "hidden")) && json_is_null(json_object_get(p, "sum_seconds")));
            continue;
        }
        CHECK(number(p, "hidden") >= 0 && number(p, "hidden") <= 1);
        CHECK_CLOSE(number(p, "bytes_per_second") * number(p, "sum_seconds"), number(p, "sent_bytes"), 1);
    }
}

static void of_ranks(void)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        remove("scaling.svg");
        CHECK_EQUAL(shell("%s --net lenet5 --batch 12 --steps 2 --repeats 3 --json --svg scaling.svg",
                          mpirun_words(ranks, "bench scaling")),
                    0);
        json_t *report = read_json();
        check_kind(json_object_get(report, "strong"), ranks, false);
        check_kind(json_object_get(report, "weak"), ranks, true);
        const json_t *sums = json_object_get(report, "large_sums");
        CHECK_EQUAL(json_array_size(sums), ranks - 1);
        for (int n = 2; n <= ranks; n++) {
            const json_t *sum = json_array_get(sums, (size_t)n - 2);
            CHECK_CLOSE(number(sum, "ranks"), n, 0);
            CHECK(number(sum, "bytes_per_second") > 0);
        }
        json_decref(report);
        CHECK_EQUAL(shell("cat scaling.svg"), 0);
        SAYS("Training lenet5 on several ranks (mpi), 12 samples");
        SAYS("</svg>");
        CHECK_EQUAL(strstr(output, "<polyline") != NULL, 1);
    }
}

/* Only rank 0 prints tables. */
static void said_once(void)
{
    CHECK_EQUAL(shell("%s --net lenet5 --batch 12 --steps 1 --repeats 1", mpirun_words(2, "bench scaling")), 0);
    SAYS("2 of mpi; this is rank 0 on");
    SAYS("12 samples a step, for all ranks together");
    const char *first = strstr(output, "12 samples a step, for each rank");
    CHECK(first != NULL && strstr(first + 1, "12 samples a step") == NULL);
}

static void refused(void)
{
    CHECK(shell("%s --net lenet5 --batch 2", mpirun_words(3, "bench scaling")) != 0);
    SAYS("--batch 2: expected at least one sample for each of 3 ranks");
    const char *error = strstr(output, "bench scaling: error:");
    CHECK(error != NULL && strstr(error + 1, "bench scaling: error:") == NULL);
    CHECK(shell("%s --svg absent/scaling.svg", mpirun_words(2, "bench scaling --net lenet5")) != 0);
    SAYS("absent/scaling.svg");
}

int main(void)
{
    if (!mpirun_begin("scaling")) return test_summary();
    RUN(of_ranks);
    RUN(said_once);
    RUN(refused);
    return test_summary();
}
