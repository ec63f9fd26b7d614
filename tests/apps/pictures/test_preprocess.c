/* SPDX-License-Identifier: MIT */
/* Converting an image to a sample: settings from the file, requested settings, and rejected ones. */
#include "apps/pictures/preprocess.h"

#include <string.h>

#include "datasets/images/picture_bytes.h"

static const sdlf_normalization own = {.mean = 51, .scale = 1 / 102.0f, .known = true};
static const sdlf_normalization unknown = {.mean = 0, .scale = 1};

static void a_file_of_ours_says_how(void)
{
    preprocess_settings s = {.crop = 0.875};
    CHECK_OK(preprocess_complete(&s, &own, "net"));
    CHECK(s.as_in_training);
    for (int i = 0; i < 3; i++) {
        CHECK_CLOSE(s.mean_of[i], 0.2, 1e-6);
        CHECK_CLOSE(s.std_of[i], 0.4, 1e-6);
    }
}

static void what_is_asked_for_wins(void)
{
    preprocess_settings s = {.kind = PREPROCESS_UNIT, .crop = 0.875};
    CHECK_OK(preprocess_complete(&s, &own, "net"));
    CHECK(!s.as_in_training);
    CHECK_CLOSE(s.mean_of[0], 0, 0);
    CHECK_CLOSE(s.std_of[2], 1, 0);
    s = (preprocess_settings){.crop = 0.875, .mean = "0.25"};
    CHECK_OK(preprocess_complete(&s, &own, "net"));
    CHECK_CLOSE(s.mean_of[1], 0.25, 0);
    CHECK_CLOSE(s.std_of[1], 0.4, 1e-6);
    s = (preprocess_settings){.mean = "0.1,0.2,0.3", .std = "2"};
    CHECK_OK(preprocess_complete(&s, &unknown, "net"));
    CHECK_CLOSE(s.mean_of[2], 0.3, 0);
    CHECK_CLOSE(s.std_of[0], 2, 0);
    s = (preprocess_settings){.kind = PREPROCESS_IMAGENET};
    CHECK_OK(preprocess_complete(&s, &unknown, "net"));
    CHECK_CLOSE(s.mean_of[0], 0.485, 0);
    CHECK_CLOSE(s.std_of[2], 0.225, 0);
}

static void else_it_is_refused(void)
{
    static const char message[] =
        "net.onnx: the file does not say how its pictures are preprocessed: expected --preprocess "
        "imagenet, tf, unit or none, or --mean and --std";
    preprocess_settings s = {.crop = 0.875};
    CHECK_FAILS(preprocess_complete(&s, &unknown, "net.onnx"), SDLF_ERROR_ARGUMENT, message);
    s.mean = "0.5"; /* half of it */
    CHECK_FAILS(preprocess_complete(&s, &unknown, "net.onnx"), SDLF_ERROR_ARGUMENT, message);
    s.mean = "0.5,x";
    CHECK_FAILS(preprocess_check(&s), SDLF_ERROR_ARGUMENT, "--mean 0.5,x: expected one number or three with commas");
    s = (preprocess_settings){.std = "0"};
    CHECK_FAILS(preprocess_check(&s), SDLF_ERROR_ARGUMENT,
                "--std 0: expected one number or three with commas, above 0");
}

static void shapes_of_samples(void)
{
    preprocess_settings s = {.crop = 1};
    preprocess_frame frame;
    CHECK_OK(preprocess_frame_of(&frame, sdlf_shape(3, 20, 30), &s));
    CHECK(frame.first && frame.channels == 3 && frame.rows == 20 && frame.columns == 30);
    CHECK_OK(preprocess_frame_of(&frame, sdlf_shape(20, 30, 3), &s));
    CHECK(!frame.first && frame.channels == 3 && frame.rows == 20 && frame.columns == 30);
    CHECK_FAILS(preprocess_frame_of(&frame, sdlf_shape(4, 28, 28), &s), SDLF_ERROR_SHAPE, "4x28x28");
    CHECK_FAILS(preprocess_frame_of(&frame, sdlf_shape(784), &s), SDLF_ERROR_SHAPE, "784");
    CHECK_FAILS(preprocess_frame_of(&frame, SDLF_SCALAR, &s), SDLF_ERROR_SHAPE, "pictures are 1xHxW");
    s.fit = PREPROCESS_DIGIT;
    CHECK_FAILS(preprocess_frame_of(&frame, sdlf_shape(3, 28, 28), &s), SDLF_ERROR_ARGUMENT, "--fit digit");
}

