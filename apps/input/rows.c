/* SPDX-License-Identifier: MIT */
/* See rows.h. */
#include "apps/input/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/input/network.h"
#include "apps/output/number.h"
#include "apps/output/terminal.h"
#include "apps/system/memory.h"

/* The data set that reads such files; NULL: none does. */
static const char *set_of(const char *path)
{
    static const struct {
        const char *end, *set;
    } known[] = {{".npy", "npy"}, {".csv", "csv"}, {".tsv", "csv"}};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t wanted = strlen(known[i].end);
        if (length >= wanted && strcmp(path + length - wanted, known[i].end) == 0) return known[i].set;
    }
    return NULL;
}

bool rows_are_in(const char *path)
{
    struct stat at;
    return set_of(path) != NULL && (stat(path, &at) != 0 || S_ISREG(at.st_mode));
}

static sdlf_status check_size(const rows *r, const char *path, sdlf_shape wanted)
{
    sdlf_shape found = sdlf_shape_without(r->data->samples.shape, 0);
    if (sdlf_shape_count(found) == sdlf_shape_count(wanted)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "%s: expected samples of %s, which the network takes, found %s", path,
                     sdlf_shape_print(wanted).text, sdlf_shape_print(found).text);
}

sdlf_status rows_open(rows *r, const char *path, sdlf_model *model)
{
    sdlf_shape sample = network_sample_shape(model);
    char *name = memory_print("%s:%s", set_of(path), path);
    *r = (rows){.count = 0};
    sdlf_status status = sdlf_dataset_open_with(&r->data, name, SDLF_SPLIT_TEST,
                                                &(sdlf_dataset_options){.sample = sample, .unlabelled = true});
    free(name);
    if (status == SDLF_OK) status = check_size(r, path, sample);
    if (status != SDLF_OK) return status;
    r->count = r->data->samples.shape.dim[0];
    if (r->data->class_names != NULL)
        terminal_warning("predict",
                         "%s: column '%.60s' is taken for labels, and is ignored: the network takes %s numbers", path,
                         r->data->class_names[0], number_count(sdlf_shape_count(sample)).text);
    r->normalized = *r->data;
    r->normalized.scale = 1;
    sdlf_dataset_normalize_for(&r->normalized, model);
    return sdlf_loader_create(&r->loader, &r->normalized, &(sdlf_loader_options){.batch = 1, .no_prefetch = true});
}

void rows_close(rows *r)
{
    sdlf_loader_free(r->loader);
    sdlf_dataset_free(r->data);
    *r = (rows){.count = 0};
}

sdlf_status rows_read(rows *r, int64_t index, const float **sample)
{
    sdlf_batch batch;
    if (index < 0 || index >= r->count)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: there is no row %" PRId64 ": it has %s, counted from 0",
                         r->data->name, index, number_count(r->count).text);
    sdlf_status status = sdlf_loader_seek(r->loader, 0, index);
    if (status == SDLF_OK) status = sdlf_loader_next(r->loader, &batch);
    if (status == SDLF_OK) *sample = batch.samples.data;
    return status;
}
