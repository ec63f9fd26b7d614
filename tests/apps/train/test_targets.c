/* SPDX-License-Identifier: MIT */
/* sdlf train, eval and predict with float targets and multiple labels; training options that are stored in files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "datasets/idx_files.h"
#include "testing.h"

/* Rows of a, b and c with the targets a + 2 b, a - c and whether a is above 0. */
static const char *table(const char *columns)
{
    static char set[1200], text[40000];
    char *at = text;
    at += sprintf(at, "a,b,c,sum,diff,pos,neg\n");
    for (int i = 0; i < 400; i++) {
        int a = i * 37 % 101 - 50, b = i * 53 % 97 - 48, c = i * 71 % 89 - 44;
        at += sprintf(at, "%.3f,%.3f,%.3f,%.3f,%.3f,%d,%d\n", a / 50.0, b / 50.0, c / 50.0, (a + 2 * b) / 50.0,
                      (a - c) / 50.0, a > 0, b < 0);
    }
    test_write_file(test_path("t.csv"), text, (size_t)(at - text));
    snprintf(set, sizeof set, "csv:%s,label=%s", test_path("t.csv"), columns);
    return set;
}

#define TRAIN(...) "train", "--net", "mlp", "--calculator", "reference", "--batch", "20", __VA_ARGS__

static void numbers_are_met(void)
{
    char weights[1024];
    snprintf(weights, sizeof weights, "%s", test_path("r.safetensors"));
    const program *p = SDLF(0, TRAIN("--data", table("sum..diff"), "--loss", "mse", "--epochs", "4", "--out", weights));
    CHECK_TEXT(p->err, "");
    CHECK_SAYS(p, "test RMSE ");
    CHECK_SAYS(p, "  target");
    CHECK_SAYS(p, "  0 sum ");
    CHECK_SAYS(p, "\ntest   RMSE 0.");
    CHECK(strstr(p->out, "accuracy") == NULL);
    p = SDLF(0, "eval", "--weights", weights, "--calculator", "reference"); /* the file has the loss and the data */
    CHECK_SAYS(p, "\ntest   RMSE 0.");
    p = SDLF(0, "eval", "--weights", weights, "--calculator", "reference", "--json");
    CHECK_SAYS(p, "\"loss_name\": \"mse\"");
    CHECK_SAYS(p, "\"r2\": 0.9");
    CHECK_SAYS(SDLF(0, "train", "--resume", weights, "--epochs", "5", "--calculator", "reference"), "epoch 5/5");
    CHECK_SAYS(SDLF(1, "eval", "--weights", weights, "--data", "digits:100", "--calculator", "reference"),
               "has classes, not float targets");
    CHECK_SAYS(SDLF(2, "eval", "--weights", weights, "--loss", "mape"), "mape");
    CHECK_SAYS(SDLF(1, TRAIN("--data", "digits:100", "--loss", "mae", "--no-save")), "not float targets");
    CHECK_SAYS(SDLF(2, TRAIN("--data", table("sum"), "--loss", "mse", "--class-weights", "balanced", "--no-save")),
               "class_weights is for classes");
}

static void several_labels_hold(void)
{
    char weights[1024];
    snprintf(weights, sizeof weights, "%s", test_path("m.safetensors"));
    const program *p = SDLF(0, TRAIN("--data", table("pos..neg"), "--loss", "bce_with_logits", "--epochs", "4", "--out",
                                     weights, "--keep", "best"));
    CHECK_SAYS(p, "  label");
    CHECK_SAYS(p, "% of the labels  F1 9");
    CHECK_SAYS(p, " samples all right");
    CHECK_SAYS(SDLF(0, "eval", "--weights", weights, "--calculator", "reference", "--json"), "\"f1\": 0.9");
    CHECK_SAYS(SDLF(2, TRAIN("--data", table("sum"), "--loss", "bce_with_logits", "--no-save")), "expected 0 to 1");
}

