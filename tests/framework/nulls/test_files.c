/* SPDX-License-Identifier: MIT */
/* NULL pointers passed to functions for files. */
#include "framework/nulls/nulls.h"

#include "framework/plan/networks.h"

static void weights(void)
{
    sdlf_model *net = small_cnn(), *made;
    CHECK_OK(sdlf_model_build(net, 1));
    NO_MODEL(sdlf_model_save(NULL, test_path("w.safetensors")));
    REFUSED(sdlf_model_save(net, NULL), "path");
    NO_MODEL(sdlf_model_save_checkpoint(NULL, test_path("w.safetensors")));
    REFUSED(sdlf_model_save_checkpoint(net, NULL), "path");
    NO_MODEL(sdlf_model_load(NULL, test_path("w.safetensors")));
    REFUSED(sdlf_model_load(net, NULL), "path");
    sdlf_model *none;
    REFUSED(sdlf_model_from_memory(NULL, "x", 1, NULL, NULL), "model");
    REFUSED(sdlf_model_from_memory(&none, NULL, 1, NULL, NULL), "bytes");
    REFUSED(sdlf_model_open(NULL, test_path("w.safetensors")), "model");
    REFUSED(sdlf_model_open(&made, NULL), "path");
    CHECK(made == NULL);
    REFUSED(sdlf_model_open_to_run(NULL, test_path("w.safetensors")), "model");
    REFUSED(sdlf_model_open_to_run(&made, NULL), "path");
    REFUSED(sdlf_model_open_to_take(NULL, test_path("w.safetensors")), "model");
    REFUSED(sdlf_model_open_to_take(&made, NULL), "path");
    CHECK(made == NULL);
    sdlf_model_free(net);
}

static void networks(void)
{
    sdlf_model *net = small_cnn(), *made;
    char *text;
    REFUSED(sdlf_network_read(NULL, test_path("net.json")), "model");
    REFUSED(sdlf_network_read(&made, NULL), "path");
    REFUSED(sdlf_network_parse(NULL, "{}", 2, "test"), "model");
    REFUSED(sdlf_network_parse(&made, NULL, 2, "test"), "text");
    CHECK_FAILS(sdlf_network_parse(&made, "{}", 2, NULL), SDLF_ERROR_FORMAT,
                "network:1: "); /* the origin may be omitted */
    CHECK(made == NULL);
    NO_MODEL(sdlf_network_write(NULL, &text));
    REFUSED(sdlf_network_write(net, NULL), "text");
    REFUSED(sdlf_network_builtin(NULL, "mlp"), "model");
    REFUSED(sdlf_network_builtin(&made, NULL), "name");
    REFUSED(sdlf_network_builtin_for_targets(NULL, "mlp", sdlf_shape(4), 1), "model");
    REFUSED(sdlf_network_builtin_for_targets(&made, NULL, sdlf_shape(4), 1), "name");
    REFUSED(sdlf_network_builtin_for(NULL, "mlp", sdlf_shape(1, 28, 28), 10), "model");
    REFUSED(sdlf_network_builtin_for(&made, NULL, sdlf_shape(1, 28, 28), 10), "name");
    sdlf_model_free(net);
}

static void onnx(void)
{
    sdlf_model *net = small_cnn(), *made;
    sdlf_onnx_report *report;
    const char *path = test_path("model.onnx");
    REFUSED(sdlf_model_from_onnx(NULL, path, NULL), "model");
    REFUSED(sdlf_model_from_onnx(&made, NULL, NULL), "path");
    CHECK(made == NULL);
    REFUSED(sdlf_onnx_inspect(NULL, path, NULL), "report");
    REFUSED(sdlf_onnx_inspect(&report, NULL, NULL), "path");
    CHECK(report == NULL);
    DOES_NOTHING(sdlf_onnx_report_free(NULL));
    NO_MODEL(sdlf_model_to_onnx(NULL, path, NULL, NULL));
    REFUSED(sdlf_model_to_onnx(net, NULL, NULL, NULL), "path");
    static const sdlf_quantization_options only_weights = {.weights_only = 8};
    NO_MODEL(sdlf_quantize(NULL, path, &only_weights, NULL));
    REFUSED(sdlf_quantize(net, NULL, &only_weights, NULL), "path");
    REFUSED(sdlf_quantize(net, path, NULL, NULL), "options");
    sdlf_model_free(net);
}

