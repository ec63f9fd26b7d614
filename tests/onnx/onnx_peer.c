/* SPDX-License-Identifier: MIT */
/* Run an ONNX model on stored inputs and compare with stored outputs, for scripts/onnx-conformance.py and for
 * comparisons with other programs.
 *
 *     onnx_peer [--constants] CALCULATOR RELATIVE ABSOLUTE MODEL.onnx FOLDER [FOLDER ...]
 *     onnx_peer [--constants] CALCULATOR RELATIVE ABSOLUTE -
 *     onnx_peer [--constants] --write CALCULATOR MODEL.onnx FOLDER [BATCH]
 *     onnx_peer [--constants] --write CALCULATOR -
 *     onnx_peer --operators
 *
 * Each FOLDER holds input_0.pb, ... and output_0.pb, ...; an element may differ by ABSOLUTE + RELATIVE |expected|. A
 * negative RELATIVE is a fraction of the output's range instead. With --constants every input but the first is a
 * constant of the model. Prints one line, "passed DIFFERENCE", "failed REASON" or "unsupported REASON"; the exit code
 * is 0 unless the arguments are wrong. With - models and folders are read from standard input, tab-separated, one model
 * per line, and each is answered with such a line: this opens a GPU only once.
 *
 * With --write nothing is compared: the outputs are written to FOLDER as CALCULATOR_0.npy, ..., for
 * scripts/mutate-onnx.py. Open first dimensions have the size BATCH, if it is given; -BATCH is the plan's batch. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/formats/onnx/import/import.h"

enum { MOST = 64 };

typedef struct peer {
    sdlf_onnx_report *report;
    sdlf_calculator *calculator;
    sdlf_tensor input[MOST];
    int input_count;
    sdlf_model *model;
    sdlf_plan *plan;
    double relative, absolute, worst;
    bool constants; /* every input but the first is known when the model is created */
    bool writes;    /* writes outputs, compares nothing */
    int64_t batch;  /* of open first dimensions; negative: the plan's; 0: it is 1 */
} peer;

static sdlf_status read_numbered(sdlf_tensor *tensor, const char *folder, const char *what, int number)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s_%d.pb", folder, what, number);
    return sdlf_tensor_read_file(tensor, path);
}

/* numpy has no bfloat16: if the model has this type, the files have its 16 bits as uint16, which are read as int32. */
static void take_bits(sdlf_tensor *tensor, const char *type)
{
    int64_t count = sdlf_tensor_count(tensor);
    if (strcmp(type, "bfloat16") != 0 || tensor->dtype != SDLF_INT32) return;
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits = (uint16_t)((const int32_t *)tensor->data)[i];
        memcpy((char *)tensor->data + (size_t)i * sizeof bits, &bits, sizeof bits);
    }
    *tensor = sdlf_tensor_view(SDLF_BFLOAT16, tensor->shape, tensor->data);
}

/* True if SDLF computes such values, in their own type or in a larger one. */
static bool is_computed(const char *type)
{
    for (int i = 1; i < ONNX_TYPE_COUNT; i++)
        if (strcmp(onnx_type_name(i), type) == 0) return onnx_type_computed(i) != SDLF_NONE;
    return false;
}

static sdlf_status read_inputs(peer *p, const char *folder)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < p->report->input_count && i < MOST && status == SDLF_OK; i++) {
        status = read_numbered(&p->input[i], folder, "input", i);
        if (status == SDLF_OK) take_bits(&p->input[p->input_count++], p->report->input[i].type);
    }
    return status;
}

static bool is_double(const peer *p)
{
    for (int i = 0; i < p->report->input_count; i++)
        if (strcmp(p->report->input[i].type, "double") == 0) return true;
    for (int i = 0; i < p->report->output_count; i++)
        if (strcmp(p->report->output[i].type, "double") == 0) return true;
    return false;
}

static bool is_known(const peer *p, int input)
{
    return p->report->input[input].must_be_known || (p->constants && input > 0);
}

