/* SPDX-License-Identifier: MIT */
/* Class names. */
#include "apps/input/labels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "apps/input/bytes.h"
#include "apps/output/number.h"
#include "apps/output/terminal.h"
#include "apps/system/memory.h"

enum { MOST_BYTES = 16 << 20, MOST_LABELS = 1 << 20 };

static void add_label(labels *l, int *capacity, const char *line, size_t length)
{
    if (l->count == *capacity) {
        *capacity = *capacity > 0 ? 2 * *capacity : 1024;
        l->name = memory_resize(l->name, (size_t)*capacity * sizeof *l->name);
    }
    while (length > 0 && line[length - 1] == '\r') length--;
    l->name[l->count] = memory_print("%.*s", (int)length, line);
    terminal_clean(l->name[l->count++]);
}

sdlf_status labels_read(labels *l, const char *path)
{
    *l = (labels){.path = path};
    if (path == NULL) return SDLF_OK;
    unsigned char *bytes = NULL;
    size_t size = 0;
    int capacity = 0;
    sdlf_status status = input_read(&bytes, &size, path, MOST_BYTES);
    const char *line = (const char *)bytes;
    for (size_t left = size, length; status == SDLF_OK && left > 0; left -= length, line += length) {
        const char *end = memchr(line, '\n', left);
        length = end ? (size_t)(end - line) + 1 : left;
        if (l->count == MOST_LABELS)
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected the names of at most %d classes, found more", path,
                               MOST_LABELS);
        else if (memchr(line, 0, length) != NULL)
            status =
                sdlf_fail(SDLF_ERROR_FORMAT, "%s: line %d has a NUL byte: expected the names of classes, one a line",
                          path, l->count + 1);
        else
            add_label(l, &capacity, line, length - (end != NULL));
    }
    free(bytes);
    if (status == SDLF_OK && l->count == 0) status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: the file has no labels", path);
    return status;
}

void labels_of_model(labels *l, const sdlf_model *model)
{
    *l = (labels){.count = sdlf_model_class_count(model)};
    if (l->count == 0) return;
    l->name = memory_allocate((size_t)l->count * sizeof *l->name);
    for (int i = 0; i < l->count; i++) {
        l->name[i] = memory_copy_text(sdlf_model_class_name(model, i));
        terminal_clean(l->name[i]);
    }
}

void labels_release(labels *l)
{
    for (int i = 0; i < l->count; i++) free(l->name[i]);
    free(l->name);
    *l = (labels){.path = NULL};
}

const char *labels_name(const labels *l, int64_t class)
{
    return class < l->count ? l->name[class] : NULL;
}

void labels_warn(const labels *l, int64_t classes, const char *command)
{
    if (l->path == NULL || l->count == classes) return;
    terminal_warning(command, "%s: %s names for %s classes; they may belong to another model", l->path,
                     number_count(l->count).text, number_count(classes).text);
}
