/* sdlf serve: a page on this machine to draw on, which shows what a network makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/input/labels.h"
#include "apps/output/base64.h"
#include "apps/output/json.h"
#include "apps/pictures/classifier.h"
#include "apps/pictures/sheet.h"
#include "apps/serve/http.h"
#include "apps/serve/page.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

enum { SHOWN = 10, LAYERS = 6, CHANNELS = 32 };

typedef struct settings {
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
     .help = "the network, for weights that do not bring theirs: a built-in name, FILE.json or FILE.onnx"},
    {"port", ARGUMENT_INT, offsetof(settings, port), "N", .minimum = 0, .maximum = 65535, .fallback = "0",
     .help = "of 127.0.0.1; 0: a free one"},
    {"labels", ARGUMENT_TEXT, offsetof(settings, label_file), "FILE",
     .help = "names of the classes, one a line (default: those that the file carries)"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "what computes"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: as many as pay)"},
    {0},
};

typedef struct session {
    settings set;
    classifier classifier;
    labels labels;
    http_server *server;
} session;

static void answer_text(http_answer *answer, const char *type, const char *text)
{
    *answer = (http_answer){.code = 200, .type = type, .body = memory_copy_text(text), .length = strlen(text)};
}

static void answer_json(http_answer *answer, int code, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    if (!text) memory_exhausted();
    json_decref(value);
    *answer = (http_answer){.code = code, .type = "application/json", .body = text, .length = strlen(text)};
}

/* Planes of numbers, each from its least to its greatest, as one picture in base64; NULL: it cannot be made. */
static json_t *planes_json(const float *values, int64_t planes, int64_t rows, int64_t columns, bool as_they_are)
{
    int64_t size = rows * columns, count = planes < CHANNELS ? planes : CHANNELS;
    sdlf_shape sample = sdlf_shape(1, rows, columns);
    if (!sheet_shows(sample)) return NULL;
    unsigned char *pixels = memory_allocate((size_t)(count * size));
    for (int64_t k = 0; k < count; k++) {
        float least = as_they_are ? 0 : values[k * size], greatest = as_they_are ? 255 : least;
        for (int64_t i = 0; i < size && !as_they_are; i++) {
            least = values[k * size + i] < least ? values[k * size + i] : least;
            greatest = values[k * size + i] > greatest ? values[k * size + i] : greatest;
        }
        for (int64_t i = 0; i < size && greatest > least; i++)
            pixels[k * size + i] = (unsigned char)(255 * (values[k * size + i] - least) / (greatest - least));
    }
    png_picture picture;
    json_t *result = NULL;
    if (sheet_write(&picture, pixels, sample, (int)count) == SDLF_OK) {
        memory_text text;
        if (!memory_text_open(&text)) memory_exhausted();
        base64_print(text.file, picture.bytes, picture.length);
        if (!memory_text_close(&text)) memory_exhausted();
        result = json_string(text.text);
        free(text.text);
        png_release(&picture);
    }
    free(pixels);
    return result;
}

static void add_layer(json_t *list, const char *layer, const char *shape, json_t *png)
{
    if (png)
        json_array_append_new(list, json_pack("{so so so}", "layer", json_text(layer), "shape",
                                              shape ? json_text(shape) : json_null(), "png", png));
}

/* What the first layers make of the picture: convolutions and poolings, whose outputs are pictures themselves. */
static json_t *layers_json(const session *s)
{
    const classifier *c = &s->classifier;
    json_t *list = json_array();
    add_layer(list, "the picture", NULL,
              planes_json(c->pixels, c->frame.channels, c->frame.rows, c->frame.columns, true));
    for (int i = 0; i < sdlf_model_layer_count(c->model) && json_array_size(list) <= LAYERS; i++) {
        const sdlf_layer *layer = sdlf_model_layer(c->model, i);
        sdlf_shape shape = sdlf_model_node_shape(c->model, (sdlf_node){.layer = i});
        sdlf_binding binding;
        bool shows = strstr(layer->type->name, "conv2d") || strstr(layer->type->name, "pool2d");
        if (!shows || shape.rank != 4 || shape.dim[2] < 2 ||
            sdlf_plan_activation(c->plan, layer->name, false, &binding) != SDLF_OK)
            continue;
        if (binding.tensor.dtype != SDLF_FLOAT32 || sdlf_tensor_count(&binding.tensor) != sdlf_shape_count(shape))
            continue;
        if (binding.calculator && !sdlf_calculator_is_on_host(binding.calculator)) continue;
        add_layer(list, layer->name, sdlf_shape_print(sdlf_shape_without(shape, 0)).text,
                  planes_json(binding.tensor.data, shape.dim[1], shape.dim[2], shape.dim[3], false));
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
        answer_text(answer, "text/html; charset=utf-8", serve_page_html);
    } else if (strcmp(request->path, "page.js") == 0) {
        answer_text(answer, "text/javascript; charset=utf-8", serve_page_js);
    }
}

static sdlf_status serve(session *s)
{
    const classifier_request request = {.weights = s->set.weights,
                                        .net = s->set.net,
                                        .calculator = s->set.calculator,
                                        .choice = s->set.choice,
                                        .pictures = 1,
                                        .keep_activations = true};
    sdlf_status status = preprocess_check(&s->set.preprocess);
    if (status == SDLF_OK) status = labels_read(&s->labels, s->set.label_file);
    if (status == SDLF_OK) status = classifier_open(&s->classifier, &request, &s->set.preprocess);
    if (status == SDLF_OK && classifier_gives_values(&s->classifier))
        status = sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                           "%s: its network was trained with %s and gives numbers, and the page shows classes",
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
                                          {machine_arguments, offsetof(settings, choice)},
                                          {preprocess_arguments, offsetof(settings, preprocess)},
                                          {0}};
    static const command_usage usage = {
        .command = "serve",
        .synopsis = "--weights FILE [options]",
        .text = "Show a page in the browser of this machine: draw on it or drop a picture, and see what the network "
                "takes it for, and what its first "
                "layers make of it. The page is on 127.0.0.1, at an address with a token that nobody else knows, until "
                "Ctrl-C.",
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
    .name = "serve", .summary = "show a page to draw on, with what a network makes of it", .run = run};
