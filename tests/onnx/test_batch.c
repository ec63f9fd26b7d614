/* SPDX-License-Identifier: MIT */
/* A model of one sample also accepts batches, unless an operator fixes the number of samples: then the plan rejects other
 * batches instead of returning results that the file does not define. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"
#include "onnx/fixtures.h"

static void add_integer(bytes *node, const char *name, int64_t value)
{
    bytes attribute = {.size = 0};
    bytes_text(&attribute, 1, name);
    bytes_number(&attribute, 3, (uint64_t)value);
    bytes_number(&attribute, 20, 2);
    bytes_message(node, 5, &attribute);
}

/* Append a weight of int64. */
static void add_weights(bytes *graph, const char *name, const int64_t *values, int count)
{
    bytes tensor = {.size = 0};
    bytes_number(&tensor, 1, (uint64_t)count);
    bytes_number(&tensor, 2, 7);
    bytes_text(&tensor, 8, name);
    bytes_field(&tensor, 9, values, (size_t)count * sizeof *values);
    bytes_message(graph, 5, &tensor);
}

static void add_weight(bytes *graph, const char *name, int64_t value)
{
    add_weights(graph, name, &value, 1);
}

/* y = `type`(x, the inputs named in `inputs`), x of (1,3,4); an attribute, and weights of one element each. */
typedef struct one_node {
    /* Its output is the input of this operator, before x if that has several inputs; NULL: it is y. */
    const char *behind;
    const char *type, *attribute;
    int64_t value;
    const char *inputs[4];
    int64_t weights[4];
    bool fixed; /* only valid for one sample */
    bool open;  /* x is (N,3,4) */
} one_node;

/* The graph, with its input x of (`first`,3,4) and its output y. */
static sdlf_status import_graph(sdlf_model **model, bytes *graph, int64_t first, const sdlf_onnx_options *options)
{
    bytes file = {.size = 0}, set = {.size = 0};
    bytes_value_info(graph, 11, "x", (const int64_t[]){first, 3, 4}, 3);
    bytes_value_info(graph, 12, "y", NULL, 0);
    bytes_number(&set, 2, 13);
    bytes_message(&file, 8, &set);
    bytes_message(&file, 7, graph);
    test_write_file(test_path("node.onnx"), file.data, file.size);
    return sdlf_model_from_onnx(model, test_path("node.onnx"), options);
}

static sdlf_status import_node(sdlf_model **model, const one_node *wanted, const sdlf_onnx_options *options)
{
    bytes node = {.size = 0}, graph = {.size = 0};
    bytes_text(&node, 1, "x");
    for (int i = 0; i < 4 && wanted->inputs[i] != NULL; i++) {
        bytes_text(&node, 1, wanted->inputs[i]);
        add_weight(&graph, wanted->inputs[i], wanted->weights[i]);
    }
    bytes_text(&node, 2, wanted->behind != NULL ? "part" : "y");
    bytes_text(&node, 4, wanted->type);
    if (wanted->attribute != NULL) add_integer(&node, wanted->attribute, wanted->value);
    bytes_message(&graph, 1, &node);
    if (wanted->behind != NULL) {
        bool joins = strcmp(wanted->behind, "Concat") == 0;
        bytes second = {.size = 0};
        bytes_text(&second, 1, "part");
        if (joins) bytes_text(&second, 1, "x");
        bytes_text(&second, 2, "y");
        bytes_text(&second, 4, wanted->behind);
        if (joins) add_integer(&second, "axis", 1);
        bytes_message(&graph, 1, &second);
    }
    return import_graph(model, &graph, wanted->open ? bytes_open : 1, options);
}

/* Samples without elements cannot be distinguished: a model for any batch must not depend on their
 * number. */
