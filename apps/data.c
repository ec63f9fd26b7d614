/* SPDX-License-Identifier: MIT */
/* sdlf data: describes a data set, and draws a sheet of its samples as a network receives them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/input/samples.h"
#include "apps/output/file.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/table.h"
#include "apps/pictures/augmented_samples.h"
#include "apps/system/memory.h"
#include "apps/train/options.h"

typedef struct settings {
    const char *show;
    int64_t count, epoch, seed, size, workers, cache;
    bool strict, targets, test_half, json;
    training training; /* only its augmentation is used */
} settings;

static const argument data_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"show", ARGUMENT_TEXT, offsetof(settings, show), "FILE.png", .standard = ARGUMENT_STANDARD_OUTPUT,
     .help = "draw samples as a network sees them, after augmentation, without normalisation"},
    {"count", ARGUMENT_INT, offsetof(settings, count), "N", .minimum = 1, .maximum = 4096, .fallback = "64",
     .help = "samples to draw; at most 16 of pictures larger than 64 pixels"},
    {"epoch", ARGUMENT_INT, offsetof(settings, epoch), "N", .minimum = 0, .maximum = 1e6, .fallback = "0",
     .help = "draw them in the order of this training epoch, from 1; 0: in the set's order"},
    {"seed", ARGUMENT_INT, offsetof(settings, seed), "N", .minimum = 1, .maximum = 9e18, .fallback = "1",
     .help = "seed of that order and of augmentation, as in train"},
    {"test-half", ARGUMENT_FLAG, offsetof(settings, test_half), .help = "draw samples of the test half"},
    {"targets", ARGUMENT_FLAG, offsetof(settings, targets),
     .help = "labels are float targets, as for train --loss mse"},
    {"size", ARGUMENT_INT, offsetof(settings, size), "PIXELS", .minimum = 1, .maximum = 65535,
     .help = "what pictures of a folder are scaled to (default: their own, which must be the same for all)"},
    {"strict", ARGUMENT_FLAG, offsetof(settings, strict), .help = "refuse pictures that cannot be read"},
    {"workers", ARGUMENT_INT, offsetof(settings, workers), "N", .minimum = 1, .maximum = 64,
     .help = "threads that decode pictures of a folder (default: one for each processor)"},
    {"cache", ARGUMENT_INT, offsetof(settings, cache), "MB", .minimum = 1, .maximum = 1e9,
     .help = "decoded pictures, and their masks, to keep in memory (default: all)"},
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

typedef struct session {
    settings set;
    const char *name;
    sdlf_dataset *half[2]; /* training, test; NULL: there is none */
    int64_t *count[2];     /* of each class of a half; owned; NULL: targets instead */
    char *missing;         /* why there is no test half, owned */
} session;

static sdlf_status open_half(session *s, sdlf_split split)
{
    int64_t side = s->set.size;
    return samples_open(&s->half[split],
                        &(samples_request){.set = s->name,
                                           .split = split,
                                           .sample = side > 0 ? sdlf_shape(3, side, side) : SDLF_SCALAR,
                                           .strict = s->set.strict,
                                           .targets = s->set.targets,
                                           .workers = s->set.workers,
                                           .cache = s->set.cache,
                                           .command = "data"});
}

/* Counts the labels of each class of a half; for sequences at each position, for images at each pixel. */
static sdlf_status count_classes(session *s, int half)
{
    const sdlf_dataset *data = s->half[half];
    if (!data || data->labels.dtype == SDLF_FLOAT32) return SDLF_OK;
    int classes = data->class_count > s->half[0]->class_count ? data->class_count : s->half[0]->class_count;
    int64_t *count = memory_allocate((size_t)classes * sizeof *count), samples = data->labels.shape.dim[0];
    int64_t each = sdlf_tensor_count(&data->labels) / samples;
    int32_t *label = memory_allocate((size_t)each * sizeof *label);
    sdlf_status status = SDLF_OK;
    memset(count, 0, (size_t)classes * sizeof *count);
    for (int64_t n = 0; n < samples && status == SDLF_OK; n++) {
        status = sdlf_dataset_read_labels(data, n, label);
        for (int64_t i = 0; i < each && status == SDLF_OK; i++)
            if (label[i] >= 0 && label[i] < classes) count[label[i]]++;
    }
    free(label);
    s->count[half] = count;
    return status;
}

/* ---- targets ---- */

typedef struct spread {
    double mean, deviation, least, most;
} spread;

static spread spread_of(const sdlf_dataset *data, int target)
{
    spread s = {.least = INFINITY, .most = -INFINITY};
    const float *t = data->labels.data;
    int64_t count = data->labels.shape.dim[0];
    double squares = 0;
    for (int64_t i = 0; i < count; i++) s.mean += (double)t[i * data->class_count + target] / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double x = (double)t[i * data->class_count + target];
        squares += (x - s.mean) * (x - s.mean);
        s.least = fmin(s.least, x);
        s.most = fmax(s.most, x);
    }
    s.deviation = sqrt(squares / (double)count);
    return s;
}

