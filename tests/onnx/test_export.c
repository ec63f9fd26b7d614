/* SPDX-License-Identifier: MIT */
/* Models exported to ONNX compute the same when read back. Inexpressible models are in test_export_refused.c. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/sdlf.h>

#include "onnx/export_cases.h"
#include "onnx/fixtures.h"
#include "onnx/outside.h"

/* Both run on the reference calculator; layers that are exported as several operators round differently. */
static void check_same(const sdlf_tensor *found, const sdlf_tensor *expected, const char *what)
{
    if (!CHECK(sdlf_shape_equal(found->shape, expected->shape)) || !CHECK(found->dtype == expected->dtype)) {
        printf("    %s: %s %s, expected %s %s\n", what, sdlf_dtype_name(found->dtype),
               sdlf_shape_print(found->shape).text, sdlf_dtype_name(expected->dtype),
               sdlf_shape_print(expected->shape).text);
        return;
    }
    if (found->dtype != SDLF_FLOAT32) {
        bool same = memcmp(found->data, expected->data, (size_t)sdlf_tensor_bytes(expected)) == 0;
        if (!CHECK(same)) printf("    %s\n", what);
        return;
    }
    for (int64_t i = 0; i < sdlf_tensor_count(expected); i++) {
        double value = (double)((float *)found->data)[i], wanted = (double)((float *)expected->data)[i];
        if (CHECK(fabs(value - wanted) <= 3e-6 * (1 + fabs(wanted)))) continue;
        printf("    %s: element %lld is %.9g, expected %.9g\n", what, (long long)i, value, wanted);
        return;
    }
}

/* `again` was read for plans of any batch, or for only one batch, and then supports no other. */
static void compare_runs(sdlf_model *model, sdlf_model *again, int64_t batch, bool any)
{
    export_run_values expected, found;
    CHECK_OK(export_case_run(&expected, model, batch, NULL));
    CHECK_OK(export_case_run(&found, again, any ? batch : 1, &expected));
    CHECK(found.output_count > 0);
    for (int i = 0; i < found.output_count; i++) {
        char what[128];
        const sdlf_tensor *wanted = export_run_output(&expected, found.output_name[i]);
        snprintf(what, sizeof what, "%s, batch %d, %s", sdlf_model_name(model), (int)batch, found.output_name[i]);
        if (CHECK(wanted != NULL) && sdlf_tensor_present(&found.output[i])) check_same(&found.output[i], wanted, what);
    }
    export_run_release(&expected);
    export_run_release(&found);
}

/* Read the file for that batch: some networks have the batch in their shapes when created from an ONNX file. */
static void read_back(sdlf_model *model, const char *path, int64_t batch, bool open)
{
    sdlf_model *again = NULL;
    const sdlf_onnx_dimension nodes = {"N", batch};
    const sdlf_onnx_options options = {.batch = batch, .dimensions = &nodes, .dimension_count = open};
    if (CHECK_OK(sdlf_model_from_onnx(&again, path, &options))) compare_runs(model, again, batch, false);
    sdlf_model_free(again);
}

static void goes_round(const export_case *from, const char *name, int opset)
{
    const char *path = test_path("round.onnx");
    sdlf_model *model = export_case_model(from, name);
    sdlf_onnx_exported result;
    if (!CHECK(model != NULL)) printf("    %s\n", sdlf_error_message());
    if (model == NULL) return;
    if (CHECK_OK(sdlf_model_to_onnx(model, path, &(sdlf_onnx_export_options){.opset = opset}, &result))) {
        int lowest = from != NULL ? from->opset : 17;
        CHECK_EQUAL(result.opset, opset != 0 ? opset : lowest);
        CHECK(result.fixed_batch == (from != NULL && from->fixed_batch));
        CHECK(result.node_count > 0 && result.bytes > 0 && result.external_bytes == 0);
        read_back(model, path, 1, !result.fixed_batch);
        if (!result.fixed_batch) read_back(model, path, 3, true);
    }
    sdlf_model_free(model);
}