static void parts_without_elements_know_no_batch(void)
{
    static const one_node nodes[] = {
        {.type = "Slice", .inputs = {"start", "end", "axes"}, .weights = {2, 2, 1}},
        {.type = "Slice", .inputs = {"start", "end", "axes"}, .weights = {1, INT64_MAX, 0}},
        {.type = "Slice", .inputs = {"start", "end", "axes"}, .weights = {2, 2, 1}, .behind = "ReduceMax"},
        {.type = "Slice", .inputs = {"start", "end", "axes"}, .weights = {2, 2, 1}, .behind = "Abs"},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        sdlf_model *model = NULL;
        CHECK(import_node(&model, &nodes[i], NULL) == SDLF_ERROR_UNSUPPORTED);
        CHECK(strstr(sdlf_error_message(), "the plan chooses the batch") != NULL);
        CHECK(model == NULL);
        if (CHECK_OK(import_node(&model, &nodes[i], &(sdlf_onnx_options){.batch = 1}))) sdlf_model_free(model);
    }
}

static void a_batch_of_one_is_many_or_one(void)
{
    static const one_node nodes[] = {
        {.type = "Gather", .attribute = "axis", .inputs = {"i"}, .fixed = true},
        {.type = "Gather", .attribute = "axis", .value = 1, .inputs = {"i"}},
        {.type = "Flatten", .attribute = "axis", .value = 0},
        {.type = "Flatten", .attribute = "axis", .value = 1},
        {.type = "Slice", .inputs = {"start", "end", "axes"}, .weights = {0, 1, 0}, .fixed = true},
        {.type = "Slice", .inputs = {"start", "end", "axes"}, .weights = {0, -1, 1}},
        {.type = "Slice", .inputs = {"start", "end", "axes"}, .weights = {2, 2, 1}, .behind = "Concat"},
        {.type = "Slice", .inputs = {"start", "end", "axes"}, .weights = {0, INT64_MAX, 0}},
        {.type = "Slice", .inputs = {"start", "end", "axes", "steps"}, .weights = {0, INT64_MAX, 0, 2}, .fixed = true},
        {.type = "Slice",
         .inputs = {"start", "end", "axes", "steps"},
         .weights = {-1, INT64_MIN, 0, -1},
         .fixed = true},
        {.type = "Slice", .inputs = {"start", "end", "axes", "steps"}, .weights = {0, INT64_MAX, 1, 2}},
        {.type = "Unsqueeze", .inputs = {"axes"}, .weights = {0}},
        {.type = "Unsqueeze", .inputs = {"axes"}, .weights = {1}},
        {.type = "Split", .attribute = "axis", .inputs = {"parts"}, .weights = {1}, .fixed = true},
        {.type = "Split", .attribute = "axis", .value = 1, .inputs = {"parts"}, .weights = {3}},
    };
    sdlf_calculator *calculator;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        sdlf_model *model = NULL;
        if (!CHECK_OK(import_node(&model, &nodes[i], NULL))) continue;
        for (int64_t batch = 1; batch <= 2; batch++) {
            sdlf_plan *plan = NULL;
            sdlf_status status =
                sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = batch, .forward = calculator});
            bool refused = batch > 1 && nodes[i].fixed;
            if (!CHECK((status != SDLF_OK) == refused))
                printf("    %s, case %zu, batch %d: %s\n", nodes[i].type, i, (int)batch, sdlf_error_message());
            if (refused) CHECK(strstr(sdlf_error_message(), "reshape") != NULL);
            sdlf_plan_free(plan);
        }
        sdlf_model_free(model);
    }
    sdlf_calculator_close(calculator);
}

/* An open first dimension is the plan's batch; with a batch given, it is the model's. */
static void the_batch_is_the_plans(void)
{
    sdlf_model *model;
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("small_cnn", "model.onnx"), NULL));
    sdlf_calculator *calculator;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    sdlf_plan *plan;
    sdlf_binding binding;
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 7, .forward = calculator}));
    CHECK_OK(sdlf_plan_output(plan, "class", &binding));
    CHECK(sdlf_shape_equal(binding.tensor.shape, sdlf_shape(7, 10)));
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("small_cnn", "model.onnx"), &(sdlf_onnx_options){.batch = 3}));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK_OK(sdlf_plan_output(plan, "class", &binding));
    CHECK(sdlf_shape_equal(binding.tensor.shape, sdlf_shape(3, 10)));
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

