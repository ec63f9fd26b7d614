/* SPDX-License-Identifier: MIT */
/* sdlf serve: a page on this machine to draw on, which shows a network's results for the drawing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/onnx.h"
#include "apps/command.h"
#include "apps/input/labels.h"
#include "apps/output/base64.h"
#include "apps/output/json.h"
#include "apps/pictures/activations.h"
#include "apps/pictures/classifier.h"
#include "apps/pictures/sheet.h"
#include "apps/serve/http.h"
#include "apps/serve/page.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

enum { SHOWN = 10, LAYERS = 6, CHANNELS = 32 };

typedef struct settings {
    argument_list dimensions;
    const char *weights, *net, *label_file, *calculator;
    int64_t port;
    machine_choice choice;
    preprocess_settings preprocess;
} settings;

static const argument serve_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .required = true,
     .help = "a safetensors file, as train writes it, or an ONNX file"},
    {"net", ARGUMENT_TEXT, offsetof(settings, net), "NAME",
     .help = "the network, for weights files that hold none: a built-in name, FILE.json or FILE.onnx"},
    {"port", ARGUMENT_INT, offsetof(settings, port), "N", .minimum = 0, .maximum = 65535, .fallback = "0",
     .help = "port of 127.0.0.1; 0: a free one"},
    {"labels", ARGUMENT_TEXT, offsetof(settings, label_file), "FILE",
     .help = "names of the classes, one a line (default: those that the file carries)"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: chosen automatically)"},
    {0},
};

typedef struct session {
    settings set;
    classifier classifier;
    labels labels;
    http_server *server;
} session;

static void answer_json(http_answer *answer, int code, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    if (!text) memory_exhausted();
    json_decref(value);
    *answer = (http_answer){.code = code, .type = "application/json", .body = text, .length = strlen(text)};
}

/* A sheet of images in base64; NULL on failure. */
static json_t *sheet_json(const unsigned char *pixels, sdlf_shape sample, int count)
{
    png_picture picture;
    memory_text text;
    if (!sheet_shows(sample) || sheet_write(&picture, pixels, sample, count) != SDLF_OK) return NULL;
    if (!memory_text_open(&text)) memory_exhausted();
    base64_print(text.file, picture.bytes, picture.length);
    if (!memory_text_close(&text)) memory_exhausted();
    json_t *result = json_string(text.text);
    free(text.text);
    png_release(&picture);
    return result;
}

/* The image before normalisation. */
static json_t *picture_json(const classifier *c)
{
    int64_t count = (int64_t)c->frame.channels * c->frame.rows * c->frame.columns;
    unsigned char *pixels = memory_allocate((size_t)count);
    for (int64_t i = 0; i < count; i++) pixels[i] = (unsigned char)c->pixels[i];
    json_t *result = sheet_json(pixels, sdlf_shape(c->frame.channels, c->frame.rows, c->frame.columns), 1);
    free(pixels);
    return result;
}

static void add_layer(json_t *list, const char *layer, const char *shape, json_t *png)
{
    if (png)
        json_array_append_new(list, json_pack("{so so so}", "layer", json_text(layer), "shape",
                                              shape ? json_text(shape) : json_null(), "png", png));
}

/* The outputs of the first layers: convolutions and poolings, whose outputs can be shown as images. */
static json_t *layers_json(const session *s)
{
    const classifier *c = &s->classifier;
    json_t *list = json_array();
    add_layer(list, "the picture", NULL, picture_json(c));
    for (int i = 0; i < sdlf_model_layer_count(c->model) && json_array_size(list) <= LAYERS; i++) {
        activation a;
        if (!activation_of(&a, c->model, c->plan, i)) continue;
        int64_t count = a.shape.dim[0] < CHANNELS ? a.shape.dim[0] : CHANNELS;
        unsigned char *grey = activation_grey(a.values, count, a.shape.dim[1] * a.shape.dim[2]);
        add_layer(list, a.layer, sdlf_shape_print(a.shape).text,
                  sheet_json(grey, sdlf_shape(1, a.shape.dim[1], a.shape.dim[2]), (int)count));
        free(grey);
    }
    return list;
}