static void every_layer_comes_back(void)
{
    static const int opsets[] = {0, 17, 18, 19, 20, 21, 22};
    for (const export_case *at = export_cases; at->name != NULL; at++)
        for (int i = 0; i < 7; i++)
            if (opsets[i] == 0 || opsets[i] >= at->opset) goes_round(at, at->name, opsets[i]);
}

static const char *const writers[] = {
#define SDLF_LAYER(class, writer) #writer,
#include "layers/list.h"
#undef SDLF_LAYER
};

/* The cases contain every layer class that has a writer, so that a new one is not forgotten, and the losses. */
static void no_layer_is_missing(void)
{
    for (int i = 0; sdlf_layer_class_at(i) != NULL; i++) {
        bool found = strcmp(writers[i], "export_none") == 0 && !sdlf_layer_class_at(i)->is_loss;
        for (const export_case *at = export_cases; at->name != NULL && !found; at++) {
            sdlf_model *model = export_case_model(at, NULL);
            for (int k = 0; k < sdlf_model_layer_count(model); k++)
                found = found || sdlf_model_layer(model, k)->type == sdlf_layer_class_at(i);
            sdlf_model_free(model);
        }
        if (!CHECK(found)) printf("    no case has the layer %s\n", sdlf_layer_class_at(i)->name);
    }
}

/* Parameters keep names and values, bit for bit. */
static void built_in_networks_come_back(void)
{
    for (int i = 0; export_builtin[i] != NULL; i++) {
        const char *path = test_path("network.onnx");
        goes_round(NULL, export_builtin[i], 0);
        sdlf_model *model = export_case_model(NULL, export_builtin[i]), *again = NULL;
        sdlf_onnx_exported result;
        CHECK_OK(sdlf_model_to_onnx(model, path, NULL, &result));
        if (CHECK_OK(sdlf_model_from_onnx(&again, path, NULL))) {
            int64_t count = 0; /* with running statistics */
            for (int p = 0; p < sdlf_model_parameter_count(model); p++)
                count += sdlf_tensor_count(&sdlf_model_parameter(model, p)->value);
            CHECK_EQUAL(result.parameter_count, count);
            CHECK_EQUAL(sdlf_model_hash(again), sdlf_model_hash(model));
            CHECK_TEXT(sdlf_model_name(again), sdlf_model_name(model));
            for (int p = 0; p < sdlf_model_parameter_count(model); p++)
                CHECK_TEXT(sdlf_model_parameter(again, p)->name, sdlf_model_parameter(model, p)->name);
            compare_runs(model, again, 3, true);
        }
        sdlf_model_free(again);
        sdlf_model_free(model);
    }
}

/* A network is written, read, trained further, written again and read again. */
static void trained_on_and_back(void)
{
    const char *start = test_path("start.onnx"), *path = test_path("trained.onnx");
    sdlf_model *model = export_case_model(NULL, "lenet5"), *again = NULL;
    CHECK_OK(sdlf_model_to_onnx(model, start, NULL, NULL));
    sdlf_model *trained = export_case_trained(start);
    if (!CHECK(trained != NULL)) printf("    %s\n", sdlf_error_message());
    CHECK_OK(sdlf_model_to_onnx(trained, path, NULL, NULL));
    if (CHECK_OK(sdlf_model_from_onnx(&again, path, NULL))) {
        CHECK(sdlf_model_hash(again) != sdlf_model_hash(model));
        CHECK_EQUAL(sdlf_model_hash(again), sdlf_model_hash(trained));
        compare_runs(trained, again, 3, true);
    }
    sdlf_model_free(again);
    sdlf_model_free(trained);
    sdlf_model_free(model);
}

static int64_t read_all(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    size_t count = fread(bytes, 1, size, file);
    fclose(file);
    return (int64_t)count;
}

