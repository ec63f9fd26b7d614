/* SPDX-License-Identifier: MIT */
/* sdlf train, eval and predict on a folder of images: IDX files, which every build reads, with the extensions of
 * images. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "datasets/idx_files.h"
#include "testing.h"

enum { SIDE = 8, TRAIN = 30, TEST = 10 };

static char set[1024];

static void make_folder(const char *inside)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", test_path("flowers"), inside);
    CHECK(mkdir(path, 0700) == 0 || *inside == '\0');
}

static const char *inside(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", test_path("flowers"), name);
    return path;
}

/* An image that is bright on the left or on the right, of its own size. */
static void write_picture(const char *folder, int number, bool right)
{
    int width = SIDE + number % 3, height = SIDE + number % 2;
    unsigned char pixels[(SIDE + 3) * (SIDE + 2)];
    char name[64];
    for (int i = 0; i < width * height; i++)
        pixels[i] = (unsigned char)(((i % width >= width / 2) == right ? 180 : 20) + (i * 7 + number * 13) % 40);
    idx_bytes file = idx_make(sdlf_shape(1, height, width), pixels);
    snprintf(name, sizeof name, "%s/%d.png", folder, number);
    test_write_file(inside(name), file.data, file.size);
    free(file.data);
}

static void make_pictures(void)
{
    static const char *const folders[] = {"",           "train",      "test", "train/roses", "train/tulips",
                                          "test/roses", "test/tulips"};
    if (set[0] != '\0') return;
    CHECK(mkdir(test_path("flowers"), 0700) == 0);
    for (size_t i = 1; i < sizeof folders / sizeof folders[0]; i++) make_folder(folders[i]);
    for (int i = 0; i < TRAIN; i++) {
        write_picture("train/roses", i, false);
        write_picture("train/tulips", i, true);
    }
    for (int i = 0; i < TEST; i++) {
        write_picture("test/roses", i, false);
        write_picture("test/tulips", i, true);
    }
    snprintf(set, sizeof set, "folder:%s", test_path("flowers"));
}

#define TRAINS "train", "--data", set, "--calculator", "reference", "--batch", "10"

static void a_folder_is_learnt_and_its_classes_are_named(void)
{
    char weights[1024];
    make_pictures();
    snprintf(weights, sizeof weights, "%s", test_path("flowers.safetensors"));
    const program *p = SDLF(0, TRAINS, "--size", "8", "--net", "mlp", "--epochs", "4", "--out", weights);
    CHECK_TEXT(p->err, "");
    CHECK_SAYS(p, "  60 train  20 test  3x8x8\n");
    CHECK_SAYS(p, "0 roses");
    CHECK_SAYS(p, "1 tulips");
    CHECK_SAYS(p, "test   100.00%  20 of 20 right");
    p = SDLF(0, "eval", "--weights", weights, "--calculator", "reference", "--confusion");
    CHECK_SAYS(p, "test   100.00%  20 of 20 right");
    CHECK_SAYS(p, "1 tulips");
    p = SDLF(0, "eval", "--weights", weights, "--calculator", "reference", "--json");
    CHECK_SAYS(p, "\"name\": \"tulips\"");
    char path[1024];
    snprintf(path, sizeof path, "%s", inside("test/tulips/3.png"));
    p = SDLF(0, "predict", "--weights", weights, "--calculator", "reference", path);
    CHECK_SAYS(p, "  tulips\n");
    p = SDLF(0, "predict", "--weights", weights, "--calculator", "reference", "--json", path);
    CHECK_SAYS(p, "\"label\": \"tulips\"");
}

/* A new last layer for other classes, the only one trained; the network's own normalisation is kept. */
static void a_trained_network_gets_another_head(void)
{
    char weights[1024], tuned[1024];
    make_pictures();
    snprintf(weights, sizeof weights, "%s", test_path("ten.safetensors"));
    snprintf(tuned, sizeof tuned, "%s", test_path("tuned.safetensors"));
    sdlf_model *net = NULL;
    if (!CHECK_OK(sdlf_network_builtin_for(&net, "mlp", sdlf_shape(3, 8, 8), 10))) return;
    CHECK_OK(sdlf_model_build(net, 3));
    *sdlf_model_normalization(net) = (sdlf_normalization){.mean = 100, .scale = 0.01f, .known = true};
    CHECK_OK(sdlf_model_save(net, weights));
    const program *p = SDLF(0, TRAINS, "--from", weights, "--freeze", "trunk", "--epochs", "6", "--out", tuned);
    CHECK_SAYS(p, "net    mlp  82,562 parameters, 258 of them trained");
    CHECK_SAYS(p, "head   fully_connected_3  replaced for 2 classes");
    CHECK_SAYS(p, "trains 2 parameters (258 numbers)");
    sdlf_model *after = NULL;
    if (CHECK_OK(sdlf_model_open(&after, tuned))) {
        const char *name = "fully_connected.weight";
        const sdlf_parameter *was = sdlf_model_find_parameter(net, name), *is = sdlf_model_find_parameter(after, name);
        CHECK(was != NULL && is != NULL &&
              memcmp(was->value.data, is->value.data, (size_t)sdlf_tensor_bytes(&was->value)) == 0);
        CHECK_TEXT(sdlf_model_class_name(after, 1), "tulips");
        CHECK_CLOSE((double)sdlf_model_normalization(after)->mean, 100, 0);
    }
    sdlf_model_free(after);
    sdlf_model_free(net);
    p = SDLF(0, "eval", "--weights", tuned, "--calculator", "reference");
    CHECK_SAYS(p, "of 20 right");
    CHECK_SAYS(SDLF(2, TRAINS, "--from", weights, "--normalize", "imagenet", "--no-save"),
               "says how its samples are normalised");
    CHECK_SAYS(SDLF(2, TRAINS, "--from", weights, "--size", "9", "--no-save"), "takes samples of 3x8x8");
    CHECK_SAYS(SDLF(1, "eval", "--weights", weights, "--data", set, "--calculator", "reference"), "2 classes");
}

