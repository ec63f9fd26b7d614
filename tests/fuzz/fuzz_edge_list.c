/* SPDX-License-Identifier: MIT */
/* The reader of edge lists on arbitrary bytes: an error with a message that names the source, or a graph with a valid
 * matrix. */
#include <stdlib.h>
#include <string.h>

#include "graphs/edge_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sdlf_graph graph = {.node_count = 0};
    if (size == 0) return 0;
    sdlf_status status = edge_list_parse(&graph, data + 1, size - 1, "input", data[0] & 1);
    if (status != SDLF_OK) {
        if (*sdlf_error_message() == '\0') abort();
    } else {
        if (sdlf_csr_check(&graph.adjacency) != SDLF_OK || graph.node_count < 1) abort();
        if (sdlf_tensor_present(&graph.ids) && graph.ids.shape.dim[0] != graph.node_count) abort();
    }
    sdlf_tensor_release(&graph.adjacency, NULL);
    sdlf_tensor_release(&graph.ids, NULL);
    return 0;
}
