/* SPDX-License-Identifier: MIT */
/* See events.h. The field numbers are those of tensorflow/core/util/event.proto,
 * tensorflow/core/framework/summary.proto, graph.proto and attr_value.proto, and
 * tensorboard/plugins/hparams/plugin_data.proto. */
#include "apps/tensorboard/events.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/output/terminal.h"
#include "apps/system/memory.h"
#include "apps/tensorboard/message.h"
#include "apps/tensorboard/record.h"

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_GRAPH = 4, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_IMAGE = 4, VALUE_HISTOGRAM = 5, VALUE_METADATA = 9 };
enum { BUCKETS = 64 };

struct event_file {
    FILE *file; /* NULL: writing failed, which was reported */
    char *path;
    char *command;
};

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Writes an event with `content` as the given field; `content` is released. */
static void put_event(event_file *file, int64_t step, int field, message *content)
{
    message event = {.bytes = NULL};
    message_double(&event, EVENT_WALL_TIME, now());
    message_integer(&event, EVENT_STEP, step);
    message_put(&event, field, content);
    if (file->file && !record_write(file->file, event.bytes, event.length)) {
        terminal_warning(file->command, "%s could not be written (%s) and is not continued", file->path,
                         strerror(errno));
        fclose(file->file);
        file->file = NULL;
    }
    message_release(&event);
}

/* Writes a tag's value in a summary; `content` is released. */
static void put_value(event_file *file, const char *tag, int64_t step, int field, message *content)
{
    message value = {.bytes = NULL}, summary = {.bytes = NULL};
    message_text(&value, VALUE_TAG, tag);
    message_put(&value, field, content);
    message_put(&summary, SUMMARY_VALUE, &value);
    put_event(file, step, EVENT_SUMMARY, &summary);
}

/* mkdir -p */
static sdlf_status make_folder(const char *folder)
{
    char *path = memory_copy_text(folder);
    for (char *slash = path + 1;; slash++) {
        slash += strcspn(slash, "/");
        char end = *slash;
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) break;
        *slash = end;
        if (end == '\0') break;
    }
    free(path);
    struct stat at;
    if (stat(folder, &at) == 0 && S_ISDIR(at.st_mode)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_IO, "%s: expected a folder, or a path to create one at: %s", folder,
                     strerror(errno ? errno : ENOTDIR));
}

sdlf_status event_file_open(event_file **file, const char *folder, const char *command)
{
    *file = NULL;
    errno = 0;
    sdlf_status status = *folder ? make_folder(folder) : sdlf_fail(SDLF_ERROR_ARGUMENT, "expected a folder, found ''");
    if (status != SDLF_OK) return status;
    char host[256] = "host";
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c; c++) *c = *c == '/' ? '_' : *c;
    event_file *f = memory_allocate(sizeof *f);
    f->path =
        memory_print("%s/events.out.tfevents.%010lld.%s.%ld.sdlf", folder, (long long)now(), host, (long)getpid());
    f->command = memory_copy_text(command);
    f->file = fopen(f->path, "ab");
    if (!f->file) {
        status = sdlf_fail(SDLF_ERROR_IO, "%s cannot be written: %s", f->path, strerror(errno));
        event_file_close(f);
        return status;
    }
    message version = {.bytes = NULL};
    static const char text[] = "brain.Event:2";
    message_bytes(&version, EVENT_FILE_VERSION, text, strlen(text));
    message_double(&version, EVENT_WALL_TIME, now());
    bool written = record_write(f->file, version.bytes, version.length);
    message_release(&version);
    if (written) {
        *file = f;
        return SDLF_OK;
    }
    status = sdlf_fail(SDLF_ERROR_IO, "%s cannot be written: %s", f->path, strerror(errno));
    event_file_close(f);
    return status;
}

void event_file_close(event_file *file)
{
    if (!file) return;
    if (file->file) fclose(file->file);
    free(file->path);
    free(file->command);
    free(file);
}