static void classes_must_be_the_networks(void)
{
    char weights[1024], path[1200], other[1024];
    make_pictures();
    snprintf(weights, sizeof weights, "%s", test_path("named.safetensors"));
    SDLF(0, TRAINS, "--size", "8", "--net", "mlp", "--epochs", "1", "--out", weights);
    CHECK(mkdir(test_path("others"), 0700) == 0);
    static const char *const folders[] = {"cats", "dogs"};
    for (int i = 0; i < 2; i++) {
        snprintf(other, sizeof other, "%s/%s", test_path("others"), folders[i]);
        CHECK(mkdir(other, 0700) == 0);
        for (int k = 0; k < 20; k++) {
            idx_bytes file = idx_make(sdlf_shape(1, 8, 8), NULL);
            snprintf(path, sizeof path, "%s/%d.png", other, k);
            test_write_file(path, file.data, file.size);
            free(file.data);
        }
    }
    snprintf(other, sizeof other, "folder:%s", test_path("others"));
    CHECK_SAYS(SDLF(1, "eval", "--weights", weights, "--data", other, "--calculator", "reference"),
               "its class 0 is 'roses', but that of folder");
    /* as many classes of other names: the scores are not those of the old ones */
    CHECK_SAYS(
        SDLF(0, "train", "--from", weights, "--data", other, "--epochs", "1", "--calculator", "reference", "--no-save"),
        "  replaced for 2 classes");
    CHECK_SAYS(SDLF(1, "train", "--resume", weights, "--data", other, "--epochs", "2", "--calculator", "reference"),
               "its class 0 is 'roses'");
}

static void mistakes_are_told(void)
{
    make_pictures();
    CHECK_SAYS(SDLF(1, TRAINS, "--net", "mlp", "--no-save"), "pictures of several sizes need a common size");
    CHECK_SAYS(SDLF(2, TRAINS, "--size", "8y", "--no-save"),
               "--size 8y: expected one number or HEIGHTxWIDTH, of 1 to 65535");
    CHECK_SAYS(SDLF(2, TRAINS, "--size", "0", "--no-save"), "expected one number");
    CHECK_SAYS(SDLF(1, TRAINS, "--size", "8", "--net", "vgg11_bn", "--no-save"), "32x32 pixels or more");
    CHECK_SAYS(SDLF(2, TRAINS, "--size", "8", "--net", "mlp", "--freeze", "trunc", "--no-save"), "trunc");
    CHECK_SAYS(SDLF(2, "train", "--from", "a.onnx", "--net", "mlp"), "cannot be combined with --net");
    CHECK_SAYS(SDLF(2, "train", "--from", "a.onnx", "--resume", "b.safetensors"), "cannot be combined with --resume");
    test_write_file(inside("train/roses/bad.png"), "bad", 3);
    const program *p = SDLF(0, TRAINS, "--size", "8x10", "--net", "mlp", "--epochs", "1", "--no-save", "--augment-flip",
                            "--augment-crop", "1", "--normalize", "imagenet");
    CHECK_SAYS(p, "3x8x10\n");
    CHECK_SAYS(p, "1 file cannot be read and is left out; the first: ");
    CHECK_SAYS(p, "train/roses/bad.png: ");
    CHECK_SAYS(SDLF(1, TRAINS, "--size", "8", "--net", "mlp", "--no-save", "--strict"), "train/roses/bad.png: ");
    test_write_file(inside("train/roses/worse.png"), "", 0);
    CHECK_SAYS(SDLF(0, TRAINS, "--size", "8", "--net", "mlp", "--epochs", "1", "--no-save"),
               "2 files cannot be read and are left out; the first: ");
    for (int json = 0; json < 2; json++) { /* all are named */
        p = SDLF(0, "data", set, "--size", "8", json ? "--json" : "--workers=1");
        CHECK_SAYS(p, "train/roses/bad.png: ");
        CHECK_SAYS(p, "train/roses/worse.png: ");
    }
    CHECK(remove(inside("train/roses/worse.png")) == 0);
    CHECK(remove(inside("train/roses/bad.png")) == 0);
}

int main(void)
{
    RUN(a_folder_is_learnt_and_its_classes_are_named);
    RUN(a_trained_network_gets_another_head);
    RUN(classes_must_be_the_networks);
    RUN(mistakes_are_told);
    return test_summary();
}
