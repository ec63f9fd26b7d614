/* sdlf predict: the same answers as the library gives, from whatever file the picture comes. */
#include "testing.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"

#define CALCULATOR "--calculator", "reference"

enum { COUNT = 10, PIXELS = 28 * 28 };

#if defined SDLF_HAVE_TURBOJPEG
enum { HAVE_TURBOJPEG = true };
#else
enum { HAVE_TURBOJPEG = false };
#endif

/* Made once: weights, and the first pictures of a data set, each in a file, and as one IDX file. The first are PGM files
 * where this build reads those, and else IDX files too. */
static char weights[512], idx[512], single[COUNT][512], negative[512];
static float expected[COUNT][10]; /* probabilities, by the library */

static void write_picture(const char *path, const uint8_t *pixels, int flip)
{
    static const uint8_t idx_header[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28};
    static const char pgm_header[] = "P5 28 28 255\n";
    uint8_t file[32 + PIXELS];
    size_t head = HAVE_TURBOJPEG ? sizeof pgm_header - 1 : sizeof idx_header;
    memcpy(file, HAVE_TURBOJPEG ? (const void *)pgm_header : idx_header, head);
    for (int i = 0; i < PIXELS; i++) file[head + (size_t)i] = (uint8_t)(flip ? 255 - pixels[i] : pixels[i]);
    test_write_file(path, file, head + PIXELS);
}

static void write_files(const sdlf_dataset *set)
{
    const uint8_t *pixels = set->samples.data;
    static uint8_t file[16 + COUNT * PIXELS] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, 28, 0, 0, 0, 28};
    memcpy(file + 16, pixels, COUNT * PIXELS);
    snprintf(idx, sizeof idx, "%s", test_path("pictures-idx3-ubyte"));
    test_write_file(idx, file, sizeof file);
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.picture", i);
        snprintf(single[i], sizeof single[i], "%s", test_path(name));
        write_picture(single[i], pixels + i * PIXELS, 0);
    }
    snprintf(negative, sizeof negative, "%s", test_path("negative.picture"));
    write_picture(negative, pixels, 1);
}

static void compute_expected(const sdlf_dataset *set)
{
    sdlf_model *model = NULL;
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    static float input[COUNT * PIXELS];
    CHECK_OK(sdlf_model_open(&model, weights));
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = COUNT, .forward = calculator}));
    const sdlf_normalization *normal = sdlf_model_normalization(model);
    for (int i = 0; i < COUNT * PIXELS; i++) {
        input[i] = ((float)((const uint8_t *)set->samples.data)[i] - normal->mean) * normal->scale;
    }
    CHECK_OK(sdlf_plan_write(plan, "image", input));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(sdlf_plan_read(plan, "output", expected));
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

static void prepare(void)
{
    snprintf(weights, sizeof weights, "%s", test_path("small.safetensors"));
    SDLF(0, "train", "--net", small_network(), "--data", "digits:3000", "--epochs", "10", CALCULATOR, "--out", weights);
    sdlf_dataset *set = NULL;
    if (!CHECK_OK(sdlf_dataset_open(&set, "digits:600,9", SDLF_SPLIT_TEST))) return;
    write_files(set);
    compute_expected(set);
    sdlf_dataset_free(set);
}

static int likeliest(const float *probability)
{
    int best = 0;
    for (int i = 1; i < 10; i++) best = probability[i] > probability[best] ? i : best;
    return best;
}

/* Entry `at` of what --json printed tells picture `index`. */
static void check_entry(const program *p, size_t at, int index)
{
    json_t *results = json_loads(p->out, 0, NULL), *entry = json_array_get(results, at);
    if (!CHECK(json_is_object(entry))) return;
    CHECK_EQUAL(json_integer_value(json_object_get(entry, "class")), likeliest(expected[index]));
    json_t *probabilities = json_object_get(entry, "probabilities");
    CHECK_EQUAL((int64_t)json_array_size(probabilities), 10);
    for (size_t i = 0; i < 10; i++) {
        CHECK_CLOSE(json_number_value(json_array_get(probabilities, i)), (double)expected[index][i], 1e-6);
    }
    json_decref(results);
}