void event_scalar(event_file *file, const char *tag, int64_t step, double value)
{
    if (isnan(value)) return;
    message v = {.bytes = NULL}, summary = {.bytes = NULL};
    message_text(&v, VALUE_TAG, tag);
    message_float(&v, VALUE_SIMPLE, (float)value);
    message_put(&summary, SUMMARY_VALUE, &v);
    put_event(file, step, EVENT_SUMMARY, &summary);
}

void event_image(event_file *file, const char *tag, int64_t step, const png_picture *picture)
{
    enum { HEIGHT = 1, WIDTH = 2, COLOURS = 3, ENCODED = 4 };
    message image = {.bytes = NULL};
    message_integer(&image, HEIGHT, picture->height);
    message_integer(&image, WIDTH, picture->width);
    message_integer(&image, COLOURS, 3);
    message_bytes(&image, ENCODED, picture->bytes, picture->length);
    put_value(file, tag, step, VALUE_IMAGE, &image);
}

void event_histogram(event_file *file, const char *tag, int64_t step, const float *values, int64_t count)
{
    enum { MINIMUM = 1, MAXIMUM = 2, COUNT = 3, SUM = 4, SQUARES = 5, LIMITS = 6, BUCKET = 7 };
    double least = INFINITY, greatest = -INFINITY, sum = 0, squares = 0, finite = 0;
    double limit[BUCKETS], bucket[BUCKETS] = {0};
    for (int64_t i = 0; i < count; i++) {
        double x = (double)values[i];
        if (!isfinite(x)) continue;
        least = x < least ? x : least;
        greatest = x > greatest ? x : greatest;
        sum += x;
        squares += x * x;
        finite++;
    }
    if (finite == 0) return;
    double width = greatest > least ? (greatest - least) / BUCKETS : 1;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        int at = (int)(((double)values[i] - least) / width);
        bucket[at < BUCKETS ? at : BUCKETS - 1]++;
    }
    for (int i = 0; i < BUCKETS; i++) limit[i] = least + width * (i + 1);
    message histogram = {.bytes = NULL};
    message_double(&histogram, MINIMUM, least);
    message_double(&histogram, MAXIMUM, greatest);
    message_double(&histogram, COUNT, finite);
    message_double(&histogram, SUM, sum);
    message_double(&histogram, SQUARES, squares);
    message_doubles(&histogram, LIMITS, limit, BUCKETS);
    message_doubles(&histogram, BUCKET, bucket, BUCKETS);
    put_value(file, tag, step, VALUE_HISTOGRAM, &histogram);
}

/* ---- hyper-parameters: summaries without a value whose metadata are the plugin's ---- */

enum { HPARAMS_EXPERIMENT = 2, HPARAMS_START = 3, HPARAMS_END = 4 };

static void put_hparams(event_file *file, const char *tag, int field, message *content)
{
    enum { PLUGIN_DATA = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
    message data = {.bytes = NULL}, plugin = {.bytes = NULL}, metadata = {.bytes = NULL};
    message_put(&data, field, content);
    message_text(&plugin, PLUGIN_NAME, "hparams");
    message_put(&plugin, PLUGIN_CONTENT, &data);
    message_put(&metadata, PLUGIN_DATA, &plugin);
    put_value(file, tag, 0, VALUE_METADATA, &metadata);
}

/* The type of a value; 0: not valid for a hyper-parameter. */
static int kind_of(const json_t *value)
{
    enum { STRING = 1, BOOL = 2, FLOAT64 = 3 };
    return json_is_string(value) ? STRING : json_is_boolean(value) ? BOOL : json_is_number(value) ? FLOAT64 : 0;
}

static void put_infos(message *experiment, const json_t *parameters, const char *const *metrics)
{
    enum { PARAMETER_INFO = 4, METRIC_INFO = 5, NAME = 1, TAG = 2, TYPE = 4 };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)parameters, key, value)
    {
        if (kind_of(value) == 0) continue;
        message info = {.bytes = NULL};
        message_text(&info, NAME, key);
        message_integer(&info, TYPE, kind_of(value));
        message_put(experiment, PARAMETER_INFO, &info);
    }
    for (; *metrics; metrics++) {
        message name = {.bytes = NULL}, info = {.bytes = NULL};
        message_text(&name, TAG, *metrics);
        message_put(&info, NAME, &name);
        message_put(experiment, METRIC_INFO, &info);
    }
}

