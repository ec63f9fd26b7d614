/* SPDX-License-Identifier: MIT */
/* A graph's matrix and a network of two graph convolutions, compared with PyTorch's, whose matrices are dense: on every
 * calculator, fused and unfused; directed graphs with the transpose. */
#include <sdlf/graph.h>

#include "torch/fixtures.h"

enum { NODES = 8, INPUTS = 5, HIDDEN = 4, CLASSES = 3 };

/* Sums of a few dozen products near 1, in float32. */
static const double absolute = 2e-6, relative = 2e-6;

typedef struct gcn {
    const json_t *fixture;
    sdlf_graph *graph;
    sdlf_tensor matrix, transposed;
    float x[NODES * INPUTS], weights[NODES];
    int32_t labels[NODES];
} gcn;

static bool is_true(const json_t *c, const char *key)
{
    return json_is_true(json_object_get(c, key));
}

static sdlf_normalization_kind normalization_of(const json_t *c)
{
    const char *name = fixture_text(c, "normalization");
    if (strcmp(name, "symmetric") == 0) return SDLF_NORMALIZE_SYMMETRIC;
    return strcmp(name, "row") == 0 ? SDLF_NORMALIZE_ROW : SDLF_NORMALIZE_NONE;
}

static bool make_graph(gcn *g)
{
    const json_t *c = g->fixture;
    char text[1000], specification[4300];
    const char *path = test_path("edges.txt");
    snprintf(text, sizeof text, "# Nodes: %d\n%s", NODES, fixture_text(c, "edges"));
    test_write_file(path, text, strlen(text));
    snprintf(specification, sizeof specification, "snap:%s%s", path, is_true(c, "undirected") ? ",undirected" : "");
    const sdlf_graph_matrix_options options = {.normalization = normalization_of(c), .self_loops = is_true(c, "loops")};
    if (!CHECK_OK(sdlf_graph_open(&g->graph, specification)) || !CHECK_EQUAL(g->graph->node_count, NODES) ||
        !CHECK_OK(sdlf_graph_matrix(&g->matrix, g->graph, &options)) ||
        !CHECK_OK(sdlf_csr_transpose(&g->transposed, &g->matrix)))
        return false;
    fixture_floats(json_object_get(c, "x"), g->x, NODES * INPUTS);
    size_t masked = json_array_size(json_object_get(c, "masked"));
    for (size_t i = 0; i < masked; i++)
        g->weights[json_integer_value(json_array_get(json_object_get(c, "masked"), i))] = 1.0f / (float)masked;
    for (size_t i = 0; i < NODES; i++)
        g->labels[i] = (int32_t)json_integer_value(json_array_get(json_object_get(c, "labels"), i));
    return true;
}

static void check_matrix(const gcn *g)
{
    float dense[NODES * NODES] = {0};
    for (int r = 0; r < NODES; r++) {
        for (int64_t e = sdlf_csr_offsets(&g->matrix)[r]; e < sdlf_csr_offsets(&g->matrix)[r + 1]; e++)
            dense[r * NODES + sdlf_csr_columns(&g->matrix)[e]] += ((const float *)sdlf_csr_values(&g->matrix))[e];
    }
    fixture_close(json_object_get(g->fixture, "matrix"), dense, NODES * NODES, 0, 1e-7,
                  fixture_text(g->fixture, "name"), "matrix");
}

