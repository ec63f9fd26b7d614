/* SPDX-License-Identifier: MIT */
/* The inputs of a model that is run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/input/bytes.h"
#include "apps/run/run.h"
#include "apps/system/memory.h"

/* True if its name says that it is an array; standard input has no such name. */
static bool is_array(const char *path)
{
    static const char magic[] = "\x93NUMPY";
    char begin[sizeof magic - 1];
    if (strcmp(path, INPUT_STANDARD) != 0) return run_ends_with(path, ".npy") || run_ends_with(path, ".pb");
    return pread(STDIN_FILENO, begin, sizeof begin, 0) == (ssize_t)sizeof begin &&
           memcmp(begin, magic, sizeof begin) == 0;
}

sdlf_status run_take_standard(run_session *s)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < s->set.inputs.count && status == SDLF_OK; i++) {
        if (strcmp(s->input[i].path, "-") == 0) status = input_take_standard(&s->input[i].path); /* NAME=- */
        s->input[i].is_array = is_array(s->input[i].path);
    }
    return status;
}

sdlf_status run_check_pictures(const run_session *s, const arguments *given)
{
    if (s->set.inputs.count == 0) return SDLF_OK; /* what is missing is reported later */
    for (int i = 0; i < s->set.inputs.count; i++)
        if (!s->input[i].is_array) return SDLF_OK;
    return preprocess_refuse(given, s->input[0].path);
}

/* True for a pipe: it is read to its end before another file is opened, since its writer may fill it first. */
static bool is_stream(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 && !S_ISREG(at.st_mode);
}

sdlf_status run_open_inputs(run_session *s)
{
    int pictures = 0;
    sdlf_status status = SDLF_OK;
    s->batch = s->set.onnx.batch > 0 ? s->set.onnx.batch : 1;
    for (int i = 0; i < s->set.inputs.count && status == SDLF_OK; i++) {
        run_file *file = &s->input[i];
        if (file->is_array)
            status = sdlf_tensor_file_open(&file->array, file->path);
        else
            pictures++;
        file->tensor = sdlf_tensor_file_look(file->array);
        bool alone = s->set.inputs.count == 1;
        if (status == SDLF_OK && file->array != NULL && !alone && is_stream(file->path)) status = run_read_array(file);
    }
    if (status != SDLF_OK || s->set.onnx.batch > 0) return status;
    if (pictures > 1) s->batch = pictures;
    const sdlf_tensor *first = s->set.inputs.count > 0 ? &s->input[0].tensor : NULL;
    bool open = s->listed == NULL || (s->listed_count > 0 && !s->listed[0].must_be_known &&
                                      s->listed[0].shape.rank > 0 && s->listed[0].shape.dim[0] < 2);
    if (first != NULL && sdlf_tensor_present(first) && first->shape.rank > 0 && open) s->batch = first->shape.dim[0];
    if (s->batch < 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: expected at least one sample, found an array of shape %s",
                         s->input[0].path, sdlf_shape_print(first->shape).text);
    return SDLF_OK;
}

void run_close_inputs(run_session *s)
{
    for (int i = 0; i < s->set.inputs.count; i++) {
        sdlf_tensor_release(&s->input[i].tensor, NULL);
        sdlf_tensor_file_close(s->input[i].array);
        s->input[i].array = NULL;
    }
}

sdlf_status run_read_array(run_file *file)
{
    sdlf_tensor read;
    if (file->tensor.data != NULL) return SDLF_OK;
    sdlf_status status = sdlf_tensor_create(&read, NULL, file->tensor.dtype, file->tensor.shape);
    if (status == SDLF_OK) status = sdlf_tensor_file_read(file->array, read.data);
    if (status == SDLF_OK)
        file->tensor = read;
    else
        sdlf_tensor_release(&read, NULL);
    return status;
}

