/* SPDX-License-Identifier: MIT */
/* The text data set: characters, samples, invalid files; and that a network learns from one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

static sdlf_status open_as(sdlf_dataset **data, const char *behind, sdlf_split split)
{
    char specification[2048];
    snprintf(specification, sizeof specification, "text:%s%s", test_path("a.txt"), behind);
    return sdlf_dataset_open(data, specification, split);
}

static void write_text(const char *text)
{
    test_write_file(test_path("a.txt"), text, strlen(text));
}

/* 20 characters: 18 to train on, 2 to test on. */
static void characters_are_classes(void)
{
    static const char *const names[] = {"\\x01",           "\\t", "\\n", "\\\\", "a", "b", "\xc3\xa4", "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80"};
    static const int32_t token[20] = {5, 4, 6, 7, 8, 0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 4};
    sdlf_dataset *data = NULL;
    write_text("ba\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\x01\t\n\\aaaaaaaaaba");
    if (CHECK_OK(open_as(&data, ",length=4", SDLF_SPLIT_TRAIN))) {
        CHECK_EQUAL(data->class_count, 9);
        for (int i = 0; i < 9; i++) CHECK_TEXT(data->class_names[i], names[i]);
        CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(4, 4)) && data->samples.dtype == SDLF_UINT8);
        CHECK(sdlf_shape_equal(data->labels.shape, sdlf_shape(4, 4)) && data->labels.dtype == SDLF_INT32);
        for (int i = 0; i < 16; i++) {
            CHECK_EQUAL(((const uint8_t *)data->samples.data)[i], token[i]);
            CHECK_EQUAL(((const int32_t *)data->labels.data)[i], token[i + 1]);
        }
        CHECK(data->mean == 0 && data->scale == 1);
    }
    sdlf_dataset_free(data);
    if (CHECK_OK(open_as(&data, ",length=1", SDLF_SPLIT_TEST))) {
        CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(1, 1)));
        CHECK_EQUAL(((const uint8_t *)data->samples.data)[0], 5);
        CHECK_EQUAL(((const int32_t *)data->labels.data)[0], 4);
    }
    sdlf_dataset_free(data);
}

