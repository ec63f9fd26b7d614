/* SPDX-License-Identifier: MIT */
#include "graphs/edges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void edges_release(edges *list)
{
    free(list->from);
    free(list->to);
    *list = (edges){.count = 0};
}

sdlf_status edges_reserve(edges *list, int64_t count)
{
    if (count <= list->capacity) return SDLF_OK;
    if (count > INT64_MAX / 16) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for %" PRId64 " edges", count);
    if (!read_budget_take(&list->budget, 16 * (count - list->capacity))) return read_budget_fail(&list->budget);
    int64_t *from = realloc(list->from, (size_t)count * sizeof *from);
    if (from != NULL) list->from = from;
    int64_t *to = from != NULL ? realloc(list->to, (size_t)count * sizeof *to) : NULL;
    if (to == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for %" PRId64 " edges", count);
    list->to = to;
    list->capacity = count;
    return SDLF_OK;
}

static sdlf_status check_memory(const void *memory, int64_t nodes)
{
    if (memory != NULL) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for a table of %" PRId64 " nodes", nodes);
}

/* ---- numbering ---- */

/* True if the largest number is not much larger than the number of edges: a table is used then, else a hash table. */
static bool is_dense(const edges *list, int64_t largest)
{
    return largest < (1 << 20) || largest / 8 < list->count;
}

static sdlf_status number_with_table(edges *list, int64_t largest, int64_t *node_count, sdlf_tensor *ids)
{
    int32_t *number = calloc((size_t)largest + 1, sizeof *number);
    sdlf_status status = check_memory(number, largest);
    if (status != SDLF_OK) return status;
    for (int64_t e = 0; e < list->count; e++) number[list->from[e]] = number[list->to[e]] = 1;
    int64_t count = 0;
    for (int64_t id = 0; id <= largest; id++) count += number[id];
    if (count <= INT32_MAX) {
        status = count == largest + 1 ? SDLF_OK : sdlf_tensor_create(ids, NULL, SDLF_INT64, sdlf_shape(count));
        if (status == SDLF_OK) {
            int64_t *own = ids->data;
            count = 0;
            for (int64_t id = 0; id <= largest; id++) {
                if (number[id] == 0) continue;
                if (own != NULL) own[count] = id;
                number[id] = (int32_t)count++;
            }
            for (int64_t e = 0; e < list->count; e++) {
                list->from[e] = number[list->from[e]];
                list->to[e] = number[list->to[e]];
            }
        }
    }
    free(number);
    *node_count = count;
    return status;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30; /* the finisher of splitmix64 */
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Open addressing; at least half of the slots stay empty. */
typedef struct id_table {
    int64_t *id; /* -1: empty */
    int64_t *number;
    int64_t slots; /* a power of two */
    int64_t count;
} id_table;

static int64_t find_slot(const id_table *table, int64_t id)
{
    uint64_t mask = (uint64_t)table->slots - 1, slot = mix((uint64_t)id) & mask;
    while (table->id[slot] != id && table->id[slot] != -1) slot = (slot + 1) & mask;
    return (int64_t)slot;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static sdlf_status allocate_table(id_table *table, int64_t slots)
{
    *table = (id_table){.slots = slots};
    table->id = malloc((size_t)slots * sizeof *table->id);
    table->number = table->id != NULL ? malloc((size_t)slots * sizeof *table->number) : NULL;
    sdlf_status status = check_memory(table->number, slots);
    for (int64_t i = 0; status == SDLF_OK && i < slots; i++) table->id[i] = -1;
    return status;
}

static void release_table(id_table *table)
{
    free(table->id);
    free(table->number);
}

static sdlf_status grow_table(id_table *table)
{
    id_table larger;
    sdlf_status status = allocate_table(&larger, 2 * table->slots);
    for (int64_t i = 0; status == SDLF_OK && i < table->slots; i++) {
        if (table->id[i] != -1) larger.id[find_slot(&larger, table->id[i])] = table->id[i];
    }
    if (status != SDLF_OK) {
        release_table(&larger);
        return status;
    }
    larger.count = table->count;
    release_table(table);
    *table = larger;
    return SDLF_OK;
}

static sdlf_status collect_ids(id_table *table, const int64_t *ids, int64_t count)
{
    for (int64_t e = 0; e < count; e++) {
        int64_t slot = find_slot(table, ids[e]);
        if (table->id[slot] != -1) continue;
        table->id[slot] = ids[e];
        if (++table->count <= table->slots / 2) continue;
        sdlf_status status = grow_table(table);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

static sdlf_status number_with_hash(edges *list, int64_t *node_count, sdlf_tensor *ids)
{
    id_table table;
    sdlf_status status = allocate_table(&table, 1 << 16);
    if (status == SDLF_OK) status = collect_ids(&table, list->from, list->count);
    if (status == SDLF_OK) status = collect_ids(&table, list->to, list->count);
    if (status == SDLF_OK) status = sdlf_tensor_create(ids, NULL, SDLF_INT64, sdlf_shape(table.count));
    if (status == SDLF_OK) {
        int64_t *own = ids->data, count = 0;
        for (int64_t i = 0; i < table.slots; i++) {
            if (table.id[i] != -1) own[count++] = table.id[i];
        }
        qsort(own, (size_t)count, sizeof *own, compare_ids);
        for (int64_t i = 0; i < count; i++) table.number[find_slot(&table, own[i])] = i;
        for (int64_t e = 0; e < list->count; e++) {
            list->from[e] = table.number[find_slot(&table, list->from[e])];
            list->to[e] = table.number[find_slot(&table, list->to[e])];
        }
        *node_count = count;
    }
    release_table(&table);
    return status;
}

static sdlf_status number_from_one(edges *list, int64_t declared, sdlf_tensor *ids)
{
    sdlf_status status = sdlf_tensor_create(ids, NULL, SDLF_INT64, sdlf_shape(declared));
    if (status != SDLF_OK) return status;
    for (int64_t i = 0; i < declared; i++) ((int64_t *)ids->data)[i] = i + 1;
    for (int64_t e = 0; e < list->count; e++) {
        list->from[e]--;
        list->to[e]--;
    }
    return SDLF_OK;
}

sdlf_status edges_number_nodes(edges *list, int64_t declared, int64_t *node_count, sdlf_tensor *ids)
{
    int64_t largest = -1, smallest = INT64_MAX;
    *node_count = 0;
    *ids = (sdlf_tensor){.dtype = SDLF_NONE};
    for (int64_t e = 0; e < list->count; e++) {
        int64_t high = list->from[e] > list->to[e] ? list->from[e] : list->to[e];
        int64_t low = list->from[e] < list->to[e] ? list->from[e] : list->to[e];
        largest = high > largest ? high : largest;
        smallest = low < smallest ? low : smallest;
    }
    /* do not trust a declared number of nodes that is out of proportion to the edges */
    bool believable = declared > 0 && declared <= INT32_MAX && declared / 64 <= list->count + (1 << 14) &&
                      read_budget_check(&list->budget, 2 * 8 * declared, "nodes") == SDLF_OK; /* numbers, rows */
    if (believable && largest < declared) {
        *node_count = declared;
        return SDLF_OK;
    }
    if (believable && largest == declared && smallest >= 1) {
        *node_count = declared;
        return number_from_one(list, declared, ids);
    }
    if (list->count == 0) return SDLF_OK;
    sdlf_status status = is_dense(list, largest) ? number_with_table(list, largest, node_count, ids)
                                                 : number_with_hash(list, node_count, ids);
    if (status == SDLF_OK && *node_count > INT32_MAX)
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%" PRId64 " nodes, expected at most %d", *node_count, INT32_MAX);
    return status;
}