static const char *name_of(const sdlf_dataset *data, int index)
{
    return data->class_names ? data->class_names[index] : NULL;
}

/* ---- text ---- */

static void print_classes(const session *s, const terminal *out)
{
    const sdlf_dataset *train = s->half[0], *test = s->half[1];
    int64_t *const *each = s->count;
    table *t = table_create(train->class_names ? "class|>train|>share|>test" : ">class|>train|>share|>test");
    for (int c = 0; c < train->class_count; c++) {
        const char *name = name_of(train, c);
        table_cell(t, "%d%s%s", c, name ? " " : "", name ? name : "");
        table_cell(t, "%s", number_count(each[0][c]).text);
        table_cell(t, "%s", number_percent((double)each[0][c] / (double)sdlf_tensor_count(&train->labels), 1).text);
        table_cell(t, "%s", test ? number_count(each[1][c]).text : "");
    }
    table_print(t, out, 2);
    table_free(t);
}

static void print_targets(const session *s, const terminal *out)
{
    const sdlf_dataset *train = s->half[0];
    table *t = table_create("target|>mean|>deviation|>least|>most");
    for (int k = 0; k < train->class_count; k++) {
        spread found = spread_of(train, k);
        const char *name = name_of(train, k);
        table_cell(t, "%d%s%s", k, name ? " " : "", name ? name : "");
        table_cell(t, "%.4g", found.mean);
        table_cell(t, "%.4g", found.deviation);
        table_cell(t, "%.4g", found.least);
        table_cell(t, "%.4g", found.most);
    }
    table_print(t, out, 2);
    table_free(t);
}

/* Prints "channel 0: mean 0.4914  deviation 0.2470" for the training half, with bytes scaled to 0..1. */
static void print_channels(const sdlf_dataset *data)
{
    bool bytes = data->samples.dtype == SDLF_UINT8, own = data->channels.count > 0;
    double full = bytes ? 255 : 1;
    for (int c = 0; c < (own ? data->channels.count : 1); c++) {
        double mean = (double)(own ? data->channels.mean[c] : data->mean);
        double scale = (double)(own ? data->channels.scale[c] : data->scale);
        if (own) printf("  channel %d", c);
        printf("  mean %.4f  deviation %.4f%s\n", mean / full, 1 / scale / full, bytes ? "  of full white" : "");
    }
}

static void print_unread(const session *s)
{
    for (int i = 0; i < 2; i++) {
        const sdlf_dataset *data = s->half[i];
        if (!data || data->unread == 0) continue;
        printf("\n  files of the %s half that cannot be read\n", i == 0 ? "training" : "test");
        for (int64_t k = 0; k < data->unread; k++) {
            fputs("  ", stdout);
            terminal_print_name(stdout, data->unread_files[k]);
        }
    }
}

static void print_text(const session *s, const terminal *out)
{
    const sdlf_dataset *train = s->half[0];
    report_data(out, train, s->half[1]);
    printf("  %s, %s, %s of samples in memory\n", sdlf_dtype_name(train->samples.dtype),
           train->labels.dtype == SDLF_FLOAT32 ? "float targets" : "classes",
           train->samples.data ? number_bytes(sdlf_tensor_bytes(&train->samples)).text : "none");
    bool characters = train->labels.dtype == SDLF_INT32 && train->labels.shape.rank == 2;
    if (!characters) print_channels(train);
    for (int i = 0; i < 2; i++)
        if (s->half[i] && s->half[i]->unread > 0)
            printf("  %s of the %s half cannot be read (listed below)\n", number_count(s->half[i]->unread).text,
                   i == 0 ? "training" : "test");
    if (s->missing) printf("  no test half: %s\n", s->missing);
    putchar('\n');
    if (train->labels.dtype == SDLF_FLOAT32)
        print_targets(s, out);
    else
        print_classes(s, out);
    print_unread(s);
}

/* ---- JSON ---- */

static json_t *half_json(const session *s, int half)
{
    const sdlf_dataset *data = s->half[half];
    json_t *rows = json_array(), *means = json_array(), *deviations = json_array(), *unread = json_array();
    bool targets = data->labels.dtype == SDLF_FLOAT32, own = data->channels.count > 0;
    for (int c = 0; c < data->class_count; c++) {
        const char *name = name_of(data, c);
        json_t *row =
            json_pack("{si so}", targets ? "target" : "class", c, "name", name ? json_text(name) : json_null());
        spread found = targets ? spread_of(data, c) : (spread){0};
        json_t *more = targets ? json_pack("{so so so so}", "mean", json_number(found.mean), "deviation",
                                           json_number(found.deviation), "least", json_number(found.least), "most",
                                           json_number(found.most))
                               : json_pack("{sI}", "samples", (json_int_t)s->count[half][c]);
        if (row && more) json_object_update_new(row, more);
        json_array_append_new(rows, row);
    }
    for (int64_t k = 0; k < data->unread; k++) json_array_append_new(unread, json_text(data->unread_files[k]));
    for (int c = 0; c < (own ? data->channels.count : 1); c++) {
        json_array_append_new(means, json_number((double)(own ? data->channels.mean[c] : data->mean)));
        json_array_append_new(deviations, json_number(1 / (double)(own ? data->channels.scale[c] : data->scale)));
    }
    return json_pack("{sI so ss sI so so so so so}", "samples", (json_int_t)data->samples.shape.dim[0], "sample",
                     json_shape(sdlf_shape_without(data->samples.shape, 0)), "type",
                     sdlf_dtype_name(data->samples.dtype), "unread", (json_int_t)data->unread, "unread_why",
                     json_text(data->unread_why), "unread_files", unread, "mean", means, "deviation", deviations,
                     targets ? "targets" : "classes", rows);
}