/* A planar colour image of 4x2 pixels, red 10 to 80, green 100 more, blue 5; as an IDX file, which every build
 * reads. */
static const char *colours(void)
{
    unsigned char idx[20 + 24] = {0, 0, 8, 4, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 4};
    for (int i = 0; i < 8; i++) {
        idx[20 + i] = (unsigned char)(10 * (i + 1));
        idx[28 + i] = (unsigned char)(10 * (i + 1) + 100);
        idx[36 + i] = 5;
    }
    const char *path = test_path("colours");
    test_write_file(path, idx, sizeof idx);
    return path;
}

static float sample[3 * 4 * 4], pixels[3 * 4 * 4];

static void read_as(sdlf_shape shape, preprocess_settings s)
{
    preprocess_frame frame;
    memset(sample, 0, sizeof sample);
    CHECK_OK(preprocess_complete(&s, &own, "net"));
    if (CHECK_OK(preprocess_frame_of(&frame, shape, &s)))
        CHECK_OK(preprocess_read(sample, pixels, frame, colours(), 0, &s));
}

/* At the image's own size every pixel is kept; only its position and normalisation change. */
static void pixels_become_samples(void)
{
    read_as(sdlf_shape(3, 2, 4), (preprocess_settings){.crop = 1}); /* as in training */
    for (int i = 0; i < 8; i++) {
        CHECK_CLOSE((double)sample[i], (10 * (i + 1) - 51) / 102.0, 1e-5);
        CHECK_CLOSE((double)sample[8 + i], (10 * (i + 1) + 100 - 51) / 102.0, 1e-5);
        CHECK_CLOSE((double)pixels[16 + i], 5, 1e-5);
    }
    read_as(sdlf_shape(3, 2, 4), (preprocess_settings){.kind = PREPROCESS_TF, .crop = 1, .order = PREPROCESS_BGR});
    CHECK_CLOSE((double)sample[0], 5 / 127.5 - 1, 1e-6);
    CHECK_CLOSE((double)sample[16 + 7], 80 / 127.5 - 1, 1e-6);
    read_as(sdlf_shape(2, 4, 3), (preprocess_settings){.kind = PREPROCESS_IMAGENET, .crop = 1});
    CHECK_CLOSE((double)sample[0], (10 / 255.0 - 0.485) / 0.229, 1e-5);
    CHECK_CLOSE((double)sample[3 * 7 + 1], (180 / 255.0 - 0.456) / 0.224, 1e-5);
    CHECK_CLOSE((double)sample[3 * 7 + 2], (5 / 255.0 - 0.406) / 0.225, 1e-5);
    read_as(sdlf_shape(1, 2, 4), (preprocess_settings){.kind = PREPROCESS_NONE, .crop = 1});
    CHECK_CLOSE((double)sample[3], 0.299 * 40 + 0.587 * 140 + 0.114 * 5, 1e-3);
}

/* The part of a wide image that a square input sees. */
static void proportions(void)
{
    const sdlf_shape square = sdlf_shape(3, 2, 2);
    read_as(square, (preprocess_settings){.kind = PREPROCESS_NONE, .crop = 1});
    CHECK_CLOSE((double)sample[0], 20, 1e-3); /* the middle */
    CHECK_CLOSE((double)sample[3], 70, 1e-3);
    read_as(square, (preprocess_settings){.kind = PREPROCESS_NONE, .crop = 1, .fit = PREPROCESS_STRETCH});
    CHECK(sample[0] > 10 && sample[0] < 20 && sample[1] > 30 && sample[1] < 40);
    read_as(sdlf_shape(3, 4, 4), (preprocess_settings){.kind = PREPROCESS_NONE, .crop = 1, .fit = PREPROCESS_WHOLE});
    CHECK_CLOSE((double)sample[0], 0, 0);
    CHECK_CLOSE((double)sample[4], 10, 1e-3);
    CHECK_CLOSE((double)sample[15], 0, 0);
    read_as(sdlf_shape(3, 4, 4), (preprocess_settings){.crop = 1}); /* as in training: the whole of it */
    CHECK_CLOSE((double)sample[0], -0.5, 1e-5);
    read_as(square, (preprocess_settings){.kind = PREPROCESS_NONE, .crop = 1, .invert = 1});
    CHECK_CLOSE((double)sample[0], 235, 1e-3);
}

int main(void)
{
    RUN(a_file_of_ours_says_how);
    RUN(what_is_asked_for_wins);
    RUN(else_it_is_refused);
    RUN(shapes_of_samples);
    RUN(pixels_become_samples);
    RUN(proportions);
    return test_summary();
}
