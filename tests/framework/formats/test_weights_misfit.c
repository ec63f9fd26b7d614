/* SPDX-License-Identifier: MIT */
/* Weights files from other programs: one that does not match the network is rejected, and changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "framework/formats/safetensors.h"
#include "framework/formats/weights_network.h"

/* ---- files that others wrote ---- */

enum { PARAMETERS = 8 };

/* Write the parameters of `model` as items that `change` may alter first. */
static void write_changed(sdlf_model *model, const char *path, void (*change)(safetensors_item *items, size_t *count),
                          const char *key, const char *text)
{
    safetensors_item items[PARAMETERS + 2];
    size_t count = 0;
    if (!CHECK_EQUAL(sdlf_model_parameter_count(model), PARAMETERS)) return;
    for (int i = 0; i < PARAMETERS; i++)
        items[count++] =
            (safetensors_item){sdlf_model_parameter(model, i)->name, sdlf_model_parameter(model, i)->value};
    if (change != NULL) change(items, &count);
    json_t *metadata = json_object();
    if (key != NULL) CHECK(json_object_set_new(metadata, key, json_string(text)) == 0);
    CHECK_OK(safetensors_write(path, items, count, metadata));
    json_decref(metadata);
}

static float loose[1024];

static void drop_last(safetensors_item *items, size_t *count)
{
    (void)items;
    --*count;
}
static void add_unknown(safetensors_item *items, size_t *count)
{
    items[(*count)++] = (safetensors_item){"extra", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(4), loose)};
}
static void add_lone_state(safetensors_item *items, size_t *count)
{
    items[(*count)++] = (safetensors_item){"optimizer.0.fc.bias", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(3), loose)};
}
static void add_fourth_state(safetensors_item *items, size_t *count)
{
    items[(*count)++] = (safetensors_item){"optimizer.3.fc.bias", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(3), loose)};
}
static void reshape_first(safetensors_item *items, size_t *count)
{
    (void)count;
    items[0].tensor.shape = sdlf_shape(1, 2, 3, 3);
}
static void integers(safetensors_item *items, size_t *count)
{
    (void)count;
    items[0].tensor = sdlf_tensor_view(SDLF_INT32, items[0].tensor.shape, loose);
}

/* Check that loading `path` fails with this error and leaves the model unchanged, whether trained or not even built. */
static void check_refused(const char *path, sdlf_status status, const char *message)
{
    sdlf_model *model = make_trained(5), *before = make_trained(5), *unbuilt = make_network("small", 3);
    CHECK_FAILS(sdlf_model_load(model, path), status, message);
    CHECK(same(model, before));
    CHECK_FAILS(sdlf_model_load(unbuilt, path), status, message);
    CHECK_EQUAL(sdlf_model_parameter_count(unbuilt), 0);
    sdlf_model_free(model);
    sdlf_model_free(before);
    sdlf_model_free(unbuilt);
}

static void files_that_do_not_fit(void)
{
    static const struct {
        void (*change)(safetensors_item *, size_t *);
        const char *key, *text, *message;
    } cases[] = {
        {drop_last, NULL, NULL, "the file has no tensor for the parameter 'fc.bias' of shape 3"},
        {add_unknown, NULL, NULL, "the network has no parameter for the tensor 'extra' of shape 4"},
        {add_lone_state, NULL, NULL, "the file has no optimizer state 0 of parameter 'conv2d.weight'"},
        {add_fourth_state, NULL, NULL, "the network has no parameter for the tensor 'optimizer.3.fc.bias'"},
        {reshape_first, NULL, NULL, "tensor 'conv2d.weight' has the shape 1x2x3x3, but the network expects 2x1x3x3"},
        {integers, NULL, NULL, "tensor 'conv2d.weight' has dtype I32, expected F32, F64, F16 or BF16"},
        {NULL, "sdlf.training", "{", "the training state in its metadata is not JSON"},
        {NULL, "sdlf.training", "{}", "the training state in its metadata: 'step' must be an integer from 0 up"},
        {NULL, "sdlf.training", "{\"step\": -1}", "'step' must be an integer from 0 up"},
        {NULL, "sdlf.training", "{\"step\": 1, \"epoch\": 4294967296}", "'epoch' must be an integer from 0 up"},
        {NULL, "sdlf.training", "[]", "'step' must be"},
        {NULL, "sdlf.normalization", "{\"mean\": 1}", "the normalisation in its metadata: 'scale' must be a number"},
        {NULL, "sdlf.normalization", "{\"mean\": 1e99, \"scale\": 1}", "'mean' must be a finite number"},
    };
    sdlf_model *model = make_built(1);
    const char *path = test_path("misfit.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_changed(model, path, cases[i].change, cases[i].key, cases[i].text);
        check_refused(path, SDLF_ERROR_FORMAT, cases[i].message);
    }
    sdlf_model_free(model);
}

