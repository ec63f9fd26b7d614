/* SPDX-License-Identifier: MIT */
/* A graph network: two graph convolutions learn which side each of 34 people took, from the graph of friendships and
 * the sides of two of them.
 *
 *     karate_club
 *
 * The graph is W. Zachary's karate club (An information flow model for conflict and fission in small groups, Journal of
 * Anthropological Research 33, 1977), which split over a dispute between its instructor (member 0) and its president
 * (member 33). */
#include <stdio.h>

#include <sdlf/sdlf.h>

enum { MEMBERS = 34, EDGES = 78, STEPS = 100 };

static const int edges[EDGES][2] = {
    {0, 1},   {0, 2},   {0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},   {0, 10},  {0, 11},
    {0, 12},  {0, 13},  {0, 17},  {0, 19},  {0, 21},  {0, 31},  {1, 2},   {1, 3},   {1, 7},   {1, 13},
    {1, 17},  {1, 19},  {1, 21},  {1, 30},  {2, 3},   {2, 7},   {2, 8},   {2, 9},   {2, 13},  {2, 27},
    {2, 28},  {2, 32},  {3, 7},   {3, 12},  {3, 13},  {4, 6},   {4, 10},  {5, 6},   {5, 10},  {5, 16},
    {6, 16},  {8, 30},  {8, 32},  {8, 33},  {9, 33},  {13, 33}, {14, 32}, {14, 33}, {15, 32}, {15, 33},
    {18, 32}, {18, 33}, {19, 33}, {20, 32}, {20, 33}, {22, 32}, {22, 33}, {23, 25}, {23, 27}, {23, 29},
    {23, 32}, {23, 33}, {24, 25}, {24, 27}, {24, 31}, {25, 31}, {26, 29}, {26, 33}, {27, 33}, {28, 31},
    {28, 33}, {29, 32}, {29, 33}, {30, 32}, {30, 33}, {31, 32}, {31, 33}, {32, 33},
};

/* 0: the instructor's side; 1: the president's. Only those of 0 and 33 are used in training. */
static int32_t side[MEMBERS] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0,
                                0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static float weights[MEMBERS] = {[0] = 0.5f, [MEMBERS - 1] = 0.5f}; /* of each member's loss */
static float features[MEMBERS][MEMBERS];                            /* one-hot: no features but the member's identity */

static bool know(int a, int b)
{
    for (int i = 0; i < EDGES; i++)
        if ((edges[i][0] == a && edges[i][1] == b) || (edges[i][0] == b && edges[i][1] == a)) return true;
    return false;
}

/* D^-1/2 (A + I) D^-1/2 of the graph, as compressed sparse rows. */
static sdlf_status make_matrix(sdlf_tensor *matrix)
{
    sdlf_graph graph = {.node_count = MEMBERS, .undirected = true};
    sdlf_status status = sdlf_csr_create(&graph.adjacency, NULL, SDLF_FLOAT32, MEMBERS, MEMBERS, 2 * EDGES);
    if (status != SDLF_OK) return status;
    int64_t *offsets = sdlf_csr_offsets(&graph.adjacency), stored = 0;
    int32_t *columns = sdlf_csr_columns(&graph.adjacency);
    float *values = sdlf_csr_values(&graph.adjacency);
    for (int a = 0; a < MEMBERS; a++) {
        offsets[a] = stored;
        for (int b = 0; b < MEMBERS; b++)
            if (know(a, b)) {
                columns[stored] = b;
                values[stored++] = 1;
            }
    }
    offsets[MEMBERS] = stored;
    status = sdlf_csr_check(&graph.adjacency);
    if (status == SDLF_OK)
        status = sdlf_graph_matrix(
            matrix, &graph,
            &(sdlf_graph_matrix_options){.normalization = SDLF_NORMALIZE_SYMMETRIC, .self_loops = true});
    sdlf_tensor_release(&graph.adjacency, NULL);
    return status;
}

