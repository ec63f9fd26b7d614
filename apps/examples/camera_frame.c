/* SPDX-License-Identifier: MIT */
/* Classify camera frames in memory, with a model whose file is in memory, too.
 *
 *     camera_frame WEIGHTS    a .safetensors or .onnx file of a network for digits
 *
 * The program simulates the camera: it "sees" ten digits that SDLF draws, as 640x480 YUYV frames, the format of most
 * webcams. Everything that a frame needs is created before the first one: plan, buffers, normalisation. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sdlf/sdlf.h>

enum { WIDTH = 640, HEIGHT = 480, FRAMES = 10 };

/* ---- the camera: YUYV 4:2:2, two pixels in four bytes, Y0 U Y1 V; grey is U = V = 128 ---- */

static void grab(uint8_t *frame, const sdlf_dataset *digits, int64_t index)
{
    const uint8_t *digit = (const uint8_t *)digits->samples.data + index * 28 * 28;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int row = (y - 16) / 16, column = (x - 96) / 16; /* 448x448 pixels in the middle, the rest is dark */
            bool inside = y >= 16 && x >= 96 && row < 28 && column < 28;
            frame[2 * (y * WIDTH + x)] = (uint8_t)(16 + (inside ? digit[row * 28 + column] * 219 / 255 : 0));
            frame[2 * (y * WIDTH + x) + 1] = 128;
        }
}

/* ---- from a frame to the network's input ---- */

static uint8_t to_byte(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* ITU-R BT.601, studio range, in fixed point. */
static void yuyv_to_rgb(uint8_t *rgb, const uint8_t *frame)
{
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        const uint8_t *pair = frame + 4 * (i / 2);
        int y = 298 * (pair[2 * (i % 2)] - 16) + 128, u = pair[1] - 128, v = pair[3] - 128;
        rgb[3 * i] = to_byte((y + 409 * v) / 256);
        rgb[3 * i + 1] = to_byte((y - 100 * u - 208 * v) / 256);
        rgb[3 * i + 2] = to_byte((y + 516 * u) / 256);
    }
}

/* Normalises as in training: (x - mean) * scale, for all channels or each one; for another program's model: bytes /
 * 255. */
static void normalise(float *sample, sdlf_shape shape, const sdlf_normalization *n)
{
    int64_t channels = shape.dim[1], pixels = shape.dim[2] * shape.dim[3];
    for (int64_t c = 0; c < channels; c++) {
        bool each = n->channels.count > 0;
        float mean = each ? n->channels.mean[c] : n->mean, scale = each ? n->channels.scale[c] : n->scale;
        if (!n->known) mean = 0, scale = 1.0f / 255;
        for (int64_t i = 0; i < pixels; i++) sample[c * pixels + i] = (sample[c * pixels + i] - mean) * scale;
    }
}

typedef struct classifier {
    sdlf_model *net;
    sdlf_calculator *cpu;
    sdlf_plan *plan;
    const char *input;
    sdlf_shape sample, scores; /* of a batch of one */
    float *values, *score;
    uint8_t *rgb;
} classifier;

static sdlf_status classifier_open(classifier *c, const void *bytes, size_t size)
{
    sdlf_status status = sdlf_model_from_memory(&c->net, bytes, size, "camera's model", NULL);
    if (status == SDLF_OK) status = sdlf_calculator_open(&c->cpu, "cpu", NULL);
    if (status == SDLF_OK)
        status = sdlf_plan_create(&c->plan, c->net, &(sdlf_plan_options){.batch = 1, .forward = c->cpu});
    if (status != SDLF_OK) return status;
    sdlf_node input = sdlf_model_input(c->net, 0);
    c->input = sdlf_model_layer(c->net, input.layer)->name;
    c->sample = sdlf_model_node_shape(c->net, input);
    c->scores = sdlf_model_node_shape(c->net, sdlf_model_output(c->net, 0));
    if (c->sample.rank != 4)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected a network for pictures (N,C,H,W), found an input %s",
                         sdlf_shape_print(c->sample).text);
    c->values = malloc((size_t)sdlf_shape_count(c->sample) * sizeof *c->values);
    c->score = malloc((size_t)sdlf_shape_count(c->scores) * sizeof *c->score);
    c->rgb = malloc((size_t)3 * WIDTH * HEIGHT);
    if (c->values == NULL || c->score == NULL || c->rgb == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for frames");
    return SDLF_OK;
}