/* A batch that no input can have is the caller's mistake. */
static void a_batch_needs_an_input(void)
{
    const one_node nodes[] = {{.type = "Gather", .attribute = "axis", .value = 1, .inputs = {"i"}}};
    sdlf_model *model = NULL;
    CHECK(import_node(&model, &nodes[0], &(sdlf_onnx_options){.batch = 4}) == SDLF_ERROR_ARGUMENT);
    CHECK(strstr(sdlf_error_message(), "no input leaves its first dimension open") != NULL);
    CHECK(strstr(sdlf_error_message(), "no batch of 4") != NULL);
    CHECK(model == NULL);
}

/* A chain of nodes, each of which reads the previous output and weights of one element each. */
typedef struct link {
    const char *type;
    int64_t weights[3];
    int weight_count;
} link;

static sdlf_status import_links(sdlf_model **model, const link *links, int count)
{
    static const char *const made[] = {"x", "a", "b"};
    bytes graph = {.size = 0};
    char name[32];
    for (int i = 0; i < count; i++) {
        bytes node = {.size = 0};
        bytes_text(&node, 1, made[i]);
        for (int w = 0; w < links[i].weight_count; w++) {
            snprintf(name, sizeof name, "w%d_%d", i, w);
            bytes_text(&node, 1, name);
            add_weight(&graph, name, links[i].weights[w]);
        }
        bytes_text(&node, 2, i + 1 < count ? made[i + 1] : "y");
        bytes_text(&node, 4, links[i].type);
        bytes_message(&graph, 1, &node);
    }
    return import_graph(model, &graph, 1, NULL);
}

/* All elements in one axis, so that more samples are more elements: an operator that selects some of them, or of their
 * copies, is only valid for one sample. */
static void parts_of_joined_samples_are_for_one(void)
{
    static const struct {
        link links[3];
        int count;
        bool fixed;
    } cases[] = {
        {{{"Reshape", {-1}, 1}, {"Slice", {0, 5, 0}, 3}}, 2, true},
        {{{"Reshape", {-1}, 1}, {"Slice", {0, INT64_MAX, 0}, 3}}, 2, false},
        {{{"Reshape", {-1}, 1}, {"Gather", {3}, 1}}, 2, true},
        {{{"Reshape", {-1}, 1}, {"Tile", {2}, 1}, {"Slice", {0, 12, 0}, 3}}, 3, true},
        {{{"Reshape", {-1}, 1}, {"Tile", {2}, 1}, {"Gather", {3}, 1}}, 3, true},
        {{{"Reshape", {-1}, 1}, {"Tile", {2}, 1}, {"Reshape", {24}, 1}}, 3, false},
        {{{"Reshape", {-1}, 1}, {"Tile", {2}, 1}, {"Unsqueeze", {0}, 1}}, 3, false},
    };
    sdlf_calculator *calculator;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_model *model = NULL;
        sdlf_plan *plan = NULL;
        if (!CHECK_OK(import_links(&model, cases[i].links, cases[i].count))) continue;
        sdlf_status status = sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 3, .forward = calculator});
        if (!CHECK((status != SDLF_OK) == cases[i].fixed))
            printf("    case %zu: %s\n", i, status != SDLF_OK ? sdlf_error_message() : "has a plan");
        if (status != SDLF_OK) CHECK(strstr(sdlf_error_message(), "the model was made for batch 1, not 3") != NULL);
        sdlf_plan_free(plan);
        sdlf_model_free(model);
    }
    sdlf_calculator_close(calculator);
}

/* Append an attribute that is a list of integers. */
static void add_integers(bytes *node, const char *name, const int64_t *values, int count)
{
    bytes attribute = {.size = 0};
    bytes_text(&attribute, 1, name);
    for (int i = 0; i < count; i++) bytes_number(&attribute, 8, (uint64_t)values[i]);
    bytes_number(&attribute, 20, 7);
    bytes_message(node, 5, &attribute);
}

/* An operator, the name of its output, and an attribute or a second operand of int64. */
typedef struct operation {
    const char *type, *inputs[2], *output;
    const char *attribute; /* of `numbers`; NULL: they are a weight */
    int64_t numbers[4];
    int count;
    bool is_list; /* of the attribute */
} operation;