/* Option lists with a length but no elements. */
static void onnx_options(void)
{
    sdlf_model *net = small_cnn(), *made;
    const char *path = test_path("model.onnx");
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_status status = sdlf_model_to_onnx(net, path, NULL, NULL);
    sdlf_model_free(net);
    if (status == SDLF_ERROR_UNSUPPORTED) {
        test_skip("this build reads no ONNX files");
        return;
    }
    CHECK_FAILS(sdlf_model_from_onnx(&made, path, &(sdlf_onnx_options){.dimension_count = 1}), SDLF_ERROR_ARGUMENT,
                "options->dimensions is NULL");
    CHECK_FAILS(sdlf_model_from_onnx(&made, path, &(sdlf_onnx_options){.known_count = 1}), SDLF_ERROR_ARGUMENT,
                "options->known is NULL");
    sdlf_onnx_dimension dimension = {.name = NULL, .size = 1};
    sdlf_onnx_options options = {.dimensions = &dimension, .dimension_count = 1};
    CHECK_FAILS(sdlf_model_from_onnx(&made, path, &options), SDLF_ERROR_ARGUMENT,
                "options->dimensions[0].name is NULL");
    sdlf_onnx_known known = {.name = NULL};
    options = (sdlf_onnx_options){.known = &known, .known_count = 1};
    CHECK_FAILS(sdlf_model_from_onnx(&made, path, &options), SDLF_ERROR_ARGUMENT, "options->known[0].name is NULL");
}

static void programs(void)
{
    sdlf_model *net = small_cnn();
    NO_MODEL(sdlf_model_to_c(NULL, test_path("net.c"), NULL, NULL));
    REFUSED(sdlf_model_to_c(net, NULL, NULL, NULL), "path");
    sdlf_model_free(net);
}

static void tensors_and_bytes(void)
{
    float number = 1;
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), &number), made, unbound = tensor;
    unbound.data = NULL;
    REFUSED(sdlf_tensor_read_file(NULL, test_path("x.npy")), "tensor");
    REFUSED(sdlf_tensor_read_file(&made, NULL), "path");
    sdlf_tensor_file *file = NULL;
    REFUSED(sdlf_tensor_file_open(NULL, test_path("x.npy")), "file");
    REFUSED(sdlf_tensor_file_open(&file, NULL), "path");
    CHECK_EQUAL(sdlf_tensor_file_look(NULL).dtype, SDLF_NONE);
    REFUSED(sdlf_tensor_file_read(NULL, &number), "file");
    CHECK_OK(sdlf_tensor_write_file(&tensor, test_path("x.npy")));
    CHECK_OK(sdlf_tensor_file_open(&file, test_path("x.npy")));
    REFUSED(sdlf_tensor_file_read(file, NULL), "values");
    sdlf_tensor_file_close(file);
    sdlf_tensor_file_close(NULL);
    REFUSED(sdlf_tensor_write_file(NULL, test_path("x.npy")), "tensor");
    REFUSED(sdlf_tensor_write_file(&tensor, NULL), "path");
    REFUSED(sdlf_tensor_write_file(&unbound, test_path("x.npy")), "tensor->data");
    REFUSED(sdlf_write_file(NULL, "x", 1), "path");
    REFUSED(sdlf_write_file(test_path("x"), NULL, 1), "bytes");
    CHECK_OK(sdlf_write_file(test_path("x"), NULL, 0));
    REFUSED(sdlf_can_write_file(NULL), "path");
}

int main(void)
{
    RUN(weights);
    RUN(networks);
    RUN(onnx);
    RUN(onnx_options);
    RUN(programs);
    RUN(tensors_and_bytes);
    return test_summary();
}
