/* SPDX-License-Identifier: MIT */
#include "framework/formats/onnx/export/outside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/content_hash.h"
#include "framework/formats/leftover_files.h"
#include "framework/formats/little_endian.h"
#include "framework/portable.h"

enum { OUTSIDE = 1 /* TensorProto.DataLocation */, ALIGNMENT = 4096, SMALL = 1024, DIGITS = 16 };

static const char ending[] = ".data";

/* ---- writing ---- */

static sdlf_status out_of_memory(const char *path)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory writing '%s'", path);
}

/* Length of "FOLDER/" before a path's last component. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

static bool is_external(const Onnx__TensorProto *tensor)
{
    return tensor->raw_data.len >= SMALL;
}

/* Includes the lengths, which determine the offsets. */
static uint64_t hash_weights(const Onnx__GraphProto *graph)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const ProtobufCBinaryData *data = &graph->initializer[i]->raw_data;
        if (!is_external(graph->initializer[i])) continue;
        unsigned char length[8];
        store_little_endian_64(length, data->len);
        hash = content_hash(content_hash(hash, length, sizeof length), data->data, data->len);
    }
    return hash;
}

/* Replaces a tensor's bytes by a reference to their location. */
static bool refer(onnx_export *e, Onnx__TensorProto *tensor, const char *file, int64_t offset)
{
    char begin[24], length[24];
    snprintf(begin, sizeof begin, "%" PRId64, offset);
    snprintf(length, sizeof length, "%zu", tensor->raw_data.len);
    tensor->external_data = onnx_arena_array(&e->arena, 3, sizeof(void *));
    if (tensor->external_data == NULL) return false;
    const char *const entries[3][2] = {{"location", file}, {"offset", begin}, {"length", length}};
    for (tensor->n_external_data = 0; tensor->n_external_data < 3; tensor->n_external_data++) {
        const char *const *entry = entries[tensor->n_external_data];
        tensor->external_data[tensor->n_external_data] = export_entry(e, entry[0], entry[1]);
        if (tensor->external_data[tensor->n_external_data] == NULL) return false;
    }
    tensor->has_raw_data = false;
    tensor->has_data_location = true;
    tensor->data_location = OUTSIDE;
    return true;
}

static sdlf_status write_padding(export_outside *outside)
{
    static const uint8_t zeros[ALIGNMENT];
    int64_t more = (ALIGNMENT - outside->bytes % ALIGNMENT) % ALIGNMENT;
    outside->bytes += more;
    return more > 0 ? atomic_file_write(&outside->file, zeros, (size_t)more) : SDLF_OK;
}

sdlf_status export_outside_write(export_outside *outside, onnx_export *e, const char *path)
{
    size_t size = strlen(path) + 1 + DIGITS + sizeof ending;
    char *text = onnx_arena_take(&e->arena, size);
    if (text == NULL) return out_of_memory(path);
    snprintf(text, size, "%s.%0*" PRIx64 "%s", path, DIGITS, hash_weights(&e->graph), ending);
    *outside = (export_outside){.path = text, .name = text + folder_length(path)};
    sdlf_status status = atomic_file_open_with(&outside->file, text, path + folder_length(path));
    if (status != SDLF_OK) return status;
    for (size_t i = 0; i < e->graph.n_initializer && status == SDLF_OK; i++) {
        Onnx__TensorProto *tensor = e->graph.initializer[i];
        if (!is_external(tensor)) continue;
        status = write_padding(outside);
        if (status == SDLF_OK) status = atomic_file_write(&outside->file, tensor->raw_data.data, tensor->raw_data.len);
        if (status == SDLF_OK && !refer(e, tensor, outside->name, outside->bytes)) status = out_of_memory(text);
        outside->bytes += (int64_t)tensor->raw_data.len;
    }
    if (status != SDLF_OK || outside->bytes == 0) export_outside_abandon(outside);
    return status;
}

void export_outside_abandon(export_outside *outside)
{
    if (outside->path != NULL) atomic_file_abandon(&outside->file);
    *outside = (export_outside){.path = NULL};
}

/* ---- atomic replacement ---- */

typedef struct placed {
    const char *path, *base; /* of the graph, and its last component */
    const char *kept;        /* the weights that it refers to; NULL: none */
    int graph;               /* its open file */
} placed;

/* True for a "BASE.HASH.data" that is not ours, as long as the graph is still ours. An export to this name locks its
 * weights until its graph is in place: those of a newer graph are locked, or ours is already replaced. */
static bool is_stale(const char *name, void *context)
{
    const placed *now = context;
    struct stat ours, there;
    size_t length = strlen(now->base);
    if (strncmp(name, now->base, length) != 0 || name[length] != '.') return false;
    if (strspn(name + length + 1, "0123456789abcdef") != DIGITS) return false;
    if (strcmp(name + length + 1 + DIGITS, ending) != 0) return false;
    if (now->kept != NULL && strcmp(name, now->kept) == 0) return false;
    return fstat(now->graph, &ours) == 0 && stat(now->path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* A failure changes nothing: the next export retries. */
static void remove_old_weights(const char *path, const char *kept, int graph)
{
    size_t length = folder_length(path);
    placed now = {.path = path, .base = path + length, .kept = kept, .graph = graph};
    char *home = length > 0 ? strndup(path, length) : NULL;
    int folder = length == 0 || home != NULL ? open(home != NULL ? home : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder >= 0) {
        leftover_files_remove_if(folder, is_stale, &now);
        leftover_files_remove(folder, now.base); /* of weights; those of a graph that is a link are in another folder */
        close(folder);
    }
    free(home);
}

static bool is_same(bool was, const struct stat *before, const char *path)
{
    struct stat now;
    if (stat(path, &now) != 0) return !was;
    struct timespec now_at = portable_modified(&now), was_at = portable_modified(before);
    return was && now.st_dev == before->st_dev && now.st_ino == before->st_ino && now.st_size == before->st_size &&
           now_at.tv_sec == was_at.tv_sec && now_at.tv_nsec == was_at.tv_nsec;
}

static void let_go(int lock)
{
    if (lock >= 0) close(lock);
}

sdlf_status export_outside_commit(export_outside *outside, atomic_file *graph, const char *path)
{
    int weights = -1, ours = -1; /* locks: of the new weights, of the new graph */
    struct stat before;
    bool was = stat(path, &before) == 0, made = false;
    sdlf_status status = SDLF_OK;
    if (outside->path != NULL) {
        made = access(outside->path, F_OK) != 0;
        status = atomic_file_commit_locked(&outside->file, &weights);
    }
    if (status == SDLF_OK)
        status = atomic_file_commit_locked(graph, &ours);
    else
        atomic_file_abandon(graph);
    if (status == SDLF_OK && ours >= 0) remove_old_weights(path, outside->name, ours);
    if (status != SDLF_OK && made && is_same(was, &before, path)) unlink(outside->path);
    let_go(weights);
    let_go(ours);
    return status;
}
