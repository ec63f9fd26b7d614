/* SPDX-License-Identifier: MIT */
/* A batch split over several devices: each has a part of the samples, and its own model, plan and
 * thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/run/run.h"
#include "apps/system/memory.h"

/* True for the images of one input that belong to this part. */
static bool has_picture(const run_session *whole, int which, int64_t first, int64_t count)
{
    int64_t at = 0;
    const char *name = whole->input[which].name;
    for (int i = 0; i < which; i++) {
        const char *other = whole->input[i].name;
        bool same = name == NULL || other == NULL ? name == other : strcmp(name, other) == 0;
        at += same && !whole->input[i].is_array;
    }
    return at >= first && at < first + count;
}

/* Takes samples [first, first + part->batch) of an array with one for each of the batch; other arrays are the same for
 * all parts. */
static void take_samples(const run_session *whole, run_session *part, run_file *file, int64_t first)
{
    sdlf_tensor *tensor = &file->tensor;
    bool batched = tensor->shape.rank > 0 && tensor->shape.dim[0] == whole->batch;
    if (!batched) return;
    sdlf_shape shape = tensor->shape;
    int64_t bytes = sdlf_tensor_bytes(tensor) / whole->batch;
    shape.dim[0] = part->batch;
    *tensor = sdlf_tensor_view(tensor->dtype, shape, (char *)tensor->data + first * bytes);
}

static void make_part(const run_session *whole, run_session *part, int64_t first, int64_t count)
{
    *part = *whole;
    part->machine = (machine){.count = 0};
    part->batch = count;
    part->is_part = true;
    if (part->set.onnx.batch > 0) part->set.onnx.batch = count;
    memset(part->set.onnx.text, 0, sizeof part->set.onnx.text); /* owned by the whole */
    part->set.inputs.count = 0;
    for (int i = 0; i < whole->set.inputs.count; i++) {
        if (!whole->input[i].is_array && !has_picture(whole, i, first, count)) continue;
        run_file *file = &part->input[part->set.inputs.count++];
        *file = whole->input[i];
        file->array = NULL;
        if (file->is_array) take_samples(whole, part, file, first);
    }
}

static void *start(void *user)
{
    run_session *part = user;
    part->status = run_forward(part);
    if (part->status != SDLF_OK)
        part->message = memory_print("device %lld: %s", (long long)part->set.choice.device, sdlf_error_message());
    return NULL;
}

sdlf_status run_in_parts(run_session *s)
{
    const rank_settings *devices = &s->set.ranks;
    int count = devices->device_count < s->batch ? devices->device_count : (int)s->batch;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < s->set.inputs.count && status == SDLF_OK; i++)
        if (s->input[i].is_array) status = run_read_array(&s->input[i]);
    for (int i = 0; i < s->listed_count && status == SDLF_OK; i++)
        if (s->listed[i].must_be_known)
            status =
                sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                          "--devices %s: shapes in the model depend on its input '%s', so that its batch cannot be "
                          "split",
                          devices->devices, s->listed[i].name);
    if (status != SDLF_OK) return status;
    s->part = memory_allocate((size_t)count * sizeof *s->part);
    for (int i = 0; i < count; i++) {
        int64_t first = s->batch * i / count;
        make_part(s, &s->part[i], first, s->batch * (i + 1) / count - first);
        s->part[i].is_later_part = i > 0;
        s->part[i].set.choice.device = devices->device[i];
        if (s->part[i].set.choice.threads == 0) s->part[i].set.choice.threads = ranks_processors_part(devices);
    }
    s->part_count = count;
    pthread_t thread[RANKS_MOST_DEVICES];
    int started = 1;
    while (started < count && pthread_create(&thread[started], NULL, start, &s->part[started]) == 0) started++;
    start(&s->part[0]);
    for (int i = started; i < count; i++) start(&s->part[i]); /* without threads: slower */
    for (int i = 1; i < started; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < count; i++)
        if (s->part[i].status != SDLF_OK) return sdlf_fail(s->part[i].status, "%s", s->part[i].message);
    s->model = s->part[0].model;
    return SDLF_OK;
}

void run_release_parts(run_session *s)
{
    if (s->part == NULL) return;
    for (int i = 0; i < s->part_count; i++) {
        run_session *part = &s->part[i];
        onnx_settings_release(&part->set.onnx);
        sdlf_plan_free(part->plan);
        sdlf_model_free(part->model);
        machine_close(&part->machine);
        free(part->message);
    }
    free(s->part);
    s->model = NULL;
}

/* Reads one part's output into memory that the caller frees. */
static sdlf_status read_part(const run_session *part, const char *name, sdlf_tensor *tensor)
{
    sdlf_binding binding;
    *tensor = (sdlf_tensor){.data = NULL};
    sdlf_status status = sdlf_plan_output(part->plan, name, &binding);
    if (status != SDLF_OK) return status;
    *tensor = sdlf_tensor_view(binding.tensor.dtype, binding.tensor.shape,
                               memory_allocate((size_t)sdlf_tensor_bytes(&binding.tensor) + 1));
    status = sdlf_plan_read(part->plan, name, tensor->data, tensor->dtype, sdlf_tensor_bytes(tensor));
    return status == SDLF_OK ? sdlf_plan_trim(part->plan, name, tensor) : status;
}

/* Appends a part's output to those before. */
static sdlf_status append(sdlf_tensor *whole, const sdlf_tensor *more, const char *name, const run_session *s,
                          int index)
{
    int64_t batch = s->part[index].batch, before = sdlf_tensor_bytes(whole);
    sdlf_shape shape = more->shape;
    bool fits = shape.rank > 0 && shape.dim[0] % batch == 0 && shape.rank == whole->shape.rank &&
                shape.dim[0] / batch == whole->shape.dim[0] / (s->batch * index / s->part_count);
    for (int d = 1; d < shape.rank && fits; d++) fits = shape.dim[d] == whole->shape.dim[d];
    if (!fits)
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "output '%s' is %s of %lld samples: several devices need one whose first dimension is the "
                         "batch",
                         name, sdlf_shape_print(shape).text, (long long)batch);
    int64_t rows = whole->shape.dim[0];
    shape.dim[0] += rows;
    char *data = memory_allocate((size_t)(before + sdlf_tensor_bytes(more)) + 1);
    memcpy(data, whole->data, (size_t)before);
    memcpy(data + before, more->data, (size_t)sdlf_tensor_bytes(more));
    free(whole->data);
    *whole = sdlf_tensor_view(more->dtype, shape, data);
    return SDLF_OK;
}

sdlf_status run_read_output(const run_session *s, const char *name, sdlf_tensor *tensor)
{
    for (int i = 0; i < s->collected_count; i++) {
        const sdlf_tensor *all = &s->collected[i].tensor;
        if (strcmp(s->collected[i].name, name) != 0) continue;
        *tensor = sdlf_tensor_view(all->dtype, all->shape, memory_allocate((size_t)sdlf_tensor_bytes(all) + 1));
        memcpy(tensor->data, all->data, (size_t)sdlf_tensor_bytes(all));
        return SDLF_OK;
    }
    if (s->part == NULL) return read_part(s, name, tensor);
    sdlf_status status = read_part(&s->part[0], name, tensor);
    for (int i = 1; i < s->part_count && status == SDLF_OK; i++) {
        sdlf_tensor more;
        status = read_part(&s->part[i], name, &more);
        if (status == SDLF_OK) status = append(tensor, &more, name, s, i);
        free(more.data);
    }
    return status;
}
