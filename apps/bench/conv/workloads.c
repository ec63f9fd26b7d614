/* SPDX-License-Identifier: MIT */
/* The convolutions that the lab times. */
#include "apps/bench/conv/workloads.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apps/output/terminal.h"
#include "apps/output/wrap.h"

static bool same_shape(const lab_shape *a, const lab_shape *b)
{
    bool same = a->n == b->n && a->c == b->c && a->h == b->h && a->w == b->w && a->k == b->k && a->groups == b->groups;
    for (int i = 0; i < 2; i++) {
        same = same && a->kernel[i] == b->kernel[i] && a->stride[i] == b->stride[i] && a->padding[i] == b->padding[i] &&
               a->dilation[i] == b->dilation[i];
    }
    return same;
}

/* Adds a layer: increments the count if its shape is already there. */
static void add(lab_workload *workload, const lab_shape *shape, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(lab_workload *workload, const lab_shape *shape, const char *format, ...)
{
    for (int i = 0; i < workload->count; i++) {
        if (!same_shape(&workload->item[i].shape, shape)) continue;
        workload->item[i].count++;
        return;
    }
    assert(workload->count < LAB_CASES);
    lab_case *item = &workload->item[workload->count++];
    *item = (lab_case){.count = 1, .shape = *shape};
    va_list values;
    va_start(values, format);
    vsnprintf(item->name, sizeof item->name, format, values);
    va_end(values);
    memcpy(item->row, item->name, sizeof item->row);
}

/* filters of size x size over square images, padded so that stride 1 keeps their side. */
static lab_shape square(int64_t n, int64_t c, int64_t side, int64_t k, int64_t size, int64_t stride, int64_t groups)
{
    return (lab_shape){.n = n,
                       .c = c,
                       .h = side,
                       .w = side,
                       .k = k,
                       .kernel = {size, size},
                       .stride = {stride, stride},
                       .padding = {size / 2, size / 2},
                       .dilation = {1, 1},
                       .groups = groups};
}

/* Three channels, one kernel of 3x3x3 with each of three strides, sides that are one less than a power of two. */
static void make_study(lab_workload *workload, int64_t batch, int64_t side)
{
    for (int64_t s = side ? side : 31; s <= (side ? side : 4095); s = 2 * s + 1) {
        for (int64_t stride = 1; stride <= 3; stride++) {
            lab_shape shape = square(batch, 3, s, 1, 3, stride, 1);
            add(workload, &shape, "side %" PRId64 " stride %" PRId64, s, stride);
            snprintf(workload->item[workload->count - 1].row, sizeof workload->item[0].row, "side %" PRId64, s);
        }
    }
}

static void make_simple_cnn(lab_workload *workload, int64_t batch, int64_t side)
{
    lab_shape shape = square(batch, 1, side ? side : 28, 32, 5, 1, 1);
    add(workload, &shape, "conv");
}

/* Five blocks of 3x3 convolutions, halved by pooling in between. */
static void make_vgg16(lab_workload *workload, int64_t batch, int64_t side)
{
    static const int layers[] = {2, 2, 3, 3, 3}, filters[] = {64, 128, 256, 512, 512};
    int64_t channels = 3, s = side ? side : 224;
    for (int block = 0; block < 5; block++, s /= 2) {
        for (int layer = 0; layer < layers[block]; layer++) {
            lab_shape shape = square(batch, channels, s, filters[block], 3, 1, 1);
            add(workload, &shape, "conv%d_%d", block + 1, layer + 1);
            channels = filters[block];
        }
    }
}

/* Sandler et al. (2018), table 2: a convolution, 17 blocks of expansion, depthwise convolution and projection, a
 * convolution. */
static void make_mobilenetv2(lab_workload *workload, int64_t batch, int64_t side)
{
    static const struct {
        int expansion, channels, repeats, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int64_t s = side ? side : 224, channels = 32;
    int block = 1;
    lab_shape shape = square(batch, 3, s, 32, 3, 2, 1);
    add(workload, &shape, "conv1");
    s = (s - 1) / 2 + 1;
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        for (int repeat = 0; repeat < stages[i].repeats; repeat++, block++) {
            int64_t wide = channels * stages[i].expansion, stride = repeat == 0 ? stages[i].stride : 1;
            shape = square(batch, channels, s, wide, 1, 1, 1);
            if (stages[i].expansion > 1) add(workload, &shape, "block%d expand", block);
            shape = square(batch, wide, s, wide, 3, stride, wide);
            add(workload, &shape, "block%d depthwise", block);
            s = (s - 1) / stride + 1;
            shape = square(batch, wide, s, stages[i].channels, 1, 1, 1);
            add(workload, &shape, "block%d project", block);
            channels = stages[i].channels;
        }
    }
    shape = square(batch, channels, s, 1280, 1, 1, 1);
    add(workload, &shape, "last");
}

/* All layers of the three networks, a row each. No shape is in two of them. */
static void make_networks(lab_workload *workload, int64_t batch, int64_t side)
{
    static const struct {
        const char *row;
        void (*make)(lab_workload *workload, int64_t batch, int64_t side);
    } networks[] = {{"simple_cnn", make_simple_cnn}, {"vgg16", make_vgg16}, {"mobilenetv2", make_mobilenetv2}};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        int first = workload->count;
        networks[i].make(workload, batch, side);
        for (int j = first; j < workload->count; j++)
            snprintf(workload->item[j].row, sizeof workload->item[j].row, "%s", networks[i].row);
    }
}

