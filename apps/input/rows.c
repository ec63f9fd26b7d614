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

/* The data set kind that reads such files; NULL if none does. */
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

bool rows_have_columns(const char *path)
{
    const char *set = set_of(path);
    return set != NULL && strcmp(set, "csv") == 0;
}

static bool fits(const rows *r, sdlf_shape wanted)
{
    return sdlf_shape_count(sdlf_shape_without(r->data->samples.shape, 0)) == sdlf_shape_count(wanted);
}

/* Reads the file, replacing what was read before; columns NULL: the data set chooses. */
static sdlf_status read_with(rows *r, const char *path, sdlf_shape sample, const char *columns)
{
    char *name = memory_print("%s:%s%s%s", set_of(path), path, columns ? ",label=" : "", columns ? columns : "");
    sdlf_dataset_free(r->data);
    r->data = NULL;
    sdlf_status status = sdlf_dataset_open_with(&r->data, name, SDLF_SPLIT_TEST,
                                                &(sdlf_dataset_options){.sample = sample, .unlabelled = true});
    free(name);
    return status;
}

/* The columns with the targets' names, if the model has them; else NULL. */
static char *named_columns(const sdlf_model *model, int outputs)
{
    if (sdlf_model_loss(model) == SDLF_LOSS_CROSS_ENTROPY || sdlf_model_class_count(model) != outputs) return NULL;
    const char *first = sdlf_model_class_name(model, 0), *last = sdlf_model_class_name(model, outputs - 1);
    return outputs == 1 ? memory_copy_text(first) : memory_print("%s..%s", first, last);
}

/* Sets *passed, owned, to the columns that are not part of the samples: "" if none, or if the data set has chosen. */
static sdlf_status read_table(rows *r, const char *path, const sdlf_model *model, sdlf_shape sample, int outputs,
                              char **passed)
{
    char *columns = named_columns(model, outputs);
    if (columns != NULL && read_with(r, path, sample, columns) == SDLF_OK && fits(r, sample)) {
        *passed = columns;
        return SDLF_OK;
    }
    free(columns);
    sdlf_status status = read_with(r, path, sample, NULL);
    *passed = memory_copy_text("");
    if (status != SDLF_OK || fits(r, sample) || outputs < 2) return status;
    int64_t wanted = sdlf_shape_count(sample), found = sdlf_shape_count(sdlf_shape_without(r->data->samples.shape, 0));
    if (found != wanted + outputs) return status;
    free(*passed);
    *passed = memory_print("%" PRId64 "..%" PRId64, wanted + 1, found);
    return read_with(r, path, sample, *passed);
}

static void warn(const rows *r, const char *path, const char *passed, sdlf_shape sample)
{
    bool several = strstr(passed, "..") != NULL;
    const char *columns = passed[0] ? passed : r->data->class_names[0];
    terminal_warning("predict",
                     "%s: column%s '%.60s' %s taken for labels, and %s ignored: the network expects %s numbers", path,
                     several ? "s" : "", columns, several ? "are" : "is", several ? "are" : "is",
                     number_count(sdlf_shape_count(sample)).text);
}

sdlf_status rows_open(rows *r, const char *path, sdlf_model *model, int outputs, const char *label)
{
    sdlf_shape sample = network_sample_shape(model);
    char *passed = NULL;
    *r = (rows){.count = 0};
    sdlf_status status = label == NULL && rows_have_columns(path)
                             ? read_table(r, path, model, sample, outputs, &passed)
                             : read_with(r, path, sample, rows_have_columns(path) ? label : NULL);
    if (status == SDLF_OK && !fits(r, sample))
        status = sdlf_fail(SDLF_ERROR_SHAPE, "%s: expected samples of %s, which the network expects, found %s", path,
                           sdlf_shape_print(sample).text,
                           sdlf_shape_print(sdlf_shape_without(r->data->samples.shape, 0)).text);
    if (status == SDLF_OK && passed != NULL && r->data->class_names != NULL) warn(r, path, passed, sample);
    free(passed);
    if (status != SDLF_OK) return status;
    r->count = r->data->samples.shape.dim[0];
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