static void classifier_close(classifier *c)
{
    free(c->values);
    free(c->score);
    free(c->rgb);
    sdlf_plan_free(c->plan);
    sdlf_calculator_close(c->cpu);
    sdlf_model_free(c->net);
}

/* Classifies the square in the middle of a frame. */
static sdlf_status classify(classifier *c, const uint8_t *frame, int *best)
{
    yuyv_to_rgb(c->rgb, frame);
    sdlf_image image = {.width = WIDTH, .height = HEIGHT, .channels = 3, .pixels = c->rgb};
    sdlf_status status = sdlf_image_resize(c->values, (int)c->sample.dim[2], (int)c->sample.dim[3],
                                           (int)c->sample.dim[1], &image, 16, 96, 448, 448);
    if (status != SDLF_OK) return status;
    normalise(c->values, c->sample, sdlf_model_normalization(c->net));
    int64_t count = sdlf_shape_count(c->scores);
    status = sdlf_plan_write(c->plan, c->input, c->values, SDLF_FLOAT32,
                             sdlf_shape_count(c->sample) * (int64_t)sizeof *c->values);
    if (status == SDLF_OK) status = sdlf_plan_forward(c->plan);
    if (status == SDLF_OK)
        status = sdlf_plan_read(c->plan, sdlf_model_output_name(c->net, 0), c->score, SDLF_FLOAT32,
                                count * (int64_t)sizeof *c->score);
    *best = 0;
    for (int i = 1; i < count && status == SDLF_OK; i++) *best = c->score[i] > c->score[*best] ? i : *best;
    return status;
}

/* ---- the rest ---- */

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    long length = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    void *bytes = length > 0 ? malloc((size_t)length) : NULL;
    *size = (size_t)length;
    if (bytes != NULL && (fseek(file, 0, SEEK_SET) != 0 || fread(bytes, 1, *size, file) != *size)) {
        free(bytes);
        bytes = NULL;
    }
    if (file != NULL) fclose(file);
    if (bytes == NULL) sdlf_fail(SDLF_ERROR_IO, "%s cannot be read", path);
    return bytes;
}

static sdlf_status watch(classifier *c, const sdlf_dataset *digits)
{
    static uint8_t frame[2 * WIDTH * HEIGHT];
    int right = 0;
    for (int i = 0; i < FRAMES; i++) {
        int best, label = ((const int32_t *)digits->labels.data)[i];
        struct timespec start, end;
        grab(frame, digits, i);
        timespec_get(&start, TIME_UTC);
        sdlf_status status = classify(c, frame, &best);
        timespec_get(&end, TIME_UTC);
        if (status != SDLF_OK) return status;
        const char *name = sdlf_model_class_name(c->net, best);
        printf("frame %d shows %d: %s%d%s%s  %.2f ms\n", i, label, name ? "class " : "", best, name ? ", " : "",
               name ? name : "",
               (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6);
        right += best == label;
    }
    printf("%d of %d frames right\n", right, FRAMES);
    return SDLF_OK;
}

int main(int count, char **words)
{
    if (count != 2) {
        fprintf(stderr, "Usage: camera_frame WEIGHTS\n");
        return 2;
    }
    classifier c = {.net = NULL};
    sdlf_dataset *digits = NULL;
    size_t size;
    void *bytes = read_file(words[1], &size);
    sdlf_status status = bytes != NULL ? classifier_open(&c, bytes, size) : SDLF_ERROR_IO;
    free(bytes); /* the model has copied what it needs */
    if (status == SDLF_OK) status = sdlf_dataset_open(&digits, "digits:640", SDLF_SPLIT_TEST);
    if (status == SDLF_OK) status = watch(&c, digits);
    if (status != SDLF_OK) fprintf(stderr, "camera_frame: %s\n", sdlf_error_message());
    sdlf_dataset_free(digits);
    classifier_close(&c);
    return status == SDLF_OK ? 0 : 1;
}