static const struct {
    const char *name, *about;
    int64_t side, least; /* the default; the smallest that leaves an image for every layer */
    void (*make)(lab_workload *workload, int64_t batch, int64_t side);
} workloads[] = {
    {"study", "3 channels, one kernel of 3x3x3 with strides 1, 2 and 3, images of 31 to 4,095 pixels a side", 0, 1,
     make_study},
    {"simple_cnn", "the layer of simple_cnn: 32 filters of 5x5 on digits of 28x28", 28, 1, make_simple_cnn},
    {"vgg16", "the 13 convolutions of VGG16, 9 shapes, images of 224x224", 224, 16, make_vgg16},
    {"mobilenetv2", "the 52 convolutions of MobileNetV2, pointwise and depthwise, images of 224x224", 224, 1,
     make_mobilenetv2},
    {"networks", "all layers of simple_cnn, VGG16 and MobileNetV2", 0, 16, make_networks},
};
enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

const char *const lab_workload_names[] = {"study", "simple_cnn", "vgg16", "mobilenetv2", "networks", NULL};
static_assert(sizeof lab_workload_names / sizeof lab_workload_names[0] == WORKLOADS + 1, "a name for each workload");

void lab_workloads_print(void)
{
    terminal out = terminal_of(stdout);
    printf("\n%sWorkloads%s\n", terminal_escape(&out, TERMINAL_BOLD), terminal_escape(&out, TERMINAL_PLAIN));
    for (int i = 0; i < WORKLOADS; i++) {
        int at = printf("  %-12s  ", workloads[i].name);
        wrap_print(stdout, workloads[i].about, at, at, out.width < 100 ? out.width : 100);
    }
}

sdlf_status lab_workload_make(lab_workload *workload, int index, int64_t batch, int64_t side)
{
    *workload = (lab_workload){.name = workloads[index].name};
    if (side != 0 && side < workloads[index].least) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "--side %" PRId64 ": %s needs images of %" PRId64 " pixels a side at least", side,
                         workloads[index].name, workloads[index].least);
    }
    workloads[index].make(workload, batch, side);
    if (side != 0 && side != workloads[index].side) {
        snprintf(workload->about, sizeof workload->about, "%s: here of %" PRId64 "x%" PRId64, workloads[index].about,
                 side, side);
    } else {
        snprintf(workload->about, sizeof workload->about, "%s", workloads[index].about);
    }
    return SDLF_OK;
}

void lab_workload_of_shape(lab_workload *workload, const lab_shape *shape)
{
    *workload = (lab_workload){.name = "shape"};
    add(workload, shape, "conv");
    snprintf(workload->about, sizeof workload->about, "%s", lab_shape_print(shape).text);
}
