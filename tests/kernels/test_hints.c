/* SPDX-License-Identifier: MIT */
/* Hints of an operation change no bit of its results: `ahead`, at any address. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/random.h>

enum { AHEAD = 17 << 20, CHANNELS = 36, FILTERS = 68, SIDE = 20, PIXELS = SIDE * SIDE };

static void numbers(sdlf_calculator *calculator, sdlf_tensor *to, uint32_t stream)
{
    const int64_t count = sdlf_tensor_count(to);
    float *made = malloc((size_t)count * 4);
    for (int64_t i = 0; made != NULL && i < count; i++)
        made[i] = (float)((double)sdlf_philox4x32(9, (uint64_t)i, stream, 0).word[0] * 0x1p-31 - 1);
    CHECK_OK(calculator->type->allocate(calculator, count * 4, &to->data));
    CHECK_OK(calculator->type->upload(calculator, to->data, made, count * 4));
    free(made);
}

static void run(sdlf_calculator *calculator, const sdlf_operation *o, float *y)
{
    CHECK_OK(sdlf_calculator_run(calculator, o));
    CHECK_OK(calculator->type->download(calculator, y, o->out[0].data, sdlf_tensor_bytes(&o->out[0])));
}

static sdlf_tensor room(sdlf_calculator *calculator, int64_t bytes)
{
    sdlf_tensor made = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), NULL);
    if (bytes == 0) return (sdlf_tensor){.dtype = SDLF_NONE};
    CHECK_OK(calculator->type->allocate(calculator, bytes, &made.data));
    return made;
}

/* A channels-last convolution, alone and with the hint that a large block of memory is read next: from its beginning,
 * and from odd addresses. */
static void convolve(sdlf_calculator *calculator, float *plain, float *told)
{
    static const int skews[] = {0, 16, 4, 1};
    sdlf_operation o = {.kind = SDLF_CONV2D_FORWARD, .conv2d = {.groups = 1}};
    for (int i = 0; i < 2; i++) {
        o.conv2d.window.size[i] = 3;
        o.conv2d.window.stride[i] = o.conv2d.window.dilation[i] = 1;
        o.conv2d.window.padding_before[i] = o.conv2d.window.padding_after[i] = 1;
    }
    const sdlf_shape x = sdlf_shape(1, CHANNELS, SIDE, SIDE), y = sdlf_shape(1, FILTERS, SIDE, SIDE);
    o.in[0] = sdlf_tensor_channels_last(sdlf_tensor_view(SDLF_FLOAT32, x, NULL));
    o.in[1] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(FILTERS, CHANNELS, 3, 3), NULL);
    o.out[0] = sdlf_tensor_channels_last(sdlf_tensor_view(SDLF_FLOAT32, y, NULL));
    numbers(calculator, &o.in[0], 0);
    numbers(calculator, &o.in[1], 1);
    numbers(calculator, &o.out[0], 2);
    if (sdlf_calculator_supports(calculator, &o)) {
        const sdlf_tensor block = room(calculator, AHEAD + 16);
        o.prepared = room(calculator, sdlf_calculator_prepared(calculator, &o));
        if (o.prepared.data != NULL) CHECK_OK(sdlf_calculator_slot(calculator, &o)->prepare(calculator, &o));
        o.workspace = room(calculator, sdlf_calculator_workspace(calculator, &o));
        run(calculator, &o, plain);
        for (size_t i = 0; i < sizeof skews / sizeof skews[0]; i++) {
            o.ahead = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(AHEAD), (char *)block.data + skews[i]);
            memset(told, 0, (size_t)sdlf_tensor_bytes(&o.out[0]));
            run(calculator, &o, told);
            CHECK(memcmp(plain, told, (size_t)sdlf_tensor_bytes(&o.out[0])) == 0);
        }
        calculator->type->deallocate(calculator, block.data);
        if (o.prepared.data != NULL) calculator->type->deallocate(calculator, o.prepared.data);
        if (o.workspace.data != NULL) calculator->type->deallocate(calculator, o.workspace.data);
    }
    calculator->type->deallocate(calculator, o.in[0].data);
    calculator->type->deallocate(calculator, o.in[1].data);
    calculator->type->deallocate(calculator, o.out[0].data);
}

static void what_is_ahead_changes_nothing(void)
{
    static float plain[FILTERS * PIXELS], told[FILTERS * PIXELS];
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const char *name = test_calculator_class_at(i)->name;
        for (int math = SDLF_MATH_FP32; math < SDLF_MATH_COUNT; math++) {
            sdlf_calculator *calculator = NULL;
            const sdlf_status status =
                sdlf_calculator_open(&calculator, name, &(sdlf_calculator_options){.math = (sdlf_math)math});
            if (status == SDLF_ERROR_UNSUPPORTED) continue; /* an unsupported mode */
            if (!CHECK_OK(status)) continue;
            convolve(calculator, plain, told);
            sdlf_calculator_close(calculator);
        }
    }
}

int main(void)
{
    RUN(what_is_ahead_changes_nothing);
    return test_summary();
}