static sdlf_model *make_model(const gcn *g)
{
    sdlf_model *m = sdlf_model_create("gcn");
    sdlf_node x = sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(INPUTS)), matrix = sdlf_sparse_input(m, "matrix"),
              transposed = sdlf_sparse_input(m, "transposed"),
              labels = sdlf_input(m, "labels", SDLF_INT32, SDLF_SCALAR),
              weights = sdlf_input(m, "weights", SDLF_FLOAT32, SDLF_SCALAR);
    x = sdlf_graph_conv_directed(m, x, matrix, transposed, &(sdlf_graph_conv_options){.units = HIDDEN});
    x = sdlf_graph_conv_directed(m, sdlf_relu(m, x), matrix, transposed, &(sdlf_graph_conv_options){.units = CLASSES});
    sdlf_softmax_cross_entropy_weighted(m, x, labels, weights, NULL);
    sdlf_output(m, "y", sdlf_log_softmax(m, x));
    if (!CHECK_OK(sdlf_model_build(m, 1))) return m;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(g->fixture, "parameters"), key, value)
    {
        sdlf_parameter *parameter = sdlf_model_find_parameter(m, key);
        if (CHECK(parameter != NULL))
            fixture_floats(value, parameter->value.data, sdlf_tensor_count(&parameter->value));
    }
    return m;
}

static void check_step(const gcn *g, sdlf_calculator *calculator, bool no_fusion)
{
    char what[128];
    snprintf(what, sizeof what, "%s on %s, %s", fixture_text(g->fixture, "name"), calculator->type->name,
             no_fusion ? "unfused" : "fused");
    const sdlf_plan_constant constants[] = {
        {"matrix", g->matrix},
        {"transposed", g->transposed},
        {"x", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(NODES, INPUTS), (void *)(uintptr_t)g->x)},
        {"labels", sdlf_tensor_view(SDLF_INT32, sdlf_shape(NODES), (void *)(uintptr_t)g->labels)},
        {"weights", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(NODES), (void *)(uintptr_t)g->weights)}};
    sdlf_plan_options options = {.batch = NODES,
                                 .mode = SDLF_TRAIN,
                                 .forward = calculator,
                                 .no_fusion = no_fusion,
                                 .gradients_only = true,
                                 .constants = constants,
                                 .constant_count = 5};
    sdlf_model *model = make_model(g);
    sdlf_plan *plan = NULL, *inference = NULL;
    float values[NODES * INPUTS], loss = 0;
    if (!CHECK_OK(sdlf_plan_create(&plan, model, &options))) goto done;
    CHECK_OK(sdlf_plan_step(plan, 0));
    CHECK_OK(sdlf_plan_synchronize(plan));
    CHECK_OK(test_plan_read(plan, "loss", &loss));
    CHECK_CLOSE(loss, fixture_number(g->fixture, "loss", NAN), 1e-6);
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(g->fixture, "gradients"), key, value)
    {
        sdlf_binding binding;
        if (!CHECK_OK(sdlf_plan_gradient(plan, key, &binding)) || !test_download(&binding, values)) continue;
        fixture_close(value, values, sdlf_tensor_count(&binding.tensor), absolute, relative, what, key);
    }
    options.mode = SDLF_INFER;
    options.gradients_only = false;
    if (!CHECK_OK(sdlf_plan_create(&inference, model, &options))) goto done;
    CHECK_OK(sdlf_plan_forward(inference));
    CHECK_OK(test_plan_read(inference, "y", values));
    fixture_close(json_object_get(g->fixture, "output"), values, NODES * CLASSES, absolute, relative, what, "output");
done:
    sdlf_plan_free(inference);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
}

static void two_layers_agree(void)
{
    json_t *root = fixtures_open("torch_gcn.json"), *c;
    size_t index;
    json_array_foreach(json_object_get(root, "cases"), index, c)
    {
        gcn g = {.fixture = c};
        if (make_graph(&g)) {
            check_matrix(&g);
            for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
                sdlf_calculator *calculator = NULL;
                if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
                check_step(&g, calculator, true);
                check_step(&g, calculator, false);
                sdlf_calculator_close(calculator);
            }
        }
        sdlf_tensor_release(&g.matrix, NULL);
        sdlf_tensor_release(&g.transposed, NULL);
        sdlf_graph_free(g.graph);
    }
    json_decref(root);
}

int main(void)
{
    RUN(two_layers_agree);
    return test_summary();
}
