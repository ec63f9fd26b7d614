/* SPDX-License-Identifier: MIT */
/* The matrix of a graph convolution: the adjacency with self loops, normalised. */
#include <sdlf/graph.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* True if the node has an edge to itself. Columns are sorted. */
static bool has_loop(const sdlf_tensor *adjacency, int64_t node)
{
    const int64_t *offsets = sdlf_csr_offsets(adjacency);
    const int32_t *columns = sdlf_csr_columns(adjacency);
    int64_t low = offsets[node], high = offsets[node + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (columns[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low < offsets[node + 1] && columns[low] == node;
}

/* Create the structure of B: the adjacency with the requested self loops. Values are uninitialised. */
static sdlf_status make_structure(sdlf_tensor *matrix, const sdlf_graph *graph, sdlf_dtype dtype, bool self_loops)
{
    const sdlf_tensor *from = &graph->adjacency;
    int64_t n = graph->node_count, added = 0;
    for (int64_t i = 0; self_loops && i < n; i++) added += !has_loop(from, i);
    sdlf_status status = sdlf_csr_create(matrix, NULL, dtype, n, n, from->stored + added);
    if (status != SDLF_OK) return status;
    const int64_t *old = sdlf_csr_offsets(from);
    const int32_t *column = sdlf_csr_columns(from);
    int64_t *offsets = sdlf_csr_offsets(matrix), at = 0;
    int32_t *columns = sdlf_csr_columns(matrix);
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        bool wanted = self_loops;
        for (int64_t e = old[i]; e < old[i + 1]; e++) {
            if (wanted && column[e] >= i) {
                if (column[e] > i) columns[at++] = (int32_t)i;
                wanted = false;
            }
            columns[at++] = column[e];
        }
        if (wanted) columns[at++] = (int32_t)i;
        offsets[i + 1] = at;
    }
    return SDLF_OK;
}

/* The factor of row i, and for symmetric normalisation also of column i. A row's sum is its number of elements. */
static double factor(sdlf_normalization_kind kind, int64_t sum)
{
    if (sum == 0 || kind == SDLF_NORMALIZE_NONE) return kind == SDLF_NORMALIZE_NONE;
    return kind == SDLF_NORMALIZE_SYMMETRIC ? 1 / sqrt((double)sum) : 1 / (double)sum;
}

/* Computes one square root and one division per row, not per element. */
static sdlf_status fill_values(sdlf_tensor *matrix, sdlf_normalization_kind kind)
{
    const int64_t *offsets = sdlf_csr_offsets(matrix), rows = matrix->shape.dim[0];
    const int32_t *columns = sdlf_csr_columns(matrix);
    void *values = sdlf_csr_values(matrix);
    double *factors = malloc((size_t)rows * sizeof *factors + 1);
    if (factors == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for the factors of %lld rows", (long long)rows);
    for (int64_t i = 0; i < rows; i++) factors[i] = factor(kind, offsets[i + 1] - offsets[i]);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) {
            double value = kind == SDLF_NORMALIZE_SYMMETRIC ? factors[i] * factors[columns[e]] : factors[i];
            if (matrix->dtype == SDLF_FLOAT32)
                ((float *)values)[e] = (float)value;
            else
                ((double *)values)[e] = value;
        }
    }
    free(factors);
    return SDLF_OK;
}

sdlf_status sdlf_graph_matrix(sdlf_tensor *matrix, const sdlf_graph *graph, const sdlf_graph_matrix_options *options)
{
    if (matrix == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_graph_matrix: matrix is NULL");
    if (graph == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_graph_matrix: graph is NULL");
    static const sdlf_graph_matrix_options defaults = {.dtype = SDLF_FLOAT32};
    if (options == NULL) options = &defaults;
    sdlf_dtype dtype = options->dtype == SDLF_NONE ? SDLF_FLOAT32 : options->dtype;
    *matrix = (sdlf_tensor){.dtype = SDLF_NONE};
    if (dtype != SDLF_FLOAT32 && dtype != SDLF_FLOAT64)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "graph matrix: dtype must be float32 or float64, not %s",
                         sdlf_dtype_name(dtype));
    if ((unsigned)options->normalization > SDLF_NORMALIZE_ROW)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "graph matrix: there is no normalisation %d",
                         (int)options->normalization);
    sdlf_status status = make_structure(matrix, graph, dtype, options->self_loops);
    if (status == SDLF_OK) status = fill_values(matrix, options->normalization);
    if (status != SDLF_OK) sdlf_tensor_release(matrix, NULL);
    return status;
}
