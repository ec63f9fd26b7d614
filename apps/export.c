/* SPDX-License-Identifier: MIT */
/* sdlf export: writes a network and its weights for other programs, as an ONNX file or as one C file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/command.h"
#include "apps/input/file_type.h"
#include "apps/input/network.h"
#include "apps/output/file.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/stream.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

typedef struct settings {
    const char *weights, *net, *out, *name;
    int64_t opset, maximum;
    bool c, external, normalize, json;
    onnx_settings onnx;
} settings;

static const argument table_of_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"out", ARGUMENT_TEXT, offsetof(settings, out), "FILE", .standard = ARGUMENT_STANDARD_OUTPUT, .required = true,
     .letter = 'o', .help = "the file to write, .onnx or .c; standard output gets ONNX, or C with --c"},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "the weights, as an option"},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "the network, for weights files that hold none: a built-in name, FILE.json or FILE.onnx"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {.name = "ONNX", .type = ARGUMENT_HEADING},
    {"opset", ARGUMENT_INT, offsetof(settings, opset), "N", .minimum = 17, .maximum = 22,
     .help = "version of the ONNX operators (default: 17, or the lowest that has the network's layers)"},
    {"external-data", ARGUMENT_FLAG, offsetof(settings, external),
     .help = "store the weights in a second file, FILE.HASH.data, as is done for models of more than 2 GB"},
    {"normalize", ARGUMENT_FLAG, offsetof(settings, normalize),
     .help = "begin the graph with the normalisation, so that it accepts raw pictures of 0 to 255"},
    {.name = "C", .type = ARGUMENT_HEADING},
    {"c", ARGUMENT_FLAG, offsetof(settings, c),
     .help = "write one C99 file that runs the network and needs no library; implied by FILE.c"},
    {"name", ARGUMENT_TEXT, offsetof(settings, name), "NAME",
     .help = "prefix of its names: NAME_run (default: the network's name)"},
    {"max-parameters", ARGUMENT_INT, offsetof(settings, maximum), "N", .minimum = 1, .maximum = 1e12,
     .help = "refuse larger networks, which compile slowly (default: 2000000)"},
    {0},
};

static const argument sizes_heading[] = {{.name = "A network in an ONNX file", .type = ARGUMENT_HEADING}, {0}};

typedef struct session {
    settings set;
    const char *weights; /* NULL: the network's own, or drawn */
    sdlf_model *model;
    sdlf_onnx_exported onnx;
    sdlf_c_exported c;
} session;

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return length > wanted && strcmp(text + length - wanted, end) == 0;
}

/* ---- what is exported ---- */

/* Reads the operand: weights, or a network with weights of its own. */
static sdlf_status take_operand(session *s, const char *word)
{
    file_type form = file_type_of(word);
    bool net = form == FILE_TYPE_ONNX || form == FILE_TYPE_JSON;
    if (net && s->set.net)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "'%s' and --net %s are two networks", word, s->set.net);
    if (!net && s->set.weights)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "'%s' and --weights %s are weights twice", word, s->set.weights);
    *(net ? &s->set.net : &s->weights) = word;
    return SDLF_OK;
}

/* Chooses the format by name: FILE.onnx or FILE.c. Standard output, a device or a pipe gets ONNX, or C with
 * --c. */
static sdlf_status choose_format(settings *set)
{
    struct stat at;
    const char *out = set->out;
    if (ends_in(out, ".c")) {
        set->c = true;
        return SDLF_OK;
    }
    if (ends_in(out, ".onnx")) {
        return set->c ? sdlf_fail(SDLF_ERROR_ARGUMENT, "'%s' names an ONNX file, but --c asks for C: FILE.c", out)
                      : SDLF_OK;
    }
    if (output_is_stream(out) || (stat(out, &at) == 0 && !S_ISREG(at.st_mode))) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "'%s': expected the name of a file that ends in .onnx or .c%s", out,
                     ends_in(out, ".safetensors") ? "; a safetensors file is the input" : "");
}

static sdlf_status check_options(const session *s, const arguments *given)
{
    static const char *const of_onnx[] = {"opset", "external-data", "normalize", NULL}, *const of_c[] = {
                                                                                            "name", "max-parameters",
                                                                                            NULL};
    for (const char *const *wrong = s->set.c ? of_onnx : of_c; *wrong; wrong++) {
        if (arguments_given(given, *wrong))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s is for %s", *wrong, s->set.c ? "ONNX files" : "C: -o FILE.c");
    }
    if (output_is_standard(s->set.out) && s->set.json)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--json and --out -: only one of the two can go to standard output");
    if (output_is_stream(s->set.out) && s->set.external)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--external-data needs a regular file, not --out %s", s->set.out);
    if (!s->weights && !s->set.net)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "weights are missing: a safetensors file, as train writes it");
    return SDLF_OK;
}

