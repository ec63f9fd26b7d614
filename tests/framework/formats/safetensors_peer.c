/* SPDX-License-Identifier: MIT */
/* The C half of safetensors_python.py.
 *
 *     safetensors_peer write PATH    saves a small network's checkpoint; element e of parameter p is (31 p + 7 e) mod
 *                                    128, of its optimizer's state 128 more: all are exact in bfloat16
 *     safetensors_peer check PATH    loads PATH into the same network and checks for the same values */
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

static float number(int parameter, int64_t element)
{
    return (float)((31 * parameter + 7 * element) % 128);
}

static sdlf_model *make_network(void)
{
    sdlf_model *model = sdlf_model_create("peer");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, 8, 8));
    x = sdlf_conv2d(model, x, &(sdlf_conv2d_options){.filters = 2, .kernel = {3, 3}});
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "fc", .units = 3});
    sdlf_output(model, "class", sdlf_softmax(model, x));
    return model;
}

static sdlf_status write_file(sdlf_model *model, const char *path)
{
    sdlf_status status = sdlf_model_build(model, 1);
    if (status == SDLF_OK) status = sdlf_model_require_states(model, 1);
    for (int p = 0; p < sdlf_model_parameter_count(model) && status == SDLF_OK; p++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, p);
        for (int64_t e = 0; e < sdlf_tensor_count(&parameter->value); e++) {
            ((float *)parameter->value.data)[e] = number(p, e);
            ((float *)parameter->state[0].data)[e] = number(p, e) + 128;
        }
    }
    sdlf_training_state *state = sdlf_model_training_state(model);
    *state = (sdlf_training_state){.present = true, .step = 12, .seed = 7, .optimizer = "sgd"};
    *sdlf_model_normalization(model) = (sdlf_normalization){.mean = 0.125f, .scale = 4, .known = true};
    return status == SDLF_OK ? sdlf_model_save_checkpoint(model, path) : status;
}

static sdlf_status check_file(sdlf_model *model, const char *path)
{
    sdlf_status status = sdlf_model_load(model, path);
    for (int p = 0; p < sdlf_model_parameter_count(model) && status == SDLF_OK; p++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, p);
        for (int64_t e = 0; e < sdlf_tensor_count(&parameter->value); e++) {
            float found = ((const float *)parameter->value.data)[e];
            if (found != number(p, e))
                return sdlf_fail(SDLF_ERROR_FORMAT, "%s[%lld] is %g, expected %g", parameter->name, (long long)e,
                                 (double)found, (double)number(p, e));
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: safetensors_peer write|check PATH\n");
        return 2;
    }
    sdlf_model *model = make_network();
    sdlf_status status = strcmp(argv[1], "write") == 0 ? write_file(model, argv[2]) : check_file(model, argv[2]);
    if (status != SDLF_OK) fprintf(stderr, "%s\n", sdlf_error_message());
    sdlf_model_free(model);
    return status == SDLF_OK ? 0 : 1;
}