static const char *input_name(const run_session *s, int index)
{
    return sdlf_model_layer(s->model, sdlf_model_input(s->model, index).layer)->name;
}

static sdlf_status write_values(run_session *s, const char *name, const sdlf_tensor *from)
{
    return sdlf_plan_write_converted(s->plan, name, from->data, from->dtype, sdlf_tensor_count(from));
}

/* True if every integer is representable in that floating-point type. */
static bool is_exact(const sdlf_tensor *integers, sdlf_dtype dtype)
{
    const double most = 9007199254740992; /* 2^53: up to this a double is exact */
    const char *from = integers->data;
    size_t size = sdlf_dtype_size(integers->dtype);
    for (int64_t i = 0; i < sdlf_tensor_count(integers); i++) {
        double whole, narrow;
        uint64_t value;
        sdlf_convert(SDLF_FLOAT64, &whole, integers->dtype, from + (size_t)i * size, 1);
        sdlf_convert(dtype, &value, SDLF_FLOAT64, &whole, 1);
        sdlf_convert(SDLF_FLOAT64, &narrow, dtype, &value, 1);
        if (whole != narrow || whole > most || whole < -most) return false;
    }
    return true;
}

/* Arrays are passed unchanged: warns, since a network's output is meaningless without the normalisation that it was trained with. */
static void warn_of_normalization(run_session *s, const char *path, const char *name)
{
    const sdlf_normalization *n = sdlf_model_normalization(s->model);
    bool same = n->channels.count == 0 && n->mean == 0 && n->scale == 1;
    if (!n->known || same || s->is_later_part || strcmp(name, input_name(s, 0)) != 0) return;
    char how[96] = "channel by channel";
    if (n->channels.count == 0) snprintf(how, sizeof how, "as (x - %g) * %g", (double)n->mean, (double)n->scale);
    terminal_warning("run", "%s is used unchanged: %s was trained on samples that were normalised, %s", path,
                     s->model_path, how);
}

/* Writes an array to the input: directly from its file if the plan's input is in host memory with the same form. */
static sdlf_status write_array(run_session *s, const char *name, run_file *file)
{
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_input(s->plan, name, &binding);
    if (status != SDLF_OK) return status;
    const sdlf_tensor *input = &binding.tensor, *given = &file->tensor;
    bool sample = input->shape.rank > 1 && given->shape.rank == input->shape.rank - 1 &&
                  sdlf_shape_equal(given->shape, sdlf_shape_without(input->shape, 0));
    if (sample)
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "%s: input '%s' expects batches, but the file has one sample without its first dimension, %s: "
                         "expected 1x%s",
                         file->path, name, sdlf_shape_print(given->shape).text, sdlf_shape_print(given->shape).text);
    if (!sdlf_shape_equal(given->shape, input->shape))
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: input '%s' is %s, but the file has %s", file->path, name,
                         sdlf_shape_print(input->shape).text, sdlf_shape_print(given->shape).text);
    if (sdlf_dtype_is_float(given->dtype) != sdlf_dtype_is_float(input->dtype)) {
        status = sdlf_dtype_is_float(input->dtype) ? run_read_array(file) : SDLF_OK;
        if (status != SDLF_OK) return status;
        if (given->data == NULL || !is_exact(given, input->dtype))
            return sdlf_fail(SDLF_ERROR_SHAPE, "%s: input '%s' is of %s, but the file's elements are of %s%s",
                             file->path, name, sdlf_dtype_name(input->dtype), sdlf_dtype_name(given->dtype),
                             given->data != NULL ? ", which are not all numbers of that type" : "");
    }
    warn_of_normalization(s, file->path, name);
    bool on_host = binding.calculator != NULL && sdlf_calculator_is_on_host(binding.calculator);
    if (on_host && given->dtype == input->dtype && given->data == NULL && sdlf_dtype_is_float(given->dtype))
        return sdlf_tensor_file_read(file->array, input->data);
    status = run_read_array(file);
    return status == SDLF_OK ? write_values(s, name, given) : status;
}