static void every_file_has_the_same_answer(void)
{
    const program *p =
        SDLF(0, "predict", "--weights", weights, CALCULATOR, "--json", single[0], single[1], single[2], negative);
    for (int i = 0; i < 3; i++) check_entry(p, (size_t)i, i);
    check_entry(p, 3, 0); /* black on white, seen as white on black */
    for (int i = 0; i < COUNT; i += 3) {
        char index[16];
        snprintf(index, sizeof index, "%d", i);
        check_entry(SDLF(0, "predict", "--weights", weights, CALCULATOR, "--json", "--index", index, idx), 0, i);
    }
}

static void text_lines_up(void)
{
    const program *p = SDLF(0, "predict", "--weights", weights, CALCULATOR, "--top", "2", single[0], single[1]);
    for (int i = 0; i < 2; i++) {
        char line[600];
        int best = likeliest(expected[i]);
        snprintf(line, sizeof line, "%s   %d  %5.1f%%   ", single[i], best, 100 * (double)expected[i][best]);
        CHECK_SAYS(p, line);
    }
}

static void pictures_are_drawn(void)
{
    setenv("LC_ALL", "C", 1);
    const program *p = SDLF(0, "predict", "--weights", weights, CALCULATOR, "--draw", single[0]);
    CHECK_SAYS(p, "@@");
    int lines = 0;
    for (const char *c = p->out; *c; c++) lines += *c == '\n';
    CHECK_EQUAL(lines, 1 + 28);
    unsetenv("LC_ALL");
}

/* What cannot be read is said, and the rest is looked at. */
static void bad_pictures(void)
{
    const char *text = test_path("text.png");
    test_write_file(text, "I am no picture", 15);
    const program *p = SDLF(1, "predict", "--weights", weights, CALCULATOR, text, "/nowhere.png", single[0]);
    CHECK_SAYS(p, "text.png");
    CHECK_SAYS(p, "/nowhere.png");
    CHECK(strstr(p->out, single[0]) != NULL);
    CHECK_SAYS(SDLF(2, "predict", "--weights", weights, CALCULATOR), "a picture is missing");
    CHECK_SAYS(SDLF(1, "predict", "--weights", weights, CALCULATOR, "--index", "99", idx), "99");
    CHECK_SAYS(SDLF(1, "predict", "--weights", single[0], CALCULATOR, single[0]), "not a safetensors file");
}

/* One weight that is no number, in the last layer: every output is none, and no class is the likeliest. */
static void outputs_that_are_not_finite(void)
{
    const char *path = test_path("nan.safetensors");
    sdlf_model *model = NULL;
    if (!CHECK_OK(sdlf_model_open(&model, weights))) return;
    const sdlf_parameter *bias = sdlf_model_parameter(model, sdlf_model_parameter_count(model) - 1);
    *(float *)bias->value.data = NAN;
    CHECK_OK(sdlf_model_save(model, path));
    sdlf_model_free(model);
    for (int json = 0; json < 2; json++) {
        const program *p = SDLF(1, "predict", "--weights", path, CALCULATOR, single[0], json ? "--json" : "--top=3");
        CHECK_SAYS(p, "0.picture: the network's outputs are not finite: 10 of 10 are NaN or infinite");
        CHECK_TEXT(p->out, json ? "[]\n" : "");
    }
}

int main(void)
{
    if (!HAVE_TURBOJPEG) puts("PGM files are not tested: built without libturbojpeg");
    RUN(prepare);
    RUN(every_file_has_the_same_answer);
    RUN(text_lines_up);
    RUN(pictures_are_drawn);
    RUN(bad_pictures);
    RUN(outputs_that_are_not_finite);
    return test_summary();
}
