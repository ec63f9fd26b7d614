/* SPDX-License-Identifier: MIT */
/* sdlf eval --communicator: ranks that each classify a part of the samples get the results of a single rank. */
#include <math.h>

#include <jansson.h>

#include "apps/mpirun.h"

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* The output of eval with these words on that many ranks; 0: without a communicator. */
static json_t *eval(int ranks, const char *words)
{
    char alone[512];
    snprintf(alone, sizeof alone, "%s eval", program_path);
    int code = shell("%s --json %s", ranks > 0 ? mpirun_words(ranks, "eval --communicator mpi") : alone, words);
    const char *begin = strchr(output, '{');
    json_t *found = begin != NULL ? json_loads(begin, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (!CHECK_EQUAL(code, 0) || !CHECK(found != NULL)) printf("%d ranks, %s:\n%s\n", ranks, words, output);
    return found;
}

/* Everything except times; sums in another order differ by rounding. */
static void check_same(const json_t *several, const json_t *alone)
{
    const char *name;
    json_t *value;
    CHECK_EQUAL(json_object_size(several), json_object_size(alone));
    json_object_foreach((json_t *)alone, name, value)
    {
        const json_t *other = json_object_get(several, name);
        if (json_is_object(value)) check_same(other, value);
        if (json_is_object(value)) continue;
        if (strstr(name, "second") != NULL || strcmp(name, "weights") == 0) continue;
        if (json_is_real(value))
            CHECK_CLOSE(json_number_value(other), json_number_value(value), 1e-8 * fabs(json_number_value(value)));
        else if (!CHECK(json_equal(other, value)))
            printf("another '%s'\n", name);
    }
}

static void same_figures(void)
{
    CHECK_EQUAL(
        shell("%s train --quiet --net lenet5 --data digits:400 --epochs 1 --out eval_ranks.safetensors", program_path),
        0);
    static const char *const cases[] = {
        "--weights eval_ranks.safetensors --data digits:301 --train-half",
        "--weights eval_ranks.safetensors --data digits:301 --train-half --batch 7", /* the last batch: one sample */
        "--weights eval_ranks.safetensors --data digits:12 --tta shift", /* fewer samples than ranks, or as many */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        json_t *alone = eval(0, cases[c]);
        CHECK(number(alone, "loss") > 0);
        for (int ranks = 1; ranks <= 3; ranks++) {
            json_t *several = eval(ranks, cases[c]);
            check_same(several, alone);
            json_decref(several);
        }
        json_decref(alone);
    }
}

/* Float targets have their own metrics. */
static void same_targets(void)
{
    FILE *file = fopen("eval_ranks.csv", "w");
    if (!CHECK(file != NULL)) return;
    fputs("a,b,sum,diff\n", file);
    for (int i = 0; i < 120; i++) {
        double a = i * 37 % 101 - 50, b = i * 53 % 97 - 48;
        fprintf(file, "%.3f,%.3f,%.3f,%.3f\n", a / 50, b / 50, (a + b) / 50, (a - b) / 50);
    }
    fclose(file);
    CHECK_EQUAL(
        shell("%s train --quiet --net mlp --data csv:eval_ranks.csv,label=sum..diff --loss mse --epochs 2 --out "
              "eval_targets.safetensors",
              program_path),
        0);
    const char *words = "--weights eval_targets.safetensors --train-half --batch 11";
    json_t *alone = eval(0, words), *several = eval(3, words);
    CHECK(number(alone, "loss") > 0);
    check_same(several, alone);
    json_decref(several);
    json_decref(alone);
}

static void said_once(void)
{
    CHECK_EQUAL(
        shell("%s --weights eval_ranks.safetensors --data digits:60", mpirun_words(2, "eval --communicator mpi")), 0);
    const char *first = strstr(output, "samples/s");
    CHECK(first != NULL && strstr(first + 1, "samples/s") == NULL);
}

static void refused(void)
{
    CHECK(shell("%s --weights absent.safetensors", mpirun_words(2, "eval --communicator mpi")) != 0);
    SAYS("absent.safetensors");
    const char *error = strstr(output, "eval: error:");
    CHECK(error != NULL && strstr(error + 1, "eval: error:") == NULL);
    char own[1024];
    snprintf(own, sizeof own, "%s", mpirun_words(1, "eval --communicator mpi --weights eval_ranks.safetensors"));
    CHECK(shell("%s --data digits:60 : -n 1 %s eval --communicator mpi --weights eval_ranks.safetensors --data "
                "digits:80",
                own, program_path) != 0);
    SAYS("rank 1 differs from rank 0 in its number of samples or weights");
    CHECK(shell("%s eval --weights eval_ranks.safetensors --communicator-timeout 3", program_path) != 0);
    SAYS("--communicator-timeout needs --communicator");
}

int main(void)
{
    if (!mpirun_begin("eval_ranks")) return test_summary();
    RUN(same_figures);
    RUN(same_targets);
    RUN(said_once);
    RUN(refused);
    return test_summary();
}