enum { MAX_OPERATIONS = 5, MAX_SAMPLES = 3, SAMPLE = 12, MAX_RESULTS = MAX_SAMPLES * SAMPLE * 2 };

static sdlf_status import_operations(sdlf_model **model, const operation *all)
{
    bytes graph = {.size = 0};
    for (int i = 0; i < MAX_OPERATIONS && all[i].type != NULL; i++) {
        const operation *o = &all[i];
        bytes node = {.size = 0};
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        for (int k = 0; k < 2 && o->inputs[k] != NULL; k++) bytes_text(&node, 1, o->inputs[k]);
        if (o->attribute == NULL && o->count > 0) {
            bytes_text(&node, 1, name);
            add_weights(&graph, name, o->numbers, o->count);
        }
        bytes_text(&node, 2, o->output);
        bytes_text(&node, 4, o->type);
        if (o->is_list)
            add_integers(&node, o->attribute, o->numbers, o->count);
        else if (o->attribute != NULL)
            add_integer(&node, o->attribute, o->numbers[0]);
        bytes_message(&graph, 1, &node);
    }
    return import_graph(model, &graph, 1, NULL);
}

/* Run that many samples, starting at x. Returns the number of output elements; -1: rejected. */
static int64_t run_samples(sdlf_model *model, sdlf_calculator *calculator, int64_t batch, const float *x, float *y)
{
    sdlf_plan *plan = NULL;
    sdlf_binding made;
    int64_t count = -1;
    if (sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = batch, .forward = calculator}) == SDLF_OK) {
        CHECK_OK(sdlf_plan_output(plan, "y", &made));
        count = sdlf_tensor_count(&made.tensor);
        CHECK(count <= MAX_RESULTS);
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
    }
    sdlf_plan_free(plan);
    return count;
}

/* A plan of several samples gives the results of plans of one, with the samples along one axis, or it is rejected. */
static void samples_are_apart_or_refused(void)
{
#define NODE(kind, x, y, ...)                                                                                          \
    {                                                                                                                  \
        .type = (kind), .inputs = {x}, .output = (y), __VA_ARGS__                                                      \
    }
#define WEIGHT(n, ...)     .count = (n), .numbers = {__VA_ARGS__}
#define LIST(name, n, ...) .attribute = (name), .is_list = true, WEIGHT(n, __VA_ARGS__)
#define TURN               NODE("Transpose", "x", "t", LIST("perm", 3, 1, 0, 2))
#define NEGATIVE(of)       NODE("Neg", of, "n", .count = 0)
#define JOIN(a, b, axis)                                                                                               \
    {                                                                                                                  \
        .type = "Concat", .inputs = {a, b}, .output = "a", .attribute = "axis", WEIGHT(1, axis)                        \
    }
#define SHAPE(...)         NODE("Reshape", "a", "b", WEIGHT(4, __VA_ARGS__))
#define REDUCE(kind, axis) NODE(kind, "b", "y", LIST("axes", 1, axis))
    static const struct {
        const char *what;
        int64_t outer; /* elements of y before the samples axis */
        bool fixed;    /* must be rejected */
        operation all[MAX_OPERATIONS];
    } cases[] = {
        {"tokens joined along the batch",
         3,
         false,
         {TURN, JOIN("t", "t", 1), SHAPE(3, 2, -1, 4), REDUCE("ReduceMax", 1)}},
        {"tokens and others joined along the batch",
         3,
         false,
         {TURN, NEGATIVE("t"), JOIN("t", "n", 1), SHAPE(3, 2, -1, 4), REDUCE("ReduceMax", 1)}},
        {"tokens repeated along the batch",
         3,
         false,
         {TURN, NODE("Tile", "t", "a", WEIGHT(3, 1, 2, 1)), SHAPE(3, 2, -1, 4), REDUCE("ReduceMax", 1)}},
        {"samples repeated",
         1,
         false,
         {NODE("Tile", "x", "a", WEIGHT(3, 2, 1, 1)), SHAPE(2, -1, 3, 4), REDUCE("ReduceMean", 0)}},
        {"samples and others joined",
         1,
         false,
         {NEGATIVE("x"), JOIN("x", "n", 0), SHAPE(2, -1, 3, 4), REDUCE("ReduceMean", 0)}},
        {"the largest of samples and others",
         1,
         false,
         {NEGATIVE("x"), JOIN("x", "n", 0), SHAPE(2, -1, 3, 4), REDUCE("ReduceMax", 0)}},
        {"a sample twice", 1, true, {NODE("Gather", "x", "y", WEIGHT(2, 0, 0))}},
        {"a token twice", 2, false, {TURN, NODE("Gather", "t", "y", WEIGHT(2, 0, 0))}},
    };
    sdlf_calculator *calculator;
    float x[MAX_SAMPLES * SAMPLE], one[MAX_RESULTS], y[MAX_RESULTS];
    for (int i = 0; i < MAX_SAMPLES * SAMPLE; i++) x[i] = (float)(i * 17 % 37) / 8 - 2; /* all distinct */
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_model *model = NULL;
        if (!CHECK_OK(import_operations(&model, cases[i].all))) continue;
        int64_t all = run_samples(model, calculator, MAX_SAMPLES, x, y);
        CHECK(!cases[i].fixed || all < 0);
        for (int64_t n = 0; n < MAX_SAMPLES; n++) {
            int64_t count = run_samples(model, calculator, 1, x + n * SAMPLE, one), inner = count / cases[i].outer;
            CHECK(count > 0);
            if (all >= 0) CHECK_EQUAL(all, MAX_SAMPLES * count);
            for (int64_t e = 0; e < count && all >= 0; e++)
                if (!CHECK_CLOSE(y[(e / inner * MAX_SAMPLES + n) * inner + e % inner], one[e], 1e-6))
                    printf("    %s: element %d of sample %d\n", cases[i].what, (int)e, (int)n);
        }
        sdlf_model_free(model);
    }
    sdlf_calculator_close(calculator);
}