static sdlf_status make_plan(peer *p, const char *path)
{
    sdlf_onnx_known known[MOST];
    sdlf_onnx_options options = {.known = known, .batch = p->batch > 0 ? p->batch : 0};
    for (int i = 0; i < p->input_count; i++)
        if (is_known(p, i)) known[options.known_count++] = (sdlf_onnx_known){p->report->input[i].name, p->input[i]};
    sdlf_status status = sdlf_model_from_onnx(&p->model, path, &options);
    if (status != SDLF_OK) return status;
    return sdlf_plan_create(&p->plan, p->model,
                            &(sdlf_plan_options){.batch = p->batch < 0 ? -p->batch : 1,
                                                 .forward = p->calculator,
                                                 .dtype = is_double(p) ? SDLF_FLOAT64 : SDLF_FLOAT32});
}

static sdlf_status write_inputs(const peer *p)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < p->input_count && status == SDLF_OK; i++) {
        if (is_known(p, i)) continue;
        sdlf_binding binding;
        if (sdlf_plan_input(p->plan, p->report->input[i].name, &binding) != SDLF_OK) continue; /* it is unread */
        int64_t count = sdlf_tensor_count(&p->input[i]);
        if (count != sdlf_tensor_count(&binding.tensor))
            return sdlf_fail(SDLF_ERROR_SHAPE, "input %d is %s and was expected to be %s", i,
                             sdlf_shape_print(p->input[i].shape).text, sdlf_shape_print(binding.tensor.shape).text);
        void *values = malloc((size_t)sdlf_tensor_bytes(&binding.tensor) + 1);
        if (values == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory");
        sdlf_convert(binding.tensor.dtype, values, p->input[i].dtype, p->input[i].data, count);
        status = sdlf_plan_write(p->plan, p->report->input[i].name, values, binding.tensor.dtype,
                                 sdlf_tensor_bytes(&binding.tensor));
        free(values);
    }
    return status;
}

/* Compare elements as float64; `worst` is the largest difference relative to the tolerance. */
static sdlf_status compare(peer *p, const char *name, const double *found, const double *expected, int64_t count)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        low = fmin(low, expected[i]);
        high = fmax(high, expected[i]);
    }
    double range = fmax(high - low, fmax(fabs(low), fabs(high)));
    for (int64_t i = 0; i < count; i++) {
        double allowed = p->absolute + (p->relative < 0 ? -p->relative * range : p->relative * fabs(expected[i]));
        double difference = fabs(found[i] - expected[i]);
        if (found[i] == expected[i] || (isnan(found[i]) && isnan(expected[i]))) continue;
        if (!(difference <= allowed))
            return sdlf_fail(SDLF_ERROR_NUMERIC, "%s: element %lld is %.9g, and %.9g was expected", name, (long long)i,
                             found[i], expected[i]);
        p->worst = fmax(p->worst, p->relative < 0 ? difference / range : difference);
    }
    return SDLF_OK;
}

/* Outputs that the model declares as bfloat16 are computed as floats, and rounded here. */
static void round_to_bfloat16(double *value, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits;
        sdlf_convert(SDLF_BFLOAT16, &bits, SDLF_FLOAT64, &value[i], 1);
        sdlf_convert(SDLF_FLOAT64, &value[i], SDLF_BFLOAT16, &bits, 1);
    }
}

