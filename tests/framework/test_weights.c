/* Weights and checkpoints: what is saved comes back bit for bit; a file that does not fit changes nothing. */
#include "testing.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sdlf/formats.h>
#include <sdlf/layers.h>

#include "framework/formats/safetensors.h"

/* conv2d.weight (2,1,3,3), conv2d.bias (2), batch_norm2d.* (2) of which two are no trainable ones, fc.weight (3,72),
 * fc.bias (3) */
static sdlf_model *make_network(const char *name, int units)
{
    sdlf_model *model = sdlf_model_create(name);
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, 8, 8));
    x = sdlf_conv2d(model, x, &(sdlf_conv2d_options){.filters = 2, .kernel = {3, 3}});
    x = sdlf_batch_norm2d(model, x, NULL);
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "fc", .units = units});
    sdlf_output(model, "class", sdlf_softmax(model, x));
    return model;
}

static sdlf_model *make_built(uint64_t seed)
{
    sdlf_model *model = make_network("small", 3);
    CHECK_OK(sdlf_model_build(model, seed));
    return model;
}

/* A model in the middle of its training. */
static sdlf_model *make_trained(uint64_t seed)
{
    sdlf_model *model = make_built(seed);
    CHECK_OK(sdlf_model_require_states(model, 2));
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        for (int s = 0; s < 2; s++)
            for (int64_t e = 0; sdlf_tensor_present(&parameter->state[s]) && e < sdlf_tensor_count(&parameter->value);
                 e++)
                ((float *)parameter->state[s].data)[e] =
                    (float)((i + 1) * 1000 + s * 100) + (float)e * 0.1f + (float)seed;
    }
    *sdlf_model_normalization(model) = (sdlf_normalization){.mean = 0.1307f, .scale = 1 / 0.3081f, .known = true};
    sdlf_training_state *state = sdlf_model_training_state(model);
    *state = (sdlf_training_state){.present = true,
                                   .step = 123456789012,
                                   .epoch = 3,
                                   .epoch_step = 77,
                                   .loss_sum = 0.1 + 0.2,
                                   .correct = 4711,
                                   .samples = 4928,
                                   .seed = UINT64_MAX - 1,
                                   .batch = 64,
                                   .epochs = 5,
                                   .optimizer = "adam",
                                   .data = "digits (procedural, seed 1)",
                                   .settings = "{\"beta1\": 0.9}"};
    return model;
}

/* Are values, states, normalisation and training state of both the same, bit for bit? */
static bool same_tensor(const sdlf_tensor *a, const sdlf_tensor *b)
{
    if (!sdlf_tensor_present(a) || !sdlf_tensor_present(b)) return sdlf_tensor_present(a) == sdlf_tensor_present(b);
    return sdlf_shape_equal(a->shape, b->shape) && memcmp(a->data, b->data, (size_t)sdlf_tensor_bytes(a)) == 0;
}

static bool same_training(const sdlf_training_state *a, const sdlf_training_state *b)
{
    return a->present == b->present && a->step == b->step && a->epoch == b->epoch && a->epoch_step == b->epoch_step &&
           memcmp(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum) == 0 && a->correct == b->correct &&
           a->samples == b->samples && a->seed == b->seed && a->batch == b->batch && a->epochs == b->epochs &&
           strcmp(a->optimizer, b->optimizer) == 0 && strcmp(a->data, b->data) == 0 &&
           strcmp(a->settings, b->settings) == 0;
}

static bool same(sdlf_model *a, sdlf_model *b)
{
    bool equal = sdlf_model_parameter_count(a) == sdlf_model_parameter_count(b) &&
                 same_training(sdlf_model_training_state(a), sdlf_model_training_state(b));
    const sdlf_normalization *left = sdlf_model_normalization(a), *right = sdlf_model_normalization(b);
    equal = equal && left->known == right->known && left->mean == right->mean && left->scale == right->scale;
    for (int i = 0; i < sdlf_model_parameter_count(a) && equal; i++) {
        const sdlf_parameter *p = sdlf_model_parameter(a, i), *q = sdlf_model_parameter(b, i);
        equal = strcmp(p->name, q->name) == 0 && same_tensor(&p->value, &q->value);
        for (int s = 0; s < 3; s++) equal = equal && same_tensor(&p->state[s], &q->state[s]);
    }
    return equal;
}

/* ---- what comes back ---- */