static json_t *classes_json_of(const session *s)
{
    const classifier *c = &s->classifier;
    int order[SHOWN], count = c->class_count < SHOWN ? c->class_count : SHOWN;
    json_t *list = json_array();
    classifier_order(c, order, count);
    for (int i = 0; i < count; i++) {
        const char *known = labels_name(&s->labels, order[i]);
        char *name = known ? memory_copy_text(known) : memory_print("%d", order[i]);
        json_array_append_new(list, json_pack("{si so so}", "class", order[i], "name", json_text(name), "probability",
                                              json_number(c->probability[order[i]])));
        free(name);
    }
    return list;
}

static void classify(session *s, http_answer *answer, const http_request *request)
{
    sdlf_image picture = {0};
    sdlf_status status = sdlf_image_decode(&picture, request->body ? request->body : (const unsigned char *)"",
                                           request->length, "the picture", 0);
    if (status == SDLF_OK) status = classifier_look(&s->classifier, &picture, "the picture");
    sdlf_image_release(&picture);
    if (status == SDLF_OK)
        answer_json(answer, 200, json_pack("{so so}", "classes", classes_json_of(s), "layers", layers_json(s)));
    else
        answer_json(answer, 400, json_pack("{so}", "error", json_text(sdlf_error_message())));
}

static void on_request(http_answer *answer, const http_request *request, void *user)
{
    if (request->post) {
        if (strcmp(request->path, "classify") == 0) classify(user, answer, request);
    } else if (request->path[0] == '\0') {
        http_answer_text(answer, 200, "text/html; charset=utf-8", serve_page_html);
    } else if (strcmp(request->path, "page.js") == 0) {
        http_answer_text(answer, 200, "text/javascript; charset=utf-8", serve_page_js);
    }
}

static sdlf_status serve(session *s)
{
    const classifier_request request = {.dimensions = &s->set.dimensions,
                                        .weights = s->set.weights,
                                        .net = s->set.net,
                                        .calculator = s->set.calculator,
                                        .choice = s->set.choice,
                                        .samples = 1,
                                        .keep_activations = true};
    sdlf_status status = preprocess_check(&s->set.preprocess);
    if (status == SDLF_OK) status = labels_read(&s->labels, s->set.label_file);
    if (status == SDLF_OK) status = classifier_open(&s->classifier, &request, &s->set.preprocess);
    if (status == SDLF_OK && classifier_gives_values(&s->classifier))
        status = sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                           "%s: its network was trained with %s and gives numbers, but the page shows classes",
                           s->set.weights, sdlf_loss_names[s->classifier.loss]);
    if (status != SDLF_OK) return status;
    if (!s->set.label_file) labels_of_model(&s->labels, s->classifier.model);
    labels_warn(&s->labels, s->classifier.class_count, "serve");
    interrupt_waits();
    status = http_open(&s->server, (int)s->set.port, on_request, s);
    if (status != SDLF_OK) return status;
    printf("http://127.0.0.1:%d/%s/\nOpen this address in a browser on this machine; Ctrl-C ends.\n",
           http_port(s->server), http_token(s->server));
    fflush(stdout);
    while (interrupt_signal() == 0) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    http_close(s->server);
    return SDLF_OK;
}

static int run(int count, char **words)
{
    session s = {.server = NULL};
    arguments given;
    static const argument_part parts[] = {{serve_arguments, 0},
                                          {dimension_arguments, offsetof(settings, dimensions)},
                                          {machine_arguments, offsetof(settings, choice)},
                                          {preprocess_arguments, offsetof(settings, preprocess)},
                                          {0}};
    static const command_usage usage = {
        .command = "serve",
        .synopsis = "--weights FILE [options]",
        .text = "Show a page in the browser of this machine: draw on it or drop a picture, and see the network's "
                "predictions and the outputs of its first layers. The page is served on 127.0.0.1, at an address with "
                "a secret token, until Ctrl-C.",
        .parts = parts,
        .examples = "  sdlf serve --weights lenet5.safetensors\n"
                    "  sdlf serve --weights mobilenetv2.onnx --preprocess imagenet --port 8000\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    int code = command_conclude("serve", serve(&s));
    labels_release(&s.labels);
    classifier_release(&s.classifier);
    return code;
}

const command serve_command = {
    .name = "serve", .summary = "serve a page to draw on, with a network's predictions", .run = run};
