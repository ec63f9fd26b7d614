/* SPDX-License-Identifier: MIT */
/* Tree ensembles, evaluated all at once: all comparisons are computed; a product with a matrix of +1 (the leaf requires
 * it to hold), -1 (not to hold) and 0 gives for each leaf the number of required comparisons on its path that hold,
 * minus those that must not; the leaf reached is the one where this equals the number of required ones; and a product
 * with the leaf weights gives the sum. */
#include "framework/formats/onnx/import/trees.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 20, MOST_MODES = 6 };

static const struct {
    const char *name, *function;
} modes[MOST_MODES] = {{"BRANCH_LEQ", "less_equal"}, {"BRANCH_LT", "less"},  {"BRANCH_GTE", "greater_equal"},
                       {"BRANCH_GT", "greater"},     {"BRANCH_EQ", "equal"}, {"BRANCH_NEQ", "not_equal"}};

typedef struct tree_node {
    int64_t tree, id, feature, yes, no; /* ids */
    float value;
    int mode; /* index of modes; -1: a leaf */
    bool missing_holds;
    int number, place; /* of its tree; among that tree's comparisons, or leaves */
    int visited;       /* 1: descending; 2: done */
} tree_node;

typedef struct ensemble {
    tree_node *node; /* sorted by tree and id */
    int count;
    int64_t trees, comparisons, leaves; /* the maxima per tree */
} ensemble;

static int compare(const void *a, const void *b)
{
    const tree_node *x = a, *y = b;
    if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static tree_node *find(const ensemble *e, int64_t tree, int64_t id)
{
    tree_node key = {.tree = tree, .id = id};
    return e->count > 0 ? bsearch(&key, e->node, (size_t)e->count, sizeof key, compare) : NULL;
}

/* A list of `count` integers under that name; NULL after a failure, or if it is omitted and optional. */
static const int64_t *integers(onnx_context *c, const char *kind, const char *name, int64_t count, bool needed)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%s", kind, name);
    const Onnx__AttributeProto *attribute = onnx_attribute(c, full);
    if (attribute == NULL && !needed) return NULL;
    if (attribute != NULL && attribute->n_ints == (size_t)count) return attribute->ints;
    onnx_wrong(c, "attribute '%s' has %zu numbers; %lld were expected", full, attribute != NULL ? attribute->n_ints : 0,
               (long long)count);
    return NULL;
}

static const float *reals(onnx_context *c, const char *kind, const char *name, int64_t count)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%s", kind, name);
    const Onnx__AttributeProto *attribute = onnx_attribute(c, full);
    if (attribute != NULL && attribute->n_floats == (size_t)count) return attribute->floats;
    onnx_wrong(c, "attribute '%s' has %zu numbers; %lld were expected (in double they are not read)", full,
               attribute != NULL ? attribute->n_floats : 0, (long long)count);
    return NULL;
}

static int mode_of(onnx_context *c, const ProtobufCBinaryData *text)
{
    for (int i = 0; i < MOST_MODES; i++)
        if (text->len == strlen(modes[i].name) && memcmp(text->data, modes[i].name, text->len) == 0) return i;
    if (text->len != 4 || memcmp(text->data, "LEAF", 4) != 0)
        onnx_unsupported(c, "a mode of a node of %zu letters", text->len);
    return -1;
}

