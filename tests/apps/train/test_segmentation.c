/* SPDX-License-Identifier: MIT */
/* sdlf data, train, eval and predict with a label for each pixel. */
#include <stdio.h>
#include <string.h>

#include <sdlf/formats.h>

#include "apps/program.h"
#include "datasets/folder_pictures.h"
#include "testing.h"

static void write_grey(const char *inside, const unsigned char *pixels)
{
    idx_bytes file = idx_make(sdlf_shape(1, 8, 8), pixels);
    test_write_file(path_of(inside), file.data, file.size);
    free(file.data);
}

/* Bright bars, whose pixels are class 1; two pixels of each image are ignored. */
static void write_scenes(void)
{
    begin();
    folder("images");
    folder("masks");
    for (int n = 0; n < 60; n++) {
        unsigned char pixels[64], mask[64];
        char name[64];
        for (int i = 0; i < 64; i++) {
            bool bar = n % 2 ? i / 8 == n % 8 : i % 8 == n % 7;
            pixels[i] = (unsigned char)((i * 7 + n * 13) % 60 + (bar ? 150 : 0));
            mask[i] = i < 2 ? 255 : bar;
        }
        snprintf(name, sizeof name, "images/%02d.png", n);
        write_grey(name, pixels);
        snprintf(name, sizeof name, "masks/%02d.png", n);
        write_grey(name, mask);
    }
    test_write_file(path_of("classes.txt"), "ground\nbar\n", 11);
}

/* With a bounded cache: the same weights, bit for bit. */
static void streamed(const char *set)
{
    static const char network[] =
        "{\"name\":\"bars\",\"input\":{\"name\":\"image\",\"shape\":[1,128,128]},\"layers\":["
        "{\"type\":\"conv2d\",\"name\":\"classes\",\"filters\":2,\"kernel\":3,\"padding\":1}],"
        "\"outputs\":{\"class\":\"classes\"}}";
    char net[1024], weights[2][1024];
    uint32_t hash[2] = {0, 1};
    snprintf(net, sizeof net, "%s", test_path("large.json"));
    test_write_file(net, network, sizeof network - 1);
    for (int i = 0; i < 2; i++) {
        snprintf(weights[i], sizeof weights[i], "%s", test_path(i ? "streamed.safetensors" : "held.safetensors"));
        CHECK_SAYS(SDLF(0, "train", "--data", set, "--net", net, "--epochs", "1", "--batch", "8", "--class-weights",
                        "balanced", "--augment-resized-crop", "0.4", "--out", weights[i], i ? "--cache" : "--workers",
                        "1"),
                   "mean IoU");
        sdlf_model *model = NULL;
        if (CHECK_OK(sdlf_model_open(&model, weights[i]))) hash[i] = sdlf_model_hash(model);
        sdlf_model_free(model);
    }
    CHECK_EQUAL(hash[0], hash[1]);
    CHECK_SAYS(SDLF(0, "data", set, "--size", "128", "--cache", "1"), "none of samples in memory");
    CHECK_SAYS(SDLF(0, "eval", "--weights", weights[1], "--cache", "1"), "mean IoU");
}

static void scenes(void)
{
    static const char network[] =
        "{\"name\":\"bars\",\"input\":{\"name\":\"image\",\"shape\":[1,8,8]},\"layers\":["
        "{\"type\":\"conv2d\",\"filters\":6,\"kernel\":3,\"padding\":1},{\"type\":\"relu\"},"
        "{\"type\":\"conv2d\",\"name\":\"classes\",\"filters\":2,\"kernel\":1}],\"outputs\":{\"class\":\"classes\"}}";
    char set[600], net[1024], weights[1024], log[1024];
    write_scenes();
    snprintf(set, sizeof set, "segmentation:%s", root);
    snprintf(net, sizeof net, "%s", test_path("bars.json"));
    snprintf(weights, sizeof weights, "%s", test_path("bars.safetensors"));
    snprintf(log, sizeof log, "%s", test_path("bars.jsonl"));
    test_write_file(net, network, sizeof network - 1);
    CHECK_SAYS(SDLF(0, "data", set), "  1 bar ");
#define TRAIN "train", "--data", set, "--net", net, "--batch", "8", "--optimizer", "adam"
    const program *p = SDLF(0, TRAIN, "--epochs", "12", "--learning-rate", "0.05", "--augment-flip", "--augment-crop",
                            "1", "--log", log, "--out", weights);
    CHECK_TEXT(p->err, "");
    CHECK_SAYS(p, "  mean IoU 100.00%");
    CHECK_SAYS(p, "class     pixels  precision   recall      IoU");
    char line[8192];
    int epochs = 0;
    FILE *file = fopen(log, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) epochs += strstr(line, "\"test_iou\"") != NULL;
    if (file != NULL) fclose(file);
    CHECK_EQUAL(epochs, 12);
    p = SDLF(0, "eval", "--weights", weights, "--calculator", "reference");
    CHECK_SAYS(p, " pixels/s");
    CHECK_SAYS(p, "\ntest   100.00%  mean IoU 100.00%  ");
    p = SDLF(0, "eval", "--weights", weights, "--json");
    CHECK_SAYS(p, "\"mean_iou\": 1.0");
    CHECK_SAYS(p, "\"iou\": 1.0");
    CHECK_SAYS(SDLF(1, "predict", "--weights", weights, path_of("images/00.png")), "classes for each of 8x8 pixels");
    CHECK_SAYS(SDLF(1, "eval", "--weights", weights, "--tta", "flip"), "not for pixels");
    CHECK_SAYS(SDLF(0, TRAIN, "--epochs", "1", "--class-weights", "balanced", "--no-save"), "epoch 1/1");
    CHECK_SAYS(SDLF(2, TRAIN, "--epochs", "1", "--augment-rand", "2", "--no-save"), "without the labels");
    CHECK_SAYS(SDLF(2, TRAIN, "--epochs", "1", "--mixup", "1", "--no-save"), "are for samples of one label");
    CHECK_SAYS(SDLF(1, "train", "--data", set, "--net", "mlp", "--size", "8", "--no-save"), "for each pixel");
#undef TRAIN
    streamed(set);
}

int main(void)
{
    RUN(scenes);
    return test_summary();
}