static void parameters_come_back(void)
{
    const char *path = test_path("weights.safetensors");
    sdlf_model *saved = make_trained(1), *loaded = make_built(2);
    CHECK(sdlf_model_hash(saved) != sdlf_model_hash(loaded));
    CHECK_OK(sdlf_model_save(saved, path));
    CHECK_OK(sdlf_model_load(loaded, path));
    CHECK_EQUAL(sdlf_model_hash(loaded), sdlf_model_hash(saved));
    CHECK(sdlf_model_normalization(loaded)->known);
    CHECK(sdlf_model_normalization(loaded)->mean == 0.1307f);
    CHECK(!sdlf_model_training_state(loaded)->present);
    CHECK(!sdlf_tensor_present(&sdlf_model_parameter(loaded, 0)->state[0]));
    sdlf_model_free(saved);
    sdlf_model_free(loaded);
}

static void checkpoint_comes_back_bit_for_bit(void)
{
    const char *path = test_path("checkpoint.safetensors");
    sdlf_model *saved = make_trained(1), *loaded = make_built(2), *unbuilt = make_network("small", 3), *opened = NULL;
    CHECK_OK(sdlf_model_save_checkpoint(saved, path));
    CHECK_OK(sdlf_model_load(loaded, path));
    CHECK(same(saved, loaded));
    CHECK_OK(sdlf_model_load(unbuilt, path));
    CHECK(same(saved, unbuilt));
    CHECK_OK(sdlf_model_open(&opened, path));
    CHECK(opened != NULL && same(saved, opened));
    if (opened != NULL) {
        CHECK_TEXT(sdlf_model_name(opened), "small");
        CHECK_TEXT(sdlf_model_output_name(opened, 0), "class");
    }
    sdlf_model_free(saved);
    sdlf_model_free(loaded);
    sdlf_model_free(unbuilt);
    sdlf_model_free(opened);
}

/* Loading changes values where they are: plans point to them. States of an earlier training become zero. */
static void memory_stays_in_place(void)
{
    const char *path = test_path("in_place.safetensors");
    sdlf_model *model = make_trained(1), *other = make_built(2);
    const sdlf_parameter *parameter = sdlf_model_parameter(model, 0);
    const void *value = parameter->value.data, *state = parameter->state[1].data;
    CHECK_OK(sdlf_model_save(other, path));
    CHECK_OK(sdlf_model_load(model, path));
    CHECK(parameter->value.data == value && parameter->state[1].data == state);
    CHECK_EQUAL(((const float *)state)[0] == 0, 1);
    CHECK_EQUAL(sdlf_model_hash(model), sdlf_model_hash(other));
    CHECK(sdlf_model_normalization(model)->known); /* the file has none, so it stays */
    sdlf_model_free(model);
    sdlf_model_free(other);
}

static void odd_numbers_come_back(void)
{
    const char *path = test_path("odd.safetensors");
    sdlf_model *saved = make_trained(1), *loaded = make_built(2);
    float *values = sdlf_model_parameter(saved, 0)->value.data;
    values[0] = NAN, values[1] = -INFINITY, values[2] = -0.0f, values[3] = 1e-42f;
    sdlf_training_state *state = sdlf_model_training_state(saved);
    state->loss_sum = INFINITY;
    snprintf(state->data, sizeof state->data, "mnist (/d\xff)");
    CHECK_OK(sdlf_model_save_checkpoint(saved, path));
    CHECK_OK(sdlf_model_load(loaded, path));
    CHECK(same_tensor(&sdlf_model_parameter(saved, 0)->value, &sdlf_model_parameter(loaded, 0)->value));
    CHECK(isnan(sdlf_model_training_state(loaded)->loss_sum));
    CHECK_TEXT(sdlf_model_training_state(loaded)->data, "mnist (/d?)");
    sdlf_model_free(saved);
    sdlf_model_free(loaded);
}

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

/* Loading `path` fails so, and the model stays as it was, trained or not built at all. */
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
        {add_lone_state, NULL, NULL, "the file has no optimiser state 0 of parameter 'conv2d.weight'"},
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
        {"future", "1", NULL}, /* what later versions add is passed over */
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
    check_refused(path, SDLF_ERROR_FORMAT, "do not lie in the");
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

/* ---- refusals to save ---- */