static void read_nodes(onnx_context *c, ensemble *e, int64_t features)
{
    const Onnx__AttributeProto *ids = onnx_attribute(c, "nodes_nodeids"), *words = onnx_attribute(c, "nodes_modes");
    size_t count = ids != NULL ? ids->n_ints : 0;
    if (count < 1 || count > MOST_NODES) onnx_unsupported(c, "%zu nodes: 1 to %d are supported", count, MOST_NODES);
    if (onnx_ok(c) && (words == NULL || words->n_strings != count))
        onnx_wrong(c, "attribute 'nodes_modes' has other nodes");
    if (!onnx_ok(c)) return;
    e->count = (int)count;
    const int64_t *trees = integers(c, "nodes", "treeids", e->count, true);
    const int64_t *feature = integers(c, "nodes", "featureids", e->count, true);
    const int64_t *yes = integers(c, "nodes", "truenodeids", e->count, true);
    const int64_t *no = integers(c, "nodes", "falsenodeids", e->count, true);
    const int64_t *missing = integers(c, "nodes", "missing_value_tracks_true", e->count, false);
    const float *value = reals(c, "nodes", "values", e->count);
    e->node = onnx_arena_array(&c->import->file->arena, count, sizeof *e->node);
    if (e->node == NULL) onnx_no_memory(c);
    for (int i = 0; i < e->count && onnx_ok(c); i++) {
        e->node[i] =
            (tree_node){.tree = trees[i], .id = ids->ints[i], .feature = feature[i], .yes = yes[i], .no = no[i]};
        e->node[i].value = value[i];
        e->node[i].mode = mode_of(c, &words->strings[i]);
        e->node[i].missing_holds = missing != NULL && missing[i] != 0;
        if (e->node[i].mode >= 0 && (feature[i] < 0 || feature[i] >= features))
            onnx_wrong(c, "node %d looks at feature %lld of %lld", i, (long long)feature[i], (long long)features);
    }
    if (!onnx_ok(c)) return;
    qsort(e->node, count, sizeof *e->node, compare);
    for (int i = 1; i < e->count; i++)
        if (compare(&e->node[i - 1], &e->node[i]) == 0)
            onnx_wrong(c, "two nodes are %lld of tree %lld", (long long)e->node[i].id, (long long)e->node[i].tree);
}

/* Numbers trees from 0, and the comparisons and leaves of each. */
static void number(ensemble *e)
{
    int64_t comparisons = 0, leaves = 0, last = 0;
    for (int i = 0; i < e->count; i++) {
        tree_node *n = &e->node[i];
        bool next = i == 0 || n->tree != last;
        last = n->tree;
        if (next) comparisons = leaves = 0;
        e->trees += next;
        n->number = (int)e->trees - 1;
        n->place = (int)(n->mode >= 0 ? comparisons++ : leaves++);
        if (comparisons > e->comparisons) e->comparisons = comparisons;
        if (leaves > e->leaves) e->leaves = leaves;
    }
    if (e->comparisons == 0) e->comparisons = 1; /* single-leaf trees: one comparison without effect */
}

/* ---- matrices ---- */

typedef struct matrices {
    onnx_tensor feature, value, mode[MOST_MODES], missing; /* (trees comparisons) */
    onnx_tensor way, wanted;                               /* (trees, comparisons, leaves), (trees, 1, leaves) */
    bool has_mode[MOST_MODES], has_missing;
    int64_t tree;
} matrices;

/* Writes the leaf's path: +1 for nodes whose comparison must hold, -1 for the others. */
static void write_leaf(const ensemble *e, matrices *m, const tree_node *leaf, tree_node *const *path, int depth)
{
    float *way = (float *)m->way.data + m->tree * e->comparisons * e->leaves + leaf->place;
    float wanted = 0;
    for (int i = 0; i < depth; i++) {
        bool holds = path[i]->visited == 1;
        way[path[i]->place * e->leaves] = holds ? 1 : -1;
        wanted += holds;
    }
    ((float *)m->wanted.data)[m->tree * e->leaves + leaf->place] = wanted;
}

static void write_node(const ensemble *e, matrices *m, const tree_node *n)
{
    int64_t at = m->tree * e->comparisons + n->place;
    if (n->mode < 0) return;
    ((int64_t *)m->feature.data)[at] = n->feature;
    ((float *)m->value.data)[at] = n->value;
    ((uint8_t *)m->mode[n->mode].data)[at] = 1;
    ((uint8_t *)m->missing.data)[at] = n->missing_holds;
    m->has_mode[n->mode] = true;
    m->has_missing = m->has_missing || n->missing_holds;
}