static sdlf_status check_output(peer *p, const char *folder, int number)
{
    const char *name = p->report->output[number].name;
    sdlf_binding binding;
    sdlf_tensor expected, given;
    sdlf_status status = read_numbered(&expected, folder, "output", number);
    if (status == SDLF_OK) take_bits(&expected, p->report->output[number].type);
    if (status == SDLF_OK) status = sdlf_plan_output(p->plan, name, &binding);
    if (status != SDLF_OK) return status;
    int64_t count = sdlf_tensor_count(&expected);
    bool both_float = sdlf_dtype_is_float(expected.dtype) && sdlf_dtype_is_float(binding.tensor.dtype);
    void *raw = malloc((size_t)sdlf_tensor_bytes(&binding.tensor) + 1);
    double *found = malloc((size_t)count * sizeof *found + 1), *wanted = malloc((size_t)count * sizeof *wanted + 1);
    given = sdlf_tensor_view(binding.tensor.dtype, binding.tensor.shape, raw);
    if (raw == NULL || found == NULL || wanted == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory");
    else if (!both_float && expected.dtype != given.dtype)
        status = sdlf_fail(SDLF_ERROR_SHAPE, "%s is of %s, and %s was expected", name, sdlf_dtype_name(given.dtype),
                           sdlf_dtype_name(expected.dtype));
    if (status == SDLF_OK) status = sdlf_plan_read(p->plan, name, raw, given.dtype, sdlf_tensor_bytes(&given));
    if (status == SDLF_OK) status = sdlf_plan_trim(p->plan, name, &given);
    if (status == SDLF_OK && !sdlf_shape_equal(expected.shape, given.shape))
        status = sdlf_fail(SDLF_ERROR_SHAPE, "%s is %s, and %s was expected", name, sdlf_shape_print(given.shape).text,
                           sdlf_shape_print(expected.shape).text);
    if (status == SDLF_OK) {
        sdlf_convert(SDLF_FLOAT64, found, given.dtype, raw, count);
        sdlf_convert(SDLF_FLOAT64, wanted, expected.dtype, expected.data, count);
        if (strcmp(p->report->output[number].type, "bfloat16") == 0) round_to_bfloat16(found, count);
        status = compare(p, name, found, wanted, count);
    }
    free(raw);
    free(found);
    free(wanted);
    sdlf_tensor_release(&expected, NULL);
    return status;
}

/* Write the output as CALCULATOR_NUMBER.npy. */
static sdlf_status write_output(const peer *p, const char *folder, const char *calculator, int number)
{
    const char *name = p->report->output[number].name;
    char path[4096];
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_output(p->plan, name, &binding);
    if (status != SDLF_OK) return status;
    sdlf_tensor given = sdlf_tensor_view(binding.tensor.dtype, binding.tensor.shape, NULL);
    int64_t bytes = sdlf_tensor_bytes(&given);
    void *values = malloc((size_t)bytes + 1);
    if (values == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory");
    given.data = values;
    status = sdlf_plan_read(p->plan, name, values, given.dtype, bytes);
    if (status == SDLF_OK) status = sdlf_plan_trim(p->plan, name, &given);
    snprintf(path, sizeof path, "%s/%s_%d.npy", folder, calculator, number);
    if (status == SDLF_OK) status = sdlf_tensor_write_file(&given, path);
    free(values);
    return status;
}

static void release_inputs(peer *p)
{
    for (int i = 0; i < p->input_count; i++) sdlf_tensor_release(&p->input[i], NULL);
    p->input_count = 0;
}

/* `made`: the model and its plan exist, so that any later failure is a bug and not a missing feature. */
static sdlf_status run(peer *p, int count, char **words, bool *made)
{
    const char *path = words[4];
    sdlf_status status = SDLF_OK;
    if (p->calculator == NULL) status = sdlf_calculator_open(&p->calculator, words[1], NULL);
    if (status == SDLF_OK) status = sdlf_onnx_inspect(&p->report, path, NULL);
    for (int i = 0; status == SDLF_OK && i < p->report->input_count; i++)
        if (strcmp(p->report->input[i].type, "undefined") == 0)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "input %d is no tensor", i);
    for (int i = 0; status == SDLF_OK && i < p->report->output_count; i++) {
        const char *type = p->report->output[i].type;
        if (!p->writes && !is_computed(type)) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "output %d is of %s", i, type);
    }
    if (status == SDLF_OK) status = read_inputs(p, words[5]);
    if (status == SDLF_OK) status = make_plan(p, path);
    *made = status == SDLF_OK || (!p->writes && status != SDLF_ERROR_UNSUPPORTED && status != SDLF_ERROR_SHAPE);
    for (int i = 5; i < (p->writes ? 6 : count) && status == SDLF_OK; i++) {
        if (i > 5) {
            release_inputs(p);
            status = read_inputs(p, words[i]);
        }
        if (status == SDLF_OK) status = write_inputs(p);
        if (status == SDLF_OK) status = sdlf_plan_forward(p->plan);
        if (status == SDLF_OK) status = sdlf_plan_synchronize(p->plan);
        for (int o = 0; o < p->report->output_count && status == SDLF_OK; o++)
            status = p->writes ? write_output(p, words[i], words[1], o) : check_output(p, words[i], o);
    }
    return status;
}