void event_parameters(event_file *file, const json_t *parameters, const char *const *metrics)
{
    enum { TIME_CREATED = 3, VALUES = 1, START_TIME = 5, KEY = 1, VALUE = 2, NUMBER = 2, STRING = 3, BOOL = 4 };
    message experiment = {.bytes = NULL}, start = {.bytes = NULL};
    message_double(&experiment, TIME_CREATED, now());
    put_infos(&experiment, parameters, metrics);
    put_hparams(file, "_hparams_/experiment", HPARAMS_EXPERIMENT, &experiment);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)parameters, key, value)
    {
        if (kind_of(value) == 0) continue;
        message entry = {.bytes = NULL}, inner = {.bytes = NULL};
        if (json_is_string(value)) message_text(&inner, STRING, json_string_value(value));
        if (json_is_boolean(value)) message_integer(&inner, BOOL, json_is_true(value));
        if (json_is_number(value)) message_double(&inner, NUMBER, json_number_value(value));
        message_text(&entry, KEY, key);
        message_put(&entry, VALUE, &inner);
        message_put(&start, VALUES, &entry);
    }
    message_double(&start, START_TIME, now());
    put_hparams(file, "_hparams_/session_start_info", HPARAMS_START, &start);
}

void event_ended(event_file *file, bool success)
{
    enum { STATUS = 1, END_TIME = 2, SUCCESS = 1, FAILURE = 2 };
    message end = {.bytes = NULL};
    message_integer(&end, STATUS, success ? SUCCESS : FAILURE);
    message_double(&end, END_TIME, now());
    put_hparams(file, "_hparams_/session_end_info", HPARAMS_END, &end);
}

/* ---- the graph ---- */

static void put_shape(message *list, sdlf_shape shape)
{
    enum { DIMENSION = 2, SIZE = 1, LIST_SHAPE = 7 };
    message text = {.bytes = NULL};
    for (int i = 0; i < shape.rank; i++) {
        message dimension = {.bytes = NULL};
        message_integer(&dimension, SIZE, shape.dim[i]);
        message_put(&text, DIMENSION, &dimension);
    }
    message_put(list, LIST_SHAPE, &text);
}

void event_graph(event_file *file, const sdlf_model *model)
{
    enum { NODE = 1, NAME = 1, OP = 2, INPUT = 3, ATTRIBUTE = 5, KEY = 1, VALUE = 2, LIST = 1 };
    message graph = {.bytes = NULL};
    for (int i = 0; i < sdlf_model_layer_count(model); i++) {
        const sdlf_layer *layer = sdlf_model_layer(model, i);
        message node = {.bytes = NULL}, shapes = {.bytes = NULL}, value = {.bytes = NULL}, entry = {.bytes = NULL};
        message_text(&node, NAME, layer->name);
        message_text(&node, OP, layer->type->name);
        for (int k = 0; k < sdlf_model_layer_input_count(model, i); k++) {
            sdlf_node from = sdlf_model_layer_input(model, i, k);
            const char *name = sdlf_model_layer(model, from.layer)->name;
            char *text = from.output ? memory_print("%s:%d", name, from.output) : memory_copy_text(name);
            message_text(&node, INPUT, text);
            free(text);
        }
        sdlf_shape shape;
        for (int k = 0; k < SDLF_MAX_LAYER_OUTPUTS; k++) {
            shape = sdlf_model_node_shape(model, (sdlf_node){.layer = i, .output = k});
            if (shape.rank > 0) put_shape(&shapes, shape);
        }
        message_put(&value, LIST, &shapes);
        message_text(&entry, KEY, "_output_shapes");
        message_put(&entry, VALUE, &value);
        message_put(&node, ATTRIBUTE, &entry);
        message_put(&graph, NODE, &node);
    }
    put_event(file, 0, EVENT_GRAPH, &graph);
}