/* Traverses all paths of the tree with root `root`: first where the comparison holds, then where it does not (visited
 * 1, then 2). */
static void walk(onnx_context *c, const ensemble *e, matrices *m, tree_node *root, tree_node **path)
{
    int depth = 0;
    tree_node *n = root;
    for (;;) {
        if (n == NULL || n->visited != 0) {
            onnx_wrong(c, "tree %lld: a node is no node of it, or is reached twice", (long long)root->tree);
            return;
        }
        n->visited = 1;
        if (n->mode >= 0) {
            path[depth++] = n;
            n = find(e, n->tree, n->yes);
            continue;
        }
        write_leaf(e, m, n, path, depth);
        while (depth > 0 && path[depth - 1]->visited == 2) depth--;
        if (depth == 0) return;
        path[depth - 1]->visited = 2;
        n = find(e, root->tree, path[depth - 1]->no);
    }
}

static onnx_tensor zeros(onnx_context *c, onnx_type type, sdlf_shape shape)
{
    onnx_tensor tensor = onnx_new_tensor(c, type, shape);
    if (onnx_ok(c)) memset((void *)tensor.data, 0, (size_t)tensor.count * onnx_type_size(type));
    return tensor;
}

/* The root of a tree is the node that no other one of the tree refers to. */
static matrices matrices_of(onnx_context *c, const ensemble *e)
{
    sdlf_shape each = sdlf_shape(e->trees * e->comparisons);
    matrices m = {.feature = zeros(c, ONNX_INT64, each),
                  .value = zeros(c, ONNX_FLOAT, each),
                  .missing = zeros(c, ONNX_BOOL, each)};
    for (int i = 0; i < MOST_MODES; i++) m.mode[i] = zeros(c, ONNX_BOOL, each);
    m.way = zeros(c, ONNX_FLOAT, sdlf_shape(e->trees, e->comparisons, e->leaves));
    m.wanted = onnx_new_tensor(c, ONNX_FLOAT, sdlf_shape(e->trees, 1, e->leaves));
    tree_node **path = onnx_arena_array(&c->import->file->arena, (size_t)e->count, sizeof *path);
    uint8_t *led = onnx_arena_array(&c->import->file->arena, (size_t)e->count, 1);
    if (path == NULL || led == NULL) onnx_no_memory(c);
    if (!onnx_ok(c)) return m;
    for (int64_t i = 0; i < m.wanted.count; i++) ((float *)m.wanted.data)[i] = -1; /* reached by none */
    memset(led, 0, (size_t)e->count);
    for (int i = 0; i < e->count; i++) {
        const tree_node *n = &e->node[i], *next[2] = {NULL, NULL};
        if (n->mode >= 0) next[0] = find(e, n->tree, n->yes), next[1] = find(e, n->tree, n->no);
        for (int k = 0; k < 2; k++)
            if (next[k] != NULL) led[next[k] - e->node] = 1;
    }
    int from = 0;
    for (int64_t t = 0; t < e->trees && onnx_ok(c); t++) {
        int end = from, root = -1;
        m.tree = t;
        for (; end < e->count && e->node[end].tree == e->node[from].tree; end++) {
            write_node(e, &m, &e->node[end]);
            if (!led[end] && root < 0) root = end;
        }
        if (root < 0) onnx_wrong(c, "tree %lld has no first node", (long long)e->node[from].tree);
        if (onnx_ok(c)) walk(c, e, &m, &e->node[root], path);
        from = end;
    }
    return m;
}