/* Print "Conv 1 to 22" once for every operator of the standard's own domain. */
static int print_operators(void)
{
    const onnx_operator *row;
    for (int i = 0; (row = onnx_operator_at(i)) != NULL; i++) {
        bool first = strchr(row->type, '.') == NULL; /* the standard's own */
        int since = row->since, until = row->until;
        const onnx_operator *other;
        for (int j = 0; (other = onnx_operator_at(j)) != NULL; j++) {
            if (strcmp(other->type, row->type) != 0) continue;
            first = first && j >= i;
            since = other->since < since ? other->since : since;
            until = until == 0 || other->until == 0 ? 0 : other->until > until ? other->until : until;
        }
        if (!first) continue;
        printf("%s %d to %d\n", row->type, since < ONNX_FIRST_OPSET ? ONNX_FIRST_OPSET : since,
               until == 0 ? ONNX_LAST_OPSET : until);
    }
    return 0;
}

/* Check one model on its folders: words[4] and the following words. The calculator stays open. */
static void check_one(peer *p, int count, char **words)
{
    bool made = false;
    p->batch = p->writes && count > 6 ? atoll(words[6]) : 0;
    sdlf_status status = run(p, count, words, &made);
    if (status == SDLF_OK)
        printf("passed %.3g\n", p->worst);
    else
        printf("%s %s\n", made && status != SDLF_ERROR_UNSUPPORTED ? "failed" : "unsupported", sdlf_error_message());
    fflush(stdout);
    release_inputs(p);
    sdlf_plan_free(p->plan);
    sdlf_model_free(p->model);
    sdlf_onnx_report_free(p->report);
    p->plan = NULL;
    p->model = NULL;
    p->report = NULL;
    p->worst = 0;
}

/* Check models and their folders from standard input, one model per line, separated by tabs. */
static void check_lines(peer *p, char **words)
{
    static char line[1 << 16];
    char *parts[4 + MOST] = {words[0], words[1], words[2], words[3]};
    while (fgets(line, sizeof line, stdin) != NULL) {
        int count = 4;
        for (char *part = strtok(line, "\t\n"); part != NULL && count < 4 + MOST; part = strtok(NULL, "\t\n"))
            parts[count++] = part;
        if (count > 5) check_one(p, count, parts);
    }
}

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "--operators") == 0) return print_operators();
    bool constants = count > 1 && strcmp(words[1], "--constants") == 0;
    words += constants;
    count -= constants;
    bool writes = count > 3 && strcmp(words[1], "--write") == 0;
    char *written[7] = {words[0]}, none[] = "0"; /* no tolerances */
    if (writes) {
        written[1] = words[2];
        written[2] = written[3] = none;
        for (int i = 3; i < count && i < 6; i++) written[i + 1] = words[i];
        count = count < 6 ? count + 1 : 7;
        words = written;
    }
    bool lines = count == 5 && strcmp(words[4], "-") == 0;
    if (count < 6 && !lines) {
        fprintf(stderr, "usage: onnx_peer [--constants] CALCULATOR RELATIVE ABSOLUTE (MODEL.onnx FOLDER... | -)\n"
                        "       onnx_peer [--constants] --write CALCULATOR (MODEL.onnx FOLDER [BATCH] | -)\n");
        return 2;
    }
    peer p = {.relative = atof(words[2]), .absolute = atof(words[3]), .constants = constants, .writes = writes};
    if (lines)
        check_lines(&p, words);
    else
        check_one(&p, count, words);
    sdlf_calculator_close(p.calculator);
    return 0;
}