static void refuses_to_save(void)
{
    sdlf_model *model = make_network("small", 3), *broken = make_network("broken", -1);
    CHECK_FAILS(sdlf_model_save(model, test_path("x")), SDLF_ERROR_ARGUMENT,
                "model 'small' has no parameters to save yet");
    CHECK_FAILS(sdlf_model_save(broken, test_path("x")), SDLF_ERROR_ARGUMENT, "units");
    CHECK_FAILS(sdlf_model_load(broken, test_path("x")), SDLF_ERROR_ARGUMENT, "units");
    CHECK_FAILS(sdlf_model_save(NULL, test_path("x")), SDLF_ERROR_MEMORY, "");
    CHECK_OK(sdlf_model_build(model, 1));
    CHECK_FAILS(sdlf_model_save(model, "/dev/full"), SDLF_ERROR_IO, "No space left on device");
    CHECK_FAILS(sdlf_model_save(model, test_path("none/x")), SDLF_ERROR_IO, "No such file or directory");
    *sdlf_model_normalization(model) = (sdlf_normalization){.scale = INFINITY, .known = true};
    CHECK_FAILS(sdlf_model_save(model, test_path("x")), SDLF_ERROR_NUMERIC, "the normalisation must be finite");
    CHECK(access(test_path("x"), F_OK) != 0);
    sdlf_model_free(model);
    sdlf_model_free(broken);
}

/* Save checkpoints of two trainings in turn, for ever. */
static void save_for_ever(const char *path)
{
    sdlf_model *models[2] = {make_trained(1), make_trained(2)};
    for (int turn = 0;; turn ^= 1)
        if (sdlf_model_save_checkpoint(models[turn], path) != SDLF_OK) _exit(1);
}

static void killed_while_saving(void)
{
    const char *path = test_path("killed.safetensors");
    sdlf_model *first = make_trained(1), *second = make_trained(2), *loaded = make_built(3);
    CHECK_OK(sdlf_model_save_checkpoint(first, path));
    uint32_t random = 99;
    for (int round = 0; round < 30; round++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) save_for_ever(path);
        random = random * 1664525 + 1013904223;
        nanosleep(&(struct timespec){.tv_nsec = 2000000 + random % 8000000}, NULL);
        CHECK(child > 0 && kill(child, SIGKILL) == 0);
        int result = 0;
        CHECK(waitpid(child, &result, 0) == child && WIFSIGNALED(result));
        CHECK_OK(sdlf_model_load(loaded, path));
        CHECK(same(loaded, first) || same(loaded, second));
    }
    sdlf_model_free(first);
    sdlf_model_free(second);
    sdlf_model_free(loaded);
}

/* ---- memory: the framework's allocations; jansson's stay, since its parser loses bytes of a long string, or aborts, when
 * its buffer cannot grow ---- */

static sdlf_status save_and_open(void *model)
{
    const char *path = test_path("allocations.safetensors");
    sdlf_status status = sdlf_model_save_checkpoint(model, path);
    sdlf_model *opened = NULL;
    if (status == SDLF_OK) status = sdlf_model_open(&opened, path);
    sdlf_model_free(opened);
    return status;
}

/* A failed load leaves the model as it was, whichever allocation fails. */
static void load_unchanged(const char *path)
{
    sdlf_model *model = make_built(1), *before = make_built(1);
    for (int64_t n = 1;; n++) {
        test_fail_allocation(n);
        sdlf_status status = sdlf_model_load(model, path);
        bool failed = test_allocation_failed();
        test_fail_allocation(0);
        if (status == SDLF_OK) {
            sdlf_model_free(model);
            if (!failed) break;
            model = make_built(1); /* the failure was survived: start afresh */
        } else {
            CHECK(same(model, before));
        }
    }
    sdlf_model_free(before);
}

static void every_allocation(void)
{
    sdlf_model *model = make_trained(1);
    test_every_allocation("save and open", save_and_open, model);
    const char *path = test_path("unchanged.safetensors");
    CHECK_OK(sdlf_model_save_checkpoint(model, path));
    load_unchanged(path);
    sdlf_model_free(model);
}

int main(void)
{
    RUN(parameters_come_back);
    RUN(checkpoint_comes_back_bit_for_bit);
    RUN(memory_stays_in_place);
    RUN(odd_numbers_come_back);
    RUN(files_that_do_not_fit);
    RUN(training_state_members);
    RUN(damaged_files);
    RUN(weights_of_another_network);
    RUN(other_types_are_converted);
    RUN(files_without_a_network);
    RUN(refuses_to_save);
    RUN(killed_while_saving);
    RUN(every_allocation);
    return test_summary();
}