static bool contains(const char *bytes, int64_t count, const char *text)
{
    size_t length = strlen(text);
    for (int64_t i = 0; i + (int64_t)length <= count; i++)
        if (memcmp(bytes + i, text, length) == 0) return true;
    return false;
}

/* The normalisation of samples is in the metadata; the same model gives the same file. */
static void says_what_it_is(void)
{
    static char bytes[2][1 << 19];
    int64_t count[2];
    sdlf_model *model = export_case_model(NULL, "lenet5");
    sdlf_onnx_exported result;
    *sdlf_model_normalization(model) = (sdlf_normalization){.mean = 0.25f, .scale = 4, .known = true};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sdlf_model_to_onnx(model, test_path("said.onnx"), NULL, &result));
        count[i] = read_all(test_path("said.onnx"), bytes[i], sizeof bytes[i]);
        CHECK_EQUAL(count[i], result.bytes);
    }
    CHECK(count[0] == count[1] && memcmp(bytes[0], bytes[1], (size_t)count[0]) == 0);
    CHECK(contains(bytes[0], count[0], "sdlf.normalization"));
    CHECK(contains(bytes[0], count[0], "0.25"));
    sdlf_model *again = NULL;
    if (CHECK_OK(sdlf_model_from_onnx(&again, test_path("said.onnx"), NULL))) {
        const sdlf_normalization *found = sdlf_model_normalization(again);
        CHECK(found->known && found->mean == 0.25f && found->scale == 4);
    }
    sdlf_model_free(again);
    sdlf_model_free(model);
}

/* The graph accepts raw samples, and gives the model's results for the normalised ones. */
static void normalization_may_stand_in_front(void)
{
    for (int channels = 0; channels <= 3; channels += 3) {
        sdlf_model *model = NULL, *again = NULL;
        CHECK_OK(sdlf_network_builtin_for(&model, "mlp", sdlf_shape(3, 5, 4), 10));
        CHECK_OK(sdlf_model_build(model, 3));
        const sdlf_onnx_export_options options = {.normalize = true};
        CHECK_FAILS(sdlf_model_to_onnx(model, test_path("raw.onnx"), &options, NULL), SDLF_ERROR_ARGUMENT,
                    "does not say");
        sdlf_normalization how = {.mean = 90, .scale = 0.02f, .fit = SDLF_FIT_CROP, .known = true};
        how.channels =
            (sdlf_channel_normalization){.count = channels, .mean = {100, 110, 120}, .scale = {0.01f, 0.02f, 0.03f}};
        *sdlf_model_normalization(model) = how;
        CHECK_OK(sdlf_model_to_onnx(model, test_path("raw.onnx"), &options, NULL));
        export_run_values expected, found;
        CHECK_OK(export_case_run(&expected, model, 2, NULL));
        if (CHECK_OK(sdlf_model_from_onnx(&again, test_path("raw.onnx"), NULL))) {
            const sdlf_normalization *left = sdlf_model_normalization(again);
            CHECK(left->known && left->mean == 0 && left->scale == 1 && left->channels.count == 0 &&
                  left->fit == SDLF_FIT_CROP);
            float *value = expected.input[0].data; /* before normalisation */
            for (int64_t i = 0; i < sdlf_tensor_count(&expected.input[0]); i++) {
                const int c = (int)(i / 20 % 3);
                value[i] = channels > 0 ? value[i] / how.channels.scale[c] + how.channels.mean[c]
                                        : value[i] / how.scale + how.mean;
            }
            CHECK_OK(export_case_run(&found, again, 2, &expected));
            for (int64_t i = 0; i < sdlf_tensor_count(&expected.output[0]); i++)
                CHECK_CLOSE((double)((float *)found.output[0].data)[i], (double)((float *)expected.output[0].data)[i],
                            1e-5);
            export_run_release(&found);
        }
        export_run_release(&expected);
        sdlf_model_free(again);
        sdlf_model_free(model);
    }
}