static void nonsense_is_refused(void)
{
    sdlf_dataset *data = NULL;
    write_text("abcab\xff");
    CHECK_FAILS(open_as(&data, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT,
                "byte 5: expected a character in UTF-8, found ff");
    write_text("ab\xc0\x80");
    CHECK_FAILS(open_as(&data, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT, "byte 2: expected a character in UTF-8");
    write_text("ab\xe2\x82");
    CHECK_FAILS(open_as(&data, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT, "byte 2: expected a character in UTF-8");
    write_text("aaaa");
    CHECK_FAILS(open_as(&data, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT,
                "expected 2 to 4096 different characters, found 1");
    write_text("abababababab");
    CHECK_FAILS(open_as(&data, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT,
                "samples of 128 characters and what follows need 129 for training, found 11 of 12");
    CHECK_FAILS(open_as(&data, ",length=2", SDLF_SPLIT_TEST), SDLF_ERROR_FORMAT, "need 3 for testing, found 1 of 12");
    CHECK_FAILS(open_as(&data, ",length=0", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "length=0: expected a number of 1");
    CHECK_FAILS(sdlf_dataset_open(&data, "text", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "expected text:FILE");
    CHECK_FAILS(sdlf_dataset_check("text:/nowhere", SDLF_SPLIT_TRAIN), SDLF_ERROR_IO, "cannot open '/nowhere'");
}

/* ---- learning ---- */

static sdlf_model *small_decoder(int64_t length, int classes)
{
    sdlf_model *net = sdlf_model_create("decoder");
    sdlf_node x = sdlf_input(net, "tokens", SDLF_FLOAT32, sdlf_shape(length)), y;
    x = sdlf_embedding(net, x, &(sdlf_embedding_options){.vocabulary = classes, .units = 32, .deviation = 0.1f});
    x = sdlf_position_embedding(net, x, NULL);
    sdlf_multi_head_attention_options heads = {.heads = 4, .causal = true};
    y = sdlf_multi_head_attention(net, sdlf_layer_norm(net, x, NULL), &heads);
    x = sdlf_add(net, x, y);
    y = sdlf_fully_connected(net, sdlf_rms_norm(net, x, NULL),
                             &(sdlf_fully_connected_options){.units = 64, .axis = -1});
    y = sdlf_unary(net, y, &(sdlf_unary_options){.function = SDLF_UNARY_GELU});
    x = sdlf_add(net, x, sdlf_fully_connected(net, y, &(sdlf_fully_connected_options){.units = 32, .axis = -1}));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = classes, .axis = -1});
    const sdlf_layer_class *softmax = sdlf_layer_class_find("softmax");
    sdlf_output(net, "next", sdlf_model_add(net, softmax, &(sdlf_softmax_options){.axis = -1}, &x, 1));
    return net;
}

typedef struct losses {
    double first, last, test;
    int64_t samples;
} losses;

static void reading_has_a_budget(void)
{
    sdlf_dataset *data;
    char specification[1024];
    write_text("abababababab");
    snprintf(specification, sizeof specification, "text:%s,length=1", test_path("a.txt"));
    CHECK(setenv("SDLF_READ_MEMORY", "71", 1) == 0);
    CHECK_FAILS(sdlf_dataset_open(&data, specification, SDLF_SPLIT_TRAIN), SDLF_ERROR_MEMORY,
                "a.txt: 6 times its size is more than the 71 bytes of memory that reading a file of 12 bytes may take");
    CHECK(setenv("SDLF_READ_MEMORY", "72", 1) == 0);
    CHECK_OK(sdlf_dataset_open(&data, specification, SDLF_SPLIT_TRAIN));
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
    sdlf_dataset_free(data);
}

static void note(const sdlf_progress *now, void *user)
{
    losses *l = user;
    if (now->event != SDLF_PROGRESS_EPOCH) return;
    if (now->epoch == 1) l->first = now->loss;
    l->last = now->loss;
    l->test = now->test_loss;
    l->samples = now->samples;
}

/* The project's own words, on every calculator: the last epoch's loss is well below the first one's, and that of a
 * network which knows only how often each character occurs (about 3.1). */
static void a_decoder_learns(void)
{
    enum { LENGTH = 32 };
    sdlf_dataset *train = NULL, *test = NULL;
    const char *text = "text:" SDLF_SOURCE_DIR "/docs/guides/principles.md,length=32";
    if (!CHECK_OK(sdlf_dataset_open(&train, text, SDLF_SPLIT_TRAIN)) ||
        !CHECK_OK(sdlf_dataset_open(&test, text, SDLF_SPLIT_TEST)))
        return;
    sdlf_trainer *trainer = NULL;
    losses seen = {.first = 0};
    sdlf_model *net = small_decoder(LENGTH, train->class_count);
    sdlf_trainer_options options = {.batch = 8,
                                    .epochs = 8,
                                    .optimizer = sdlf_adamw(.weight_decay = 0.01),
                                    .schedule = {.kind = SDLF_SCHEDULE_ONE_CYCLE, .peak = 0.01f},
                                    .forward = "cpu",
                                    .callback = note,
                                    .user = &seen};
    if (CHECK_OK(sdlf_trainer_create(&trainer, net, train, test, &options))) {
        CHECK_OK(sdlf_trainer_run(trainer));
        CHECK_EQUAL(seen.samples, sdlf_tensor_count(&train->labels));
        if (!CHECK(seen.last < 2.6 && seen.last < 0.85 * seen.first && seen.test < 2.9))
            printf("  losses %g, then %g, in the test %g\n", seen.first, seen.last, seen.test);
        CHECK_EQUAL(sdlf_model_class_count(net), train->class_count);
    }
    sdlf_trainer_free(trainer);
    options.mixing.mixup = 0.5f;
    CHECK_FAILS(sdlf_trainer_create(&trainer, net, train, test, &options), SDLF_ERROR_ARGUMENT,
                "are for samples of one label");
    sdlf_model_free(net);
    sdlf_dataset_free(train);
    sdlf_dataset_free(test);
}

int main(void)
{
    RUN(characters_are_classes);
    RUN(nonsense_is_refused);
    RUN(reading_has_a_budget);
    RUN(a_decoder_learns);
    return test_summary();
}