/* An index out of range for a batch of 1 may be valid for a batch that the file leaves open: the message says how to
 * set it. */
static void an_open_batch_is_set(void)
{
    one_node node = {.type = "Gather", .attribute = "axis", .inputs = {"i"}, .weights = {2}, .open = true};
    sdlf_model *model = NULL;
    CHECK(import_node(&model, &node, NULL) == SDLF_ERROR_FORMAT);
    CHECK(strstr(sdlf_error_message(), "index 2 is not one of 1; the file leaves the batch open") != NULL);
    CHECK(strstr(sdlf_error_message(), "sdlf_onnx_options.batch") != NULL);
    if (CHECK_OK(import_node(&model, &node, &(sdlf_onnx_options){.batch = 3}))) sdlf_model_free(model);
    node.open = false;
    model = NULL;
    CHECK(import_node(&model, &node, NULL) == SDLF_ERROR_FORMAT);
    CHECK(strstr(sdlf_error_message(), "sdlf_onnx_options.batch") == NULL);
}

/* y = `type`(x of (N,3,4), w), w a constant of that shape, along the axis: cases that fit no batch, and others. */
static void a_batch_is_not_to_blame_for_all(void)
{
    static const struct {
        const char *type;
        int axis; /* -1: no attribute */
        int rank;
        int64_t w[3];
        bool speaks;
    } cases[] = {
        {"Concat", 1, 3, {2, 3, 4}, true}, {"Concat", 1, 3, {1, 3, 5}, false}, {"Concat", 0, 3, {1, 3, 5}, false},
        {"Concat", 1, 2, {3, 4}, false},   {"Add", -1, 1, {5}, false},         {"Add", -1, 3, {2, 3, 5}, false},
        {"MatMul", -1, 2, {5, 4}, false},  {"Conv", -1, 3, {4, 5, 3}, false},  {"Reshape", -1, 3, {1, 2, 2}, false},
        {"Conv", 0, 3, {4, 3, 3}, false}, /* which has no such attribute */
    };
    static const float zeros[100];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes node = {.size = 0}, weight = {.size = 0}, graph = {.size = 0};
        int64_t count = 1;
        for (int k = 0; k < cases[i].rank; k++) {
            bytes_number(&weight, 1, (uint64_t)cases[i].w[k]);
            count *= cases[i].w[k];
        }
        bytes_number(&weight, 2, 1);
        bytes_text(&weight, 8, "w");
        bytes_field(&weight, 9, zeros, (size_t)count * sizeof *zeros);
        bytes_message(&graph, 5, &weight);
        bytes_text(&node, 1, "x");
        bytes_text(&node, 1, "w");
        bytes_text(&node, 2, "y");
        bytes_text(&node, 4, cases[i].type);
        if (cases[i].axis >= 0) add_integer(&node, "axis", cases[i].axis);
        bytes_message(&graph, 1, &node);
        sdlf_model *model = NULL;
        CHECK(import_graph(&model, &graph, bytes_open, NULL) != SDLF_OK);
        if (!CHECK((strstr(sdlf_error_message(), "leaves the batch open") != NULL) == cases[i].speaks))
            printf("    case %zu: %s\n", i, sdlf_error_message());
        sdlf_model_free(model);
    }
}