/* ---- weights outside ---- */

static void weights_may_lie_outside(void)
{
    sdlf_model *model = export_case_model(NULL, "lenet5"), *again = NULL;
    sdlf_onnx_exported result;
    const char *path = test_path("outside.onnx");
    CHECK_OK(sdlf_model_to_onnx(model, path, &(sdlf_onnx_export_options){.external_data = true}, &result));
    CHECK(result.external_bytes > 61000 * 4 && result.bytes < 4096);
    char outside[600];
    struct stat at = {.st_size = 0};
    CHECK_EQUAL(outside_files(path, outside), 1);
    CHECK_TEXT(strrchr(outside, '/') + 1, result.external_file);
    CHECK(stat(outside, &at) == 0 && at.st_size == result.external_bytes);
    if (CHECK_OK(sdlf_model_from_onnx(&again, path, NULL))) {
        CHECK_EQUAL(sdlf_model_hash(again), sdlf_model_hash(model));
        compare_runs(model, again, 2, true);
    }
    sdlf_model_free(again);
    sdlf_model_free(model);
}

/* Weights are not written without their graph. */
static void weights_do_not_come_alone(void)
{
    const char *path = test_path("folder.onnx"); /* a folder with the graph's name */
    mkdir(path, 0700);
    sdlf_model *model = export_case_model(NULL, "lenet5");
    CHECK_FAILS(sdlf_model_to_onnx(model, path, &(sdlf_onnx_export_options){.external_data = true}, NULL),
                SDLF_ERROR_IO, "is a folder");
    CHECK_EQUAL(outside_files(path, NULL), 0);
    sdlf_model_free(model);
}

/* ---- memory ---- */

static sdlf_status export_again(void *model)
{
    sdlf_status status = sdlf_model_to_onnx(model, test_path("memory.onnx"), NULL, NULL);
    if (status != SDLF_OK) return status;
    return sdlf_model_to_onnx(model, test_path("memory.onnx"), &(sdlf_onnx_export_options){.external_data = true},
                              NULL);
}

static void every_allocation(void)
{
    const export_case *functions = export_cases;
    while (strcmp(functions->name, "normalisations") != 0) functions++;
    sdlf_model *model = export_case_model(functions, NULL);
    *sdlf_model_normalization(model) = (sdlf_normalization){.mean = 0.25f, .scale = 4, .known = true};
    test_every_allocation("export", export_again, model);
    sdlf_model_free(model);
}

/* Each block needs the same tables of rotary positions and the causal mask, (T,T): the file stores them once. */
static void equal_tables_are_one(void)
{
    int64_t bytes[2];
    for (int more = 0; more < 2; more++) {
        sdlf_onnx_exported result;
        sdlf_model *model = sdlf_model_create("blocks");
        sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(64, 4));
        sdlf_multi_head_attention_options heads = {.heads = 2, .causal = true, .rotary = true};
        for (int i = 0; i < 1 + more; i++) x = sdlf_multi_head_attention(model, x, &heads);
        sdlf_output(model, "y", x);
        CHECK_OK(sdlf_model_build(model, 1));
        CHECK_OK(sdlf_model_to_onnx(model, test_path("tables.onnx"), NULL, &result));
        bytes[more] = result.bytes;
        sdlf_model_free(model);
    }
    CHECK(bytes[1] - bytes[0] < 64 * 64 * 4 / 2);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_layer_is_missing);
        return test_summary();
    }
    RUN(every_layer_comes_back);
    RUN(no_layer_is_missing);
    RUN(built_in_networks_come_back);
    RUN(trained_on_and_back);
    RUN(says_what_it_is);
    RUN(normalization_may_stand_in_front);
    RUN(weights_may_lie_outside);
    RUN(weights_do_not_come_alone);
    RUN(every_allocation);
    RUN(equal_tables_are_one);
    return test_summary();
}