static sdlf_status print_json(const session *s)
{
    json_t *result = json_pack("{ss so so so}", "version", SDLF_VERSION, "data", json_text(s->half[0]->name), "train",
                               half_json(s, 0), "test", s->half[1] ? half_json(s, 1) : json_null());
    return json_print(result, stdout) ? SDLF_OK : sdlf_fail(SDLF_ERROR_IO, "standard output could not be written");
}

/* ---- drawing ---- */

static bool write_png(FILE *file, const void *subject)
{
    const png_picture *picture = subject;
    return fwrite(picture->bytes, 1, picture->length, file) == picture->length;
}

static sdlf_status show(const session *s, const arguments *given)
{
    const sdlf_dataset *data = s->half[s->set.test_half ? 1 : 0];
    sdlf_trainer_options options = {.batch = 0};
    png_picture picture = {.bytes = NULL};
    if (!data) return sdlf_fail(SDLF_ERROR_ARGUMENT, "--test-half: %s", s->missing);
    sdlf_status status = training_to_trainer(&s->set.training, given, true, &options);
    int count = augmented_count(data, (int)s->set.count);
    if (status == SDLF_OK && count == 0)
        status = sdlf_fail(SDLF_ERROR_UNSUPPORTED, "--show draws pictures of 1 or 3 channels, but samples of %s are %s",
                           data->name, sdlf_shape_print(sdlf_shape_without(data->samples.shape, 0)).text);
    bool ordered = s->set.epoch > 0;
    sdlf_loader_options loader = {.shuffle = ordered,
                                  .augment = options.augment,
                                  .mixing = options.mixing,
                                  .automatic = options.automatic,
                                  .seed = (uint64_t)s->set.seed};
    if (status == SDLF_OK) status = augmented_sheet(&picture, data, loader, ordered ? s->set.epoch - 1 : 0, count);
    if (status == SDLF_OK) status = output_file_write(s->set.show, write_png, &picture);
    png_release(&picture);
    return status;
}

static sdlf_status look(session *s, const arguments *given)
{
    terminal out = terminal_of(stdout);
    sdlf_status status = s->set.show && !output_is_stream(s->set.show) ? output_file_check(s->set.show) : SDLF_OK;
    if (status == SDLF_OK) status = open_half(s, SDLF_SPLIT_TRAIN);
    if (status == SDLF_OK) {
        sdlf_status absent = open_half(s, SDLF_SPLIT_TEST);
        if (absent == SDLF_ERROR_MEMORY) return absent; /* it is unknown whether there is one */
        if (absent != SDLF_OK && (s->missing = memory_copy_text(sdlf_error_message())) == NULL)
            return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory");
    }
    if (status == SDLF_OK && s->set.show) status = show(s, given);
    if (status != SDLF_OK || (s->set.show && output_is_standard(s->set.show))) return status;
    for (int half = 0; half < 2 && status == SDLF_OK; half++) status = count_classes(s, half);
    if (status != SDLF_OK) return status;
    if (s->set.json) return print_json(s);
    print_text(s, &out);
    if (s->set.show) {
        report_label(&out, "drawn");
        puts(s->set.show);
    }
    return SDLF_OK;
}

static void epilogue(void)
{
    terminal out = terminal_of(stdout);
    samples_print_list(&out);
}

static int run(int count, char **words)
{
    session s = {.name = NULL};
    arguments given;
    static const argument_part parts[] = {
        {data_arguments, 0}, {augmentation_arguments, offsetof(settings, training)}, {0}};
    static const command_usage usage = {
        .command = "data",
        .synopsis = "[options] SET",
        .text =
            "Describe a data set: halves, shapes, classes or float targets, mean and deviation of the channels, files "
            "that cannot be read; and draw its samples as training sees them.",
        .parts = parts,
        .epilogue = epilogue,
        .operands_minimum = 1,
        .operands_maximum = 1,
        .operand_name = "a data set",
        .examples = "  sdlf data mnist:/data\n"
                    "  sdlf data folder:flowers --size 64 --show sheet.png --augment-flip\n"
                    "  sdlf data csv:houses.csv,label=price --targets --json\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    s.name = given.operand[0];
    int code = command_conclude("data", look(&s, &given));
    for (int i = 0; i < 2; i++) {
        sdlf_dataset_free(s.half[i]);
        free(s.count[i]);
    }
    free(s.missing);
    return code;
}

const command data_command = {.name = "data", .summary = "describe a data set, and draw its samples", .run = run};
