/* SPDX-License-Identifier: MIT */
/* Names of classes. */
#include "apps/input/labels.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/terminal.h"
#include "apps/system/memory.h"

sdlf_status labels_read(labels *l, const char *path)
{
    *l = (labels){.path = path};
    if (path == NULL) return SDLF_OK;
    FILE *file = fopen(path, "r");
    if (file == NULL) return sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    int capacity = 0;
    bool text = true;
    while (text && (length = getline(&line, &size, file)) >= 0 && l->count < 1 << 20) {
        text = memchr(line, 0, (size_t)length) == NULL;
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
        if (l->count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 1024;
            l->name = memory_resize(l->name, (size_t)capacity * sizeof *l->name);
        }
        l->name[l->count] = memory_copy_text(line);
        terminal_clean(l->name[l->count++]);
    }
    bool failed = ferror(file) != 0;
    int reason = errno;
    free(line);
    fclose(file);
    if (failed)
        return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", path,
                         reason == EISDIR ? "it is a folder" : strerror(reason));
    if (!text)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: line %d holds a byte 0: expected the names of classes, one a line",
                         path, l->count);
    return l->count > 0 ? SDLF_OK : sdlf_fail(SDLF_ERROR_FORMAT, "%s: there are no labels in it", path);
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
    terminal_warning(command, "%s: names: %s, classes: %s; they may be another model's", l->path,
                     number_count(l->count).text, number_count(classes).text);
}