static void training_state_members(void)
{
    static const struct {
        const char *member, *text, *message;
    } cases[] = {
        {"seed", "\"1\"", NULL},
        {"seed", "1", "'seed' must be a string of digits"},
        {"seed", "\"-1\"", "'seed' must be a string of digits"},
        {"seed", "\"111111111111111111111\"", "'seed' must be a string of digits"},
        {"loss_sum", "\"1\"", "'loss_sum' must be a number"},
        {"loss_sum", "null", NULL},
        {"optimizer", "\"a name of more bytes than it may have\"", "'optimizer' must be a short string"},
        {"settings", "{}", "'settings' must be a string"},
        {"future", "1", NULL}, /* additions of later versions are ignored */
    };
    sdlf_model *model = make_built(1);
    const char *path = test_path("members.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *object =
            json_loads("{\"step\":1,\"epoch\":1,\"epoch_step\":1,\"loss_sum\":1,\"correct\":1,\"samples\":1,"
                       "\"seed\":\"1\",\"batch\":1,\"epochs\":1,\"optimizer\":\"\",\"data\":\"\",\"settings\":\"\"}",
                       0, NULL);
        CHECK(json_object_set_new(object, cases[i].member, json_loads(cases[i].text, JSON_DECODE_ANY, NULL)) == 0);
        char *text = json_dumps(object, 0);
        write_changed(model, path, NULL, "sdlf.training", text);
        if (cases[i].message != NULL)
            check_refused(path, SDLF_ERROR_FORMAT, cases[i].message);
        else
            CHECK_OK(sdlf_model_load(model, path));
        free(text);
        json_decref(object);
    }
    sdlf_model_free(model);
}

static void damaged_files(void)
{
    const char *path = test_path("damaged.safetensors");
    sdlf_model *model = make_trained(1);
    check_refused(path, SDLF_ERROR_IO, "No such file or directory");
    CHECK_OK(sdlf_model_save_checkpoint(model, path));
    CHECK(truncate(path, 3000) == 0);
    check_refused(path, SDLF_ERROR_FORMAT, "are not within the");
    CHECK(truncate(path, 300) == 0);
    check_refused(path, SDLF_ERROR_FORMAT, "cut short");
    sdlf_model_free(model);
}

static void weights_of_another_network(void)
{
    const char *path = test_path("other.safetensors");
    sdlf_model *other = make_network("larger", 4);
    CHECK_OK(sdlf_model_build(other, 1));
    CHECK_OK(sdlf_model_save(other, path));
    check_refused(path, SDLF_ERROR_FORMAT, "but the network expects 3");
    sdlf_model_free(other);
    other = sdlf_model_create("another");
    sdlf_node x = sdlf_input(other, "x", SDLF_FLOAT32, sdlf_shape(4));
    sdlf_fully_connected(other, x, &(sdlf_fully_connected_options){.units = 2});
    CHECK_OK(sdlf_model_build(other, 1));
    CHECK_OK(sdlf_model_save(other, path));
    check_refused(path, SDLF_ERROR_FORMAT, "; the file holds weights of 'another', this network is 'small'");
    sdlf_model_free(other);
}

static void other_types_are_converted(void)
{
    static const sdlf_dtype types[] = {SDLF_FLOAT64, SDLF_FLOAT16, SDLF_BFLOAT16};
    const char *path = test_path("types.safetensors");
    for (int t = 0; t < 3; t++) {
        sdlf_model *model = make_built(1), *loaded = make_built(2);
        safetensors_item items[PARAMETERS];
        for (int i = 0; i < PARAMETERS; i++) {
            sdlf_parameter *parameter = sdlf_model_parameter(model, i);
            int64_t count = sdlf_tensor_count(&parameter->value);
            void *values = malloc((size_t)count * sdlf_dtype_size(types[t]));
            if (!CHECK(values != NULL)) return;
            sdlf_convert(types[t], values, SDLF_FLOAT32, parameter->value.data, count);
            sdlf_convert(SDLF_FLOAT32, parameter->value.data, types[t], values, count); /* what must come back */
            items[i] = (safetensors_item){parameter->name, sdlf_tensor_view(types[t], parameter->spec.shape, values)};
        }
        CHECK_OK(safetensors_write(path, items, PARAMETERS, NULL));
        CHECK_OK(sdlf_model_load(loaded, path));
        CHECK_EQUAL(sdlf_model_hash(loaded), sdlf_model_hash(model));
        for (int i = 0; i < PARAMETERS; i++) free(items[i].tensor.data);
        sdlf_model_free(model);
        sdlf_model_free(loaded);
    }
}

/* ---- opening ---- */

static void files_without_a_network(void)
{
    const char *path = test_path("bare.safetensors");
    sdlf_model *model = make_built(1), *opened;
    write_changed(model, path, NULL, NULL, NULL);
    CHECK_OK(sdlf_model_load(model, path));
    CHECK_FAILS(sdlf_model_open(&opened, path), SDLF_ERROR_FORMAT, "there is no 'sdlf.network' in its metadata");
    CHECK(opened == NULL);
    write_changed(model, path, NULL, "sdlf.network", "{\n\"layer\": []}");
    CHECK_FAILS(sdlf_model_open(&opened, path), SDLF_ERROR_FORMAT,
                "bare.safetensors (its network):2: unknown field 'layer'");
    CHECK(opened == NULL);
    write_changed(model, path, NULL, "sdlf.network",
                  "{\"input\": {\"shape\": [4]}, \"layers\": [{\"type\": \"fully_connected\", \"units\": 1}]}");
    CHECK_FAILS(sdlf_model_open(&opened, path), SDLF_ERROR_FORMAT, "the network has no parameter for the tensor");
    sdlf_model_free(model);
}

int main(void)
{
    RUN(files_that_do_not_fit);
    RUN(training_state_members);
    RUN(damaged_files);
    RUN(weights_of_another_network);
    RUN(other_types_are_converted);
    RUN(files_without_a_network);
    return test_summary();
}