/* Writes all images as the batch of one input. */
static sdlf_status write_pictures(run_session *s, const char *name, const int *which, int count)
{
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_input(s->plan, name, &binding);
    if (status != SDLF_OK) return status;
    sdlf_shape shape = binding.tensor.shape;
    if (shape.rank != 4 || shape.dim[0] != count)
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "input '%s' is %s, which does not hold %d picture%s, which '%s' is taken for (arrays are "
                         "files that end in .npy or .pb)",
                         name, sdlf_shape_print(shape).text, count, count == 1 ? "" : "s", s->input[which[0]].path);
    preprocess_frame frame;
    status = preprocess_complete(&s->set.preprocess, sdlf_model_normalization(s->model), s->model_path);
    if (status == SDLF_OK) status = preprocess_frame_of(&frame, sdlf_shape_without(shape, 0), &s->set.preprocess);
    if (status != SDLF_OK) return status;
    int64_t size = sdlf_shape_span(shape, 1, 4);
    float *samples = memory_allocate((size_t)(size * count) * sizeof *samples);
    float *pixels = memory_allocate((size_t)size * sizeof *pixels);
    for (int i = 0; i < count && status == SDLF_OK; i++)
        status = preprocess_read(samples + i * size, pixels, frame, s->input[which[i]].path, 0, &s->set.preprocess);
    free(pixels);
    sdlf_tensor batch = sdlf_tensor_view(SDLF_FLOAT32, shape, samples);
    if (status == SDLF_OK) status = write_values(s, name, &batch);
    free(samples);
    return status;
}

/* Lists the files for input `index`: those with its name, and the unnamed one at its position; for a model with one
 * input, all of them. */
static int files_for(const run_session *s, int index, int *which)
{
    int count = 0, unnamed = 0;
    bool only = sdlf_model_input_count(s->model) == 1;
    for (int i = 0; i < s->set.inputs.count; i++) {
        const run_file *file = &s->input[i];
        bool mine = file->name != NULL ? strcmp(file->name, input_name(s, index)) == 0 : only || unnamed == index;
        unnamed += file->name == NULL;
        if (mine) which[count++] = i;
    }
    return count;
}

static sdlf_status check_names(const run_session *s)
{
    for (int i = 0; i < s->set.inputs.count; i++) {
        const char *name = s->input[i].name;
        bool found = name == NULL;
        for (int j = 0; j < sdlf_model_input_count(s->model) && !found; j++)
            found = strcmp(name, input_name(s, j)) == 0;
        for (int j = 0; j < s->listed_count && !found; j++) found = strcmp(name, s->listed[j].name) == 0;
        if (!found)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--input %s=%s: the model has no input '%s'", name, s->input[i].path,
                             name);
    }
    return SDLF_OK;
}

sdlf_status run_write_inputs(run_session *s)
{
    sdlf_status status = check_names(s);
    for (int i = 0; i < sdlf_model_input_count(s->model) && status == SDLF_OK; i++) {
        int which[ARGUMENT_LIST_MAX], count = files_for(s, i, which);
        const char *name = input_name(s, i);
        sdlf_binding binding;
        if (sdlf_plan_input(s->plan, name, &binding) != SDLF_OK) continue; /* nothing reads it */
        if (count == 0)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "input '%s', %s, is missing: give it with --input %s=FILE", name,
                             sdlf_shape_print(binding.tensor.shape).text, name);
        if (!s->input[which[0]].is_array)
            status = write_pictures(s, name, which, count);
        else if (count > 1)
            status = sdlf_fail(SDLF_ERROR_ARGUMENT, "input '%s' is given %d times", name, count);
        else
            status = write_array(s, name, &s->input[which[0]]);
    }
    if (!s->is_part) run_close_inputs(s); /* the plan has them */
    return status;
}