static sdlf_model *describe(void)
{
    sdlf_model *net = sdlf_model_create("karate_club");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(MEMBERS)); /* members are the batch */
    sdlf_node matrix = sdlf_sparse_input(net, "matrix");
    sdlf_node labels = sdlf_input(net, "labels", SDLF_INT32, SDLF_SCALAR);
    sdlf_node weight = sdlf_input(net, "weights", SDLF_FLOAT32, SDLF_SCALAR);
    x = sdlf_tanh(net, sdlf_graph_conv(net, x, matrix, &(sdlf_graph_conv_options){.units = 8}));
    x = sdlf_graph_conv(net, x, matrix, &(sdlf_graph_conv_options){.units = 2});
    sdlf_softmax_cross_entropy_weighted(net, x, labels, weight, NULL);
    sdlf_output(net, "side", sdlf_softmax(net, x));
    return net;
}

/* Trains in one plan, evaluates in another of the same model. */
static sdlf_status learn(sdlf_model *net, const sdlf_tensor *matrix, float (*scores)[2])
{
    const sdlf_plan_constant constants[] = {
        {"x", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(MEMBERS, MEMBERS), features)},
        {"matrix", *matrix},
        {"labels", sdlf_tensor_view(SDLF_INT32, sdlf_shape(MEMBERS), side)},
        {"weights", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(MEMBERS), weights)},
    };
    sdlf_calculator *cpu = NULL;
    sdlf_plan *training = NULL, *inference = NULL;
    sdlf_plan_options options = {.batch = MEMBERS, .mode = SDLF_TRAIN, .constants = constants, .constant_count = 4};
    options.optimizer = sdlf_adam(.weight_decay = 5e-4f);
    sdlf_status status = sdlf_calculator_open(&cpu, "cpu", NULL);
    options.forward = cpu;
    if (status == SDLF_OK) status = sdlf_plan_create(&training, net, &options);
    for (int step = 0; step < STEPS && status == SDLF_OK; step++) status = sdlf_plan_step(training, 0.02f);
    sdlf_metrics metrics = {0};
    if (status == SDLF_OK) status = sdlf_plan_metrics(training, &metrics);
    if (status == SDLF_OK) status = sdlf_plan_store_parameters(training);
    options.mode = SDLF_INFER;
    if (status == SDLF_OK) status = sdlf_plan_create(&inference, net, &options);
    if (status == SDLF_OK) status = sdlf_plan_forward(inference);
    if (status == SDLF_OK)
        status = sdlf_plan_read(inference, "side", scores, SDLF_FLOAT32, MEMBERS * 2 * (int64_t)sizeof(float));
    sdlf_plan_free(inference);
    sdlf_plan_free(training);
    sdlf_calculator_close(cpu);
    return status;
}

int main(void)
{
    static float scores[MEMBERS][2];
    for (int i = 0; i < MEMBERS; i++) features[i][i] = 1;
    sdlf_tensor matrix = {0};
    sdlf_model *net = describe();
    sdlf_status status = make_matrix(&matrix);
    if (status == SDLF_OK) status = learn(net, &matrix, scores);
    int right = 0;
    for (int i = 0; i < MEMBERS && status == SDLF_OK; i++) {
        int guess = scores[i][1] > scores[i][0];
        right += guess == side[i];
        printf("member %2d  %s  %5.1f%%%s\n", i, guess ? "president " : "instructor", 100 * (double)scores[i][guess],
               guess == side[i] ? "" : "  (took the other side)");
    }
    if (status == SDLF_OK) printf("%d of %d members, from 2\n", right, MEMBERS);
    if (status != SDLF_OK) fprintf(stderr, "karate_club: %s\n", sdlf_error_message());
    sdlf_tensor_release(&matrix, NULL);
    sdlf_model_free(net);
    return status == SDLF_OK ? 0 : 1;
}
