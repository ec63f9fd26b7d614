/* SPDX-License-Identifier: MIT */
/* Opening a network from a command-line value. */
#include "apps/input/network.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/suggest.h>

#include "apps/arguments/onnx.h"
#include "apps/input/file_type.h"
#include "apps/output/terminal.h"
#include "apps/output/wrap.h"

bool network_is_builtin(const char *name)
{
    const char *known;
    for (int i = 0; (known = sdlf_network_builtin_name(i)); i++) {
        if (strcmp(known, name) == 0) return true;
    }
    return false;
}

/* True for a path, by its form or because the file exists. */
static bool is_file(const char *net)
{
    return strchr(net, '/') || file_type_of(net) != FILE_TYPE_OTHER || access(net, F_OK) == 0;
}

bool network_is_onnx(const char *path)
{
    return file_type_of(path) == FILE_TYPE_ONNX;
}

static sdlf_status unknown_network(const char *net)
{
    sdlf_suggestion s = {.word = net};
    char list[256] = "";
    size_t used = 0;
    const char *known;
    for (int i = 0; (known = sdlf_network_builtin_name(i)) && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", known);
        sdlf_suggest(&s, known);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "there is no network '%.200s' and no such file%s; built in are %s", net,
                     sdlf_suggestion_print(&s).text, list);
}

static sdlf_status read_onnx(sdlf_model **model, const char *path, const argument_list *dimensions, bool to_take)
{
    sdlf_onnx_options options;
    onnx_settings set = {.dimensions = dimensions != NULL ? *dimensions : (argument_list){.count = 0}};
    sdlf_status status = onnx_settings_complete(&set, &options);
    options.leave_weights = to_take;
    if (status == SDLF_OK) status = sdlf_model_from_onnx(model, path, &options);
    onnx_settings_release(&set);
    return status;
}

static sdlf_status fits_other(const argument_list *dimensions, const char *path)
{
    return dimensions == NULL ? SDLF_OK : onnx_settings_fit_other(&(onnx_settings){.dimensions = *dimensions}, path);
}

sdlf_status network_read(sdlf_model **model, const char *net, const argument_list *dimensions)
{
    *model = NULL;
    if (!network_is_builtin(net) && network_is_onnx(net)) return read_onnx(model, net, dimensions, false);
    sdlf_status status = fits_other(dimensions, net);
    if (status != SDLF_OK) return status;
    if (network_is_builtin(net)) return sdlf_network_builtin(model, net);
    if (file_type_of(net) == FILE_TYPE_SAFETENSORS) {
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "--net %s: expected a network's name, FILE.json or FILE.onnx; a safetensors file holds weights", net);
    }
    if (!is_file(net)) return unknown_network(net);
    status = file_type_refuse_other(net, "a network, in a JSON or an ONNX file");
    return status == SDLF_OK ? sdlf_network_read(model, net) : status;
}

sdlf_status network_open(sdlf_model **model, const char *net, uint64_t seed, const argument_list *dimensions)
{
    sdlf_status status = network_read(model, net, dimensions);
    if (status == SDLF_OK && !network_is_onnx(net)) status = sdlf_model_build(*model, seed);
    if (status != SDLF_OK) {
        sdlf_model_free(*model);
        *model = NULL;
    }
    return status;
}

/* `to_take`: the values of a file with its own network stay there until a plan takes them. */
static sdlf_status open_weights(sdlf_model **model, const char *weights, const char *net,
                                const argument_list *dimensions, bool to_take)
{
    *model = NULL;
    if (network_is_onnx(weights)) {
        if (!net) return read_onnx(model, weights, dimensions, to_take);
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--net %s cannot be combined with %s, which contains its network", net,
                         weights);
    }
    if (file_type_of(weights) == FILE_TYPE_JSON)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%s: expected weights, in a safetensors or an ONNX file; a JSON file has none", weights);
    sdlf_status status = file_type_refuse_other(weights, "weights, in a safetensors or an ONNX file");
    if (status == SDLF_OK && !net) status = fits_other(dimensions, weights);
    if (status != SDLF_OK) return status;
    if (!net) return to_take ? sdlf_model_open_to_take(model, weights) : sdlf_model_open_to_run(model, weights);
    status = network_open(model, net, 1, dimensions);
    if (status == SDLF_OK) status = sdlf_model_load(*model, weights);
    if (status != SDLF_OK) {
        sdlf_model_free(*model);
        *model = NULL;
    }
    return status;
}

sdlf_status network_open_weights(sdlf_model **model, const char *weights, const char *net,
                                 const argument_list *dimensions)
{
    return open_weights(model, weights, net, dimensions, false);
}

sdlf_status network_open_to_take(sdlf_model **model, const char *weights, const char *net,
                                 const argument_list *dimensions)
{
    return open_weights(model, weights, net, dimensions, true);
}

sdlf_shape network_sample_shape(const sdlf_model *model)
{
    if (sdlf_model_input_count(model) == 0) return SDLF_SCALAR;
    sdlf_shape shape = sdlf_model_node_shape(model, sdlf_model_input(model, 0));
    return shape.rank > 0 ? sdlf_shape_without(shape, 0) : shape;
}

void network_print_list(void)
{
    terminal out = terminal_of(stdout);
    printf("\n%sNetworks%s\n", terminal_escape(&out, TERMINAL_BOLD), terminal_escape(&out, TERMINAL_PLAIN));
    const char *name;
    for (int i = 0; (name = sdlf_network_builtin_name(i)); i++) {
        int at = printf("  %-12s  ", name);
        wrap_print(stdout, sdlf_network_builtin_summary(i), at, at, out.width);
    }
}