/* Opens a network from an ONNX file, for the given sizes, with the weights of another file if one is given. */
static sdlf_status open_onnx(session *s)
{
    sdlf_onnx_options options;
    sdlf_status status = onnx_settings_complete(&s->set.onnx, &options);
    if (status == SDLF_OK) status = sdlf_model_from_onnx(&s->model, s->set.net, &options);
    return status == SDLF_OK && s->weights ? sdlf_model_load(s->model, s->weights) : status;
}

static sdlf_status open_model(session *s)
{
    if (s->set.net && network_is_onnx(s->set.net) && (s->set.onnx.batch > 0 || s->set.onnx.dimensions.count > 0))
        return open_onnx(s);
    sdlf_status status = onnx_settings_fit_other(&s->set.onnx, s->set.net ? s->set.net : s->weights);
    if (status == SDLF_OK && s->set.onnx.batch > 0)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--batch %lld: a network that is not ONNX is written for every batch",
                           (long long)s->set.onnx.batch);
    if (status != SDLF_OK) return status;
    if (s->weights) return network_open_weights(&s->model, s->weights, s->set.net, NULL);
    return network_open(&s->model, s->set.net, 1, NULL);
}

/* ---- output ---- */

/* "Nx1x28x28" */
static const char *open_shape(const sdlf_onnx_value *value, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < value->shape.rank && used < size; i++) {
        const char *between = i > 0 ? "x" : "";
        if (value->shape.dim[i] < 0)
            used += (size_t)snprintf(text + used, size - used, "%sN", between);
        else
            used += (size_t)snprintf(text + used, size - used, "%s%lld", between, (long long)value->shape.dim[i]);
    }
    return text;
}

static void print_values(const terminal *out, const char *label, const sdlf_onnx_value *value, int count)
{
    char shape[160];
    for (int i = 0; i < count; i++) {
        report_label(out, i == 0 ? label : "");
        printf("%s  %s %s\n", value[i].name, value[i].type, open_shape(&value[i], shape, sizeof shape));
    }
}

static void print_normalization(const session *s, const terminal *out)
{
    const sdlf_normalization *n = sdlf_model_normalization(s->model);
    if (!n->known || (n->channels.count == 0 && n->mean == 0 && n->scale == 1)) return;
    report_label(out, "");
    if (s->set.normalize) {
        puts("samples go in as they are: the graph normalises them");
        return;
    }
    if (n->channels.count == 0) {
        printf("samples x go in as (x - %g) * %g\n", (double)n->mean, (double)n->scale);
        return;
    }
    printf("samples x go in as (x - mean) * scale, channel by channel:");
    for (int i = 0; i < n->channels.count; i++)
        printf("%s mean %g, scale %g", i > 0 ? ";" : "", (double)n->channels.mean[i], (double)n->channels.scale[i]);
    putchar('\n');
}

/* Describes the written file; SDLF_ERROR_MEMORY: its inputs and outputs could not be read. */
static sdlf_status print_onnx(const session *s, const terminal *out)
{
    sdlf_onnx_report *report = NULL;
    sdlf_status status = sdlf_onnx_inspect(&report, s->set.out, NULL);
    if (status == SDLF_OK) {
        print_values(out, "in", report->input, report->input_count);
        print_normalization(s, out);
        print_values(out, "out", report->output, report->output_count);
        sdlf_onnx_report_free(report);
    }
    report_label(out, "saved");
    printf("%s (%s", s->set.out, number_bytes(s->onnx.bytes).text);
    if (s->onnx.external_bytes > 0)
        printf(", and %s in %s", number_bytes(s->onnx.external_bytes).text, s->onnx.external_file);
    printf("): opset %d, %s nodes, %s parameters%s\n", s->onnx.opset, number_count(s->onnx.node_count).text,
           number_count(s->onnx.parameter_count).text, s->onnx.fixed_batch ? ", only for a batch of 1" : "");
    return status == SDLF_ERROR_MEMORY ? status : SDLF_OK;
}

static void print_c(const session *s, const terminal *out)
{
    print_normalization(s, out);
    report_label(out, "saved");
    printf("%s (%s): %s_run, %s parameters, %s of scratch memory\n", s->set.out, number_bytes(s->c.bytes).text,
           s->c.name, number_count(s->c.parameter_count).text, number_bytes(s->c.scratch_bytes).text);
}

static sdlf_status print_text(const session *s)
{
    terminal out = terminal_of(stdout);
    char *note = s->weights                    ? memory_print("  from %s", s->weights)
                 : network_is_onnx(s->set.net) ? memory_print("  from %s", s->set.net)
                                               : memory_print("  untrained");
    report_network(&out, &(report_subject){.model = s->model, .note = note});
    free(note);
    if (!s->set.c) return print_onnx(s, &out);
    print_c(s, &out);
    return SDLF_OK;
}

/* A number, or an array for several channels. */
static json_t *json_numbers(const float *number, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(array, json_number((double)number[i]));
    return array;
}

