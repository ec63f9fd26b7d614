/* SPDX-License-Identifier: MIT */
/* Models that ONNX cannot express are rejected, with the layer and the reason, and old files stay intact. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/export_cases.h"
#include "onnx/fixtures.h"

static int64_t read_all(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    size_t count = fread(bytes, 1, size, file);
    fclose(file);
    return (int64_t)count;
}

static sdlf_status add_output(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    return sdlf_signature_add_output(signature, signature->dtype, signature->input_shape[0]);
}

/* A user-defined layer. */
typedef struct own_options {
    const char *name;
} own_options;
static const sdlf_field own_fields[] = {{.name = NULL}};
static const sdlf_layer_class own_class = {
    .name = "own",
    .options_size = sizeof(own_options),
    .fields = own_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = add_output,
};

static sdlf_model *refused_model(int which)
{
    sdlf_model *net = sdlf_model_create("refused");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(2, 5, 6)), y = x;
    if (which == 0) y = sdlf_model_add(net, &own_class, &(own_options){.name = "mine"}, &x, 1);
    if (which == 1) y = sdlf_resize(net, x, &(sdlf_resize_options){.name = "r", .sizes = sdlf_shape(7, 7), .scale = 2});
    if (which == 2) {
        y = sdlf_flatten(net, x);
        y = sdlf_softmax_cross_entropy(net, y, sdlf_input(net, "labels", SDLF_INT32, SDLF_SCALAR), NULL);
        y = sdlf_relu(net, y);
    }
    if (which == 3)
        y = sdlf_pad(net, x, &(sdlf_pad_options){.before = {.rank = 4}, .after = sdlf_shape(0, 0, 1, 1), .mode = 3});
    sdlf_output(net, "y", y);
    return net;
}

static void refused(int which, int opset, const char *message)
{
    static const char old[] = "an older file";
    char bytes[64];
    const char *path = test_path("refused.onnx");
    sdlf_model *model = refused_model(which);
    test_write_file(path, old, sizeof old);
    CHECK_OK(sdlf_model_build(model, 1));
    CHECK_FAILS(sdlf_model_to_onnx(model, path, &(sdlf_onnx_export_options){.opset = opset}, NULL),
                SDLF_ERROR_UNSUPPORTED, message);
    CHECK(read_all(path, bytes, sizeof bytes) == sizeof old && memcmp(bytes, old, sizeof old) == 0);
    sdlf_model_free(model);
}

static void what_cannot_be_said_is_refused(void)
{
    refused(0, 0, "layer 1 'mine' (own) cannot be written as ONNX: its class has no ONNX writer");
    refused(1, 0, "layer 1 'r' (resize) cannot be written as ONNX: 1x2x5x6 to 1x2x7x7 at a scale of 2");
    refused(2, 0,
            "(softmax_cross_entropy) cannot be written as ONNX: losses are not exported, but something reads this one");
    refused(3, 18, "(pad) cannot be written as ONNX: mode wrap needs opset 19, and opset 18 was asked for");
    sdlf_model *model = export_case_model(NULL, "mlp");
    const char *path = test_path("refused.onnx");
    CHECK_FAILS(sdlf_model_to_onnx(model, path, &(sdlf_onnx_export_options){.opset = 16}, NULL), SDLF_ERROR_ARGUMENT,
                "opset 16: ONNX is written in opsets 17 to 22");
    CHECK_FAILS(sdlf_model_to_onnx(model, test_path("absent/x.onnx"), NULL, NULL), SDLF_ERROR_IO, "absent");
    CHECK_FAILS(sdlf_model_to_onnx(model, "/dev/full", NULL, NULL), SDLF_ERROR_IO, "No space left on device");
    CHECK_FAILS(sdlf_model_to_onnx(NULL, path, NULL, NULL), SDLF_ERROR_MEMORY, "");
    sdlf_model_free(model);
    model = sdlf_model_create("unbuilt");
    sdlf_output(model, "y", sdlf_relu(model, sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3))));
    CHECK_FAILS(sdlf_model_to_onnx(model, path, NULL, NULL), SDLF_ERROR_ARGUMENT, "build it first");
    sdlf_model_free(model);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(what_cannot_be_said_is_refused);
    return test_summary();
}
