/* SPDX-License-Identifier: MIT */
/* sdlf bench conv: its workloads are the networks' convolutions. */
#include "testing.h"

#include <string.h>

#include "apps/bench/conv/shape.h"
#include "apps/bench/conv/workloads.h"

static int layers_of(const lab_workload *w, double *flops)
{
    int layers = 0;
    *flops = 0;
    for (int i = 0; i < w->count; i++) {
        sdlf_operation operation;
        if (!CHECK_OK(lab_shape_operation(&w->item[i].shape, SDLF_FLOAT32, &operation))) continue;
        layers += w->item[i].count;
        *flops += w->item[i].count * (double)sdlf_operation_cost(&operation).flops;
    }
    return layers;
}

/* The networks' convolutions compared with their published sizes: multiplications and additions for one image. */
static void workloads_are_the_networks(void)
{
    static const struct {
        const char *name;
        int shapes, layers;
        double flops;
    } expected[] = {
        {"study", 24, 24, 0},           {"simple_cnn", 1, 1, 2 * 32 * 25 * 784.0},
        {"vgg16", 9, 13, 30.69e9},      /* 15.3 G multiplications in its convolutions */
        {"mobilenetv2", 30, 52, 0.6e9}, /* 300 M */
        {"networks", 40, 66, 31.29e9},
    };
    static lab_workload w;
    for (int i = 0; lab_workload_names[i]; i++) {
        double flops;
        CHECK_TEXT(lab_workload_names[i], expected[i].name);
        CHECK_OK(lab_workload_make(&w, i, 1, 0));
        CHECK_EQUAL(layers_of(&w, &flops), expected[i].layers);
        CHECK_EQUAL(w.count, expected[i].shapes);
        if (expected[i].flops > 0) CHECK_CLOSE(flops / expected[i].flops, 1, 0.02);
        CHECK_OK(lab_workload_make(&w, i, 7, 33));
        for (int j = 0; j < w.count; j++) CHECK_EQUAL(w.item[j].shape.n, 7);
    }
    CHECK_OK(lab_workload_make(&w, 0, 1, 255));
    CHECK_EQUAL(w.count, 3); /* one row of the summary */
    CHECK_TEXT(w.item[0].row, "side 255");
    CHECK_TEXT(w.item[2].row, "side 255");
    CHECK_TEXT(lab_shape_print(&w.item[1].shape).text, "1x3x255x255, 1 of 3x3, stride 2, padding 1");
    CHECK_OK(lab_workload_make(&w, 2, 1, 0));
    char about[sizeof w.about];
    memcpy(about, w.about, sizeof about);
    CHECK_OK(lab_workload_make(&w, 2, 1, 224)); /* its own size */
    CHECK_TEXT(w.about, about);
    CHECK_OK(lab_workload_make(&w, 2, 1, 64));
    CHECK(strncmp(w.about, about, strlen(about)) == 0 && strstr(w.about, ": here of 64x64") != NULL);
    CHECK_FAILS(lab_workload_make(&w, 2, 1, 8), SDLF_ERROR_ARGUMENT, "vgg16 needs images of 16 pixels a side");
}

int main(void)
{
    RUN(workloads_are_the_networks);
    return test_summary();
}
