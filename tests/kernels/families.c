/* SPDX-License-Identifier: MIT */
/* The families of cases, each with a generator of cases to check and one of cases to time. */
#include "families.h"

#include <string.h>

const kernel_family kernel_families[KERNEL_FAMILIES] = {
    {"memory", memory_cases, memory_bench},
    {"gather_batch", gather_cases, gather_bench},
    {"gemm", gemm_cases, gemm_bench},
    {"elementwise", elementwise_cases, elementwise_bench},
    {"conv2d", conv2d_cases, conv2d_bench},
    {"conv2d_relu_max_pool", conv2d_pool_cases, conv2d_pool_bench},
    {"conv2d_inverted_residual", conv2d_inverted_cases, conv2d_inverted_bench},
    {"pool2d", pool2d_cases, pool2d_bench},
    {"batch_norm2d", batch_norm_cases, batch_norm_bench},
    {"softmax", softmax_cases, softmax_bench},
    {"spmm_csr", spmm_cases, spmm_bench},
    {"random", random_cases, random_bench},
    {"update", update_cases, update_bench},
    {"broadcast", broadcast_cases, broadcast_bench},
    {"indexing", indexing_cases, indexing_bench},
    {"rows", rows_cases, rows_bench},
    {"quantized", quantized_cases, quantized_bench},
    {"attention", attention_cases, attention_bench},
    {"recurrent", recurrent_cases, recurrent_bench},
};

bool kernel_is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    }
    return false;
}

int kernel_families_in(const char *list)
{
    int named = 0, found = 0;
    for (const char *at = list; at; at = strchr(at + 1, ',')) named++;
    for (int i = 0; i < KERNEL_FAMILIES; i++) found += kernel_is_listed(list, kernel_families[i].name);
    return found == named ? found : -1;
}