/* For an image, a network that predicts numbers, and one that predicts which labels apply. */
static void predictions(void)
{
    unsigned char pixels[64] = {0};
    char picture[1024], values[1024], labels[1024];
    idx_bytes file = idx_make(sdlf_shape(1, 8, 8), pixels);
    snprintf(picture, sizeof picture, "%s", test_path("p.idx"));
    test_write_file(picture, file.data, file.size);
    free(file.data);
    snprintf(values, sizeof values, "%s", test_path("values.safetensors"));
    snprintf(labels, sizeof labels, "%s", test_path("labels.safetensors"));
    for (int which = 0; which < 2; which++) {
        static const char *const names[] = {"width", "height"};
        sdlf_model *net = sdlf_model_create("two");
        sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 8, 8));
        sdlf_output(net, "value",
                    sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.name = "f", .units = 2}));
        CHECK_OK(sdlf_model_build(net, 1));
        float *bias = sdlf_model_find_parameter(net, "f.bias")->value.data;
        bias[0] = 3.5f;
        bias[1] = -4;
        *sdlf_model_normalization(net) = (sdlf_normalization){.scale = 1, .known = true};
        CHECK_OK(sdlf_model_set_classes(net, names, 2));
        CHECK_OK(sdlf_model_set_loss(net, which == 0 ? SDLF_LOSS_HUBER : SDLF_LOSS_BCE));
        CHECK_OK(sdlf_model_save(net, which == 0 ? values : labels));
        sdlf_model_free(net);
    }
    const program *p = SDLF(0, "predict", "--weights", values, "--calculator", "reference", picture);
    CHECK_SAYS(p, "   width 3.5   height -4\n");
    CHECK_SAYS(SDLF(0, "predict", "--weights", values, "--calculator", "reference", "--json", picture),
               "\"values\": [\n      3.5,\n      -4.0\n");
    p = SDLF(0, "predict", "--weights", labels, "--calculator", "reference", picture);
    CHECK_SAYS(p, "   0   97.1%  width\n"); /* 1 / (1 + exp(-3.5)); the other is below a half */
    CHECK_SAYS(SDLF(0, "predict", "--weights", labels, "--calculator", "reference", "--top", "2", picture), "height");
}

#define DIGITS "train", "--data", "digits:200", "--net", "lenet5", "--batch", "16", "--schedule", "constant"

/* Options that a checkpoint keeps: a shorter training is resumed and equals the longer one. */
static void options_go_through_files(void)
{
#define ALL                                                                                                            \
    "--ema", "0.9", "--lookahead", "3", "--accumulate", "2", "--lr-scale", "trunk=0.5,head=2", "--mixup", "0.5",       \
        "--cutmix", "1", "--augment-trivial", "--class-weights", "balanced"
    char weights[1024], hash[16];
    snprintf(weights, sizeof weights, "%s", test_path("options.safetensors"));
    const program *p = SDLF(0, DIGITS, ALL, "--epochs", "2", "--no-save");
    const char *second = strstr(p->out, "epoch 2/2");
    const char *found = second ? strstr(second, "weights ") : NULL;
    if (!CHECK(found != NULL)) return;
    snprintf(hash, sizeof hash, "%.8s", found + 8);
    SDLF(0, DIGITS, ALL, "--epochs", "1", "--out", weights, "--threads", "1");
    p = SDLF(0, "train", "--resume", weights, "--epochs", "2", "--threads", "2");
    CHECK_SAYS(p, hash);
    CHECK_SAYS(SDLF(2, "train", "--resume", weights, "--epochs", "3", "--mixup", "0.1"), "mixup is not what");
    CHECK_SAYS(SDLF(2, DIGITS, "--no-save", "--lr-scale", "nothing=2"), "has no parameter 'nothing'");
    CHECK_SAYS(SDLF(2, DIGITS, "--no-save", "--class-weights", "1,2"), "expected balanced, or 10 numbers above 0");
    p = SDLF(0, "eval", "--weights", weights, "--tta", "shift");
    CHECK_SAYS(p, " right  loss ");
    CHECK_SAYS(SDLF(2, "eval", "--weights", weights, "--tta", "twice"), "none, flip, shift");
#undef ALL
}

int main(void)
{
    RUN(numbers_are_met);
    RUN(several_labels_hold);
    RUN(predictions);
    RUN(options_go_through_files);
    return test_summary();
}