static json_t *json_normalization(const session *s)
{
    const sdlf_normalization *n = sdlf_model_normalization(s->model);
    if (!n->known) return json_null();
    if (s->set.normalize) return json_pack("{si si}", "mean", 0, "scale", 1);
    int channels = n->channels.count;
    if (channels == 0)
        return json_pack("{so so}", "mean", json_number((double)n->mean), "scale", json_number((double)n->scale));
    return json_pack("{so so}", "mean", json_numbers(n->channels.mean, channels), "scale",
                     json_numbers(n->channels.scale, channels));
}

static sdlf_status print_json(const session *s)
{
    json_t *result = json_pack("{ss so so so ss}", "version", SDLF_VERSION, "weights", json_text(s->weights), "network",
                               json_text(sdlf_model_name(s->model)), "file", json_text(s->set.out), "format",
                               s->set.c ? "c" : "onnx");
    json_t *more =
        s->set.c ? json_pack("{ss sI sI sI}", "name", s->c.name, "parameters", (json_int_t)s->c.parameter_count,
                             "bytes", (json_int_t)s->c.bytes, "scratch_bytes", (json_int_t)s->c.scratch_bytes)
                 : json_pack("{si si sI sI sI so sb}", "opset", s->onnx.opset, "nodes", s->onnx.node_count,
                             "parameters", (json_int_t)s->onnx.parameter_count, "bytes", (json_int_t)s->onnx.bytes,
                             "external_bytes", (json_int_t)s->onnx.external_bytes, "external_file",
                             json_text(s->onnx.external_bytes > 0 ? s->onnx.external_file : NULL), "fixed_batch",
                             s->onnx.fixed_batch);
    if (result && more) json_object_update(result, more);
    if (result) json_object_set_new(result, "normalization", json_normalization(s));
    json_decref(more);
    return json_print_result(result);
}

/* ---- the command ---- */

static sdlf_status write_file(session *s, const char *path)
{
    if (s->set.c)
        return sdlf_model_to_c(s->model, path,
                               &(sdlf_c_export_options){.name = s->set.name, .max_parameters = s->set.maximum}, &s->c);
    sdlf_status status = sdlf_model_to_onnx(s->model, path,
                                            &(sdlf_onnx_export_options){.opset = (int)s->set.opset,
                                                                        .external_data = s->set.external,
                                                                        .normalize = s->set.normalize},
                                            &s->onnx);
    if (status != SDLF_OK || s->onnx.external_bytes == 0 || !output_is_stream(s->set.out)) return status;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: weights of more than 2 GB need a second file, beside a regular one",
                     s->set.out);
}

static sdlf_status write_model(session *s)
{
    sdlf_status status = open_model(s);
    if (status == SDLF_OK) status = output_stream_check(s->set.out);
    if (status != SDLF_OK) return status;
    output_stream out;
    interrupt_waits(); /* until the file is complete, so that no partial temporary file remains */
    status = output_stream_open(&out, s->set.out);
    if (status == SDLF_OK) status = write_file(s, out.path);
    status = output_stream_close(&out, status);
    interrupt_stops(NULL);
    if (status != SDLF_OK) return status;
    if (s->set.json) return print_json(s);
    return output_is_standard(s->set.out) ? SDLF_OK : print_text(s);
}

static int run(int count, char **words)
{
    session s = {.model = NULL};
    arguments given;
    static const argument_part parts[] = {
        {table_of_arguments, 0}, {sizes_heading, 0}, {onnx_arguments, offsetof(settings, onnx)}, {0}};
    static const command_usage usage = {
        .command = "export",
        .synopsis = "WEIGHTS -o FILE [options]",
        .text =
            "Write a network with its weights as an ONNX file, which other programs run, or as one C file, depending "
            "on the extension of FILE. Weights are a safetensors file, as train writes it, or an ONNX or JSON file. "
            "What only training needs is left out.",
        .parts = parts,
        .operands_maximum = 1,
        .operands_standard = ARGUMENT_STANDARD_INPUT,
        .examples = "  sdlf export simple_cnn.safetensors -o simple_cnn.onnx\n"
                    "  sdlf export finetuned.safetensors --net model.onnx -o finetuned.onnx --opset 20\n"
                    "  sdlf export lenet5.safetensors -o lenet5.c\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    s.weights = s.set.weights;
    sdlf_status status = given.operand_count > 0 ? take_operand(&s, given.operand[0]) : SDLF_OK;
    if (status == SDLF_OK) status = choose_format(&s.set);
    if (status == SDLF_OK) status = check_options(&s, &given);
    if (status == SDLF_OK) status = write_model(&s);
    int code = command_conclude("export", status);
    sdlf_model_free(s.model);
    onnx_settings_release(&s.set.onnx);
    return code;
}

const command export_command = {
    .name = "export", .summary = "write a network as ONNX or C, for other programs", .run = run};