/* (trees, leaves, targets) */
static onnx_tensor weights_of(onnx_context *c, const ensemble *e, const char *kind, int64_t targets)
{
    char name[64];
    snprintf(name, sizeof name, "%s_ids", kind);
    const Onnx__AttributeProto *ids = onnx_attribute(c, name);
    int64_t count = ids != NULL ? (int64_t)ids->n_ints : 0;
    const int64_t *trees = integers(c, kind, "treeids", count, true),
                  *nodes = integers(c, kind, "nodeids", count, true);
    const float *value = reals(c, kind, "weights", count);
    onnx_tensor tensor = zeros(c, ONNX_FLOAT, sdlf_shape(e->trees, e->leaves, targets));
    for (int64_t i = 0; i < count && onnx_ok(c); i++) {
        const tree_node *leaf = find(e, trees[i], nodes[i]);
        if (leaf == NULL || leaf->mode >= 0 || ids->ints[i] < 0 || ids->ints[i] >= targets) {
            onnx_wrong(c, "weight %lld is of no leaf, or of none of %lld targets", (long long)i, (long long)targets);
            break;
        }
        ((float *)tensor.data)[(leaf->number * e->leaves + leaf->place) * targets + ids->ints[i]] += value[i];
    }
    return tensor;
}

onnx_flow onnx_trees_sum(onnx_context *c, onnx_flow x, const char *kind, int64_t targets, int64_t *trees)
{
    ensemble e = {.count = 0};
    if (onnx_ok(c) && x.shape.rank != 2) onnx_wrong(c, "its input is %s", sdlf_shape_print(x.shape).text);
    if (onnx_ok(c)) read_nodes(c, &e, x.shape.dim[1]);
    if (!onnx_ok(c)) return x;
    number(&e);
    if (e.trees > ONNX_FOLD_LIMIT / e.comparisons ||
        (e.leaves > 0 && e.trees * e.comparisons > ONNX_FOLD_LIMIT / e.leaves) ||
        (targets > 0 && e.trees * e.leaves > ONNX_FOLD_LIMIT / targets))
        onnx_unsupported(
            c,
            "%lld trees of up to %lld comparisons, %lld leaves and %lld targets: a matrix of them may have %d elements",
            (long long)e.trees, (long long)e.comparisons, (long long)e.leaves, (long long)targets, ONNX_FOLD_LIMIT);
    if (!onnx_ok(c)) return x;
    matrices m = matrices_of(c, &e);
    onnx_tensor weights = weights_of(c, &e, kind, targets);
    onnx_flow at = onnx_gather(c, onnx_cast(c, x, SDLF_FLOAT32), onnx_constant_layer(c, &m.feature), 1);
    onnx_flow value = onnx_constant_layer(c, &m.value), holds = at;
    bool begun = false;
    for (int i = 0; i < MOST_MODES && onnx_ok(c); i++) {
        if (!m.has_mode[i]) continue;
        bool other = strcmp(modes[i].function, "not_equal") == 0;
        onnx_flow is = onnx_elementwise(c, other ? "equal" : modes[i].function, at, value);
        if (other) is = onnx_not(c, is);
        is = onnx_elementwise(c, "and", is, onnx_constant_layer(c, &m.mode[i]));
        holds = begun ? onnx_elementwise(c, "or", holds, is) : is;
        begun = true;
    }
    if (!begun) holds = onnx_elementwise(c, "less", at, at);
    if (m.has_missing) {
        onnx_flow nan = onnx_not(c, onnx_elementwise(c, "equal", at, at));
        holds = onnx_elementwise(c, "or", holds, onnx_elementwise(c, "and", nan, onnx_constant_layer(c, &m.missing)));
    }
    onnx_flow each = onnx_split_axis(c, onnx_cast(c, holds, SDLF_FLOAT32), 1, e.trees);
    each = onnx_transpose(c, each, (const int[]){1, 0, 2}); /* (trees, N, comparisons) */
    onnx_flow counts = onnx_product(c, each, onnx_constant_layer(c, &m.way), false);
    onnx_flow reached = onnx_elementwise(c, "equal", counts, onnx_constant_layer(c, &m.wanted));
    onnx_flow sums = onnx_product(c, onnx_cast(c, reached, SDLF_FLOAT32), onnx_constant_layer(c, &weights), false);
    *trees = e.trees;
    return onnx_reduce(c, sums, SDLF_REDUCE_LAYER_SUM, sdlf_shape(0), false);
}