/* Indices of maxima are linear over the whole input, including the batch: a plan for another batch is rejected. */
static void places_are_for_one_batch(void)
{
    sdlf_model *model;
    sdlf_calculator *calculator;
    sdlf_plan *plan;
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("volume", "model.onnx"), NULL));
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    CHECK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 2, .forward = calculator}) == SDLF_ERROR_SHAPE);
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

/* y = x + w, both of (1,3,4): for any batch, w is added to each sample. */
static void constants_are_one_for_all_samples(void)
{
    enum { SAMPLES = 3, COUNT = 12 };
    bytes node = {.size = 0}, weight = {.size = 0}, graph = {.size = 0}, file = {.size = 0}, set = {.size = 0};
    float w[COUNT], x[SAMPLES * COUNT], y[SAMPLES * COUNT] = {0};
    for (int i = 0; i < COUNT; i++) w[i] = (float)(i * i);
    for (int i = 0; i < SAMPLES * COUNT; i++) x[i] = (float)i;
    bytes_text(&node, 1, "x");
    bytes_text(&node, 1, "w");
    bytes_text(&node, 2, "y");
    bytes_text(&node, 4, "Add");
    bytes_message(&graph, 1, &node);
    bytes_number(&weight, 1, 1);
    bytes_number(&weight, 1, 3);
    bytes_number(&weight, 1, 4);
    bytes_number(&weight, 2, 1);
    bytes_text(&weight, 8, "w");
    bytes_field(&weight, 9, w, sizeof w);
    bytes_message(&graph, 5, &weight);
    bytes_value_info(&graph, 11, "x", (const int64_t[]){1, 3, 4}, 3);
    bytes_value_info(&graph, 12, "y", (const int64_t[]){1, 3, 4}, 3);
    bytes_number(&set, 2, 13);
    bytes_message(&file, 8, &set);
    bytes_message(&file, 7, &graph);
    test_write_file(test_path("all.onnx"), file.data, file.size);
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, "cpu", NULL));
    if (CHECK_OK(sdlf_model_from_onnx(&model, test_path("all.onnx"), NULL)) &&
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = SAMPLES, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        for (int i = 0; i < SAMPLES * COUNT; i++) CHECK(!(y[i] < x[i] + w[i % COUNT]) && !(y[i] > x[i] + w[i % COUNT]));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(a_batch_of_one_is_many_or_one);
    RUN(parts_of_joined_samples_are_for_one);
    RUN(samples_are_apart_or_refused);
    RUN(an_open_batch_is_set);
    RUN(a_batch_is_not_to_blame_for_all);
    RUN(parts_without_elements_know_no_batch);
    RUN(constants_are_one_for_all_samples);
    RUN(the_batch_is_the_plans);
    RUN(a_batch_needs_an_input);
    RUN(places_are_for_one_batch);
    return test_summary();
}
