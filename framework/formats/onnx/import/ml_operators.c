/* SPDX-License-Identifier: MIT */
/* Operators of ai.onnx.ml, to which scikit-learn and boosted trees are exported: scalers, linear models, trees, support
 * vectors. Class labels must be integers; strings are rejected. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/trees.h"

enum { MOST_CLASSES = 1 << 16, MOST_ELEMENTS = 1 << 24 };

/* The floats of an attribute as a tensor of that shape, or a single number for all; fails for any other count. */
static onnx_tensor reals(onnx_context *c, const char *name, sdlf_shape shape)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(c, name);
    int64_t count = sdlf_shape_count(shape);
    bool one = attribute != NULL && attribute->n_floats == 1;
    if (attribute == NULL || count < 0 || (attribute->n_floats != (size_t)count && !one))
        onnx_wrong(c, "attribute '%s' has %zu numbers; %lld were expected", name,
                   attribute != NULL ? attribute->n_floats : 0, (long long)count);
    onnx_tensor tensor = onnx_new_tensor(c, ONNX_FLOAT, one && count != 1 ? sdlf_shape(1) : shape);
    if (onnx_ok(c)) memcpy((void *)tensor.data, attribute->floats, (size_t)tensor.count * sizeof(float));
    return tensor;
}

static onnx_flow reals_as_layer(onnx_context *c, const char *name, sdlf_shape shape)
{
    onnx_tensor tensor = reals(c, name, shape);
    return onnx_constant_layer(c, &tensor);
}

/* x (N, features), or (features) as one row, converted to float. */
static onnx_flow rows(onnx_context *c)
{
    onnx_flow x = onnx_cast(c, onnx_in(c, 0), SDLF_FLOAT32);
    if (onnx_ok(c) && x.shape.rank == 1) x = onnx_split_axis(c, x, 0, 1);
    if (onnx_ok(c) && x.shape.rank != 2) onnx_wrong(c, "its input is %s", sdlf_shape_print(x.shape).text);
    return x;
}

/* ---- features ---- */

/* Restores the rank of the input: (features) if it had rank 1. */
static void give_rows(onnx_context *c, onnx_flow y)
{
    onnx_set_output(c, 0, onnx_ok(c) && onnx_shape(c, 0).rank == 1 ? onnx_reshape(c, y, onnx_shape(c, 0)) : y);
}

static void convert_scaler(onnx_context *c)
{
    onnx_flow x = rows(c);
    if (!onnx_ok(c)) return;
    sdlf_shape features = sdlf_shape(x.shape.dim[1]);
    if (onnx_has_attribute(c, "offset")) x = onnx_elementwise(c, "sub", x, reals_as_layer(c, "offset", features));
    if (onnx_has_attribute(c, "scale")) x = onnx_elementwise(c, "mul", x, reals_as_layer(c, "scale", features));
    give_rows(c, x);
}

static void convert_normalizer(onnx_context *c)
{
    onnx_word norm = onnx_text(c, "norm", "MAX");
    onnx_flow x = rows(c), size = x;
    if (strcmp(norm.text, "MAX") == 0)
        size = onnx_reduce(c, x, SDLF_REDUCE_LAYER_MAX, sdlf_shape(1), true);
    else if (strcmp(norm.text, "L1") == 0)
        size = onnx_reduce(c, x, SDLF_REDUCE_LAYER_L1, sdlf_shape(1), true);
    else if (strcmp(norm.text, "L2") == 0)
        size = onnx_function(c, SDLF_UNARY_SQRT, onnx_reduce(c, x, SDLF_REDUCE_LAYER_SUM_SQUARES, sdlf_shape(1), true));
    else
        onnx_wrong(c, "attribute 'norm' is '%s'", norm.text);
    onnx_flow none = onnx_with_number(c, "equal", size, 0); /* a row of zeros is unchanged */
    give_rows(c, onnx_elementwise(c, "div", x, onnx_choose(c, none, onnx_number(c, SDLF_FLOAT32, 1), size)));
}

static void convert_binarizer(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    onnx_flow is = onnx_with_number(c, "greater", x, (double)onnx_real(c, "threshold", 0));
    onnx_set_output(c, 0, onnx_cast(c, is, x.dtype));
}

static void convert_imputer(onnx_context *c)
{
    onnx_flow x = rows(c);
    double missing = (double)onnx_real(c, "replaced_value_float", 0);
    if (!onnx_ok(c)) return;
    onnx_flow value = reals_as_layer(c, "imputed_value_floats", sdlf_shape(x.shape.dim[1]));
    onnx_flow is = isnan(missing) ? onnx_not(c, onnx_elementwise(c, "equal", x, x))
                                  : onnx_elementwise(c, "equal", x, onnx_number(c, SDLF_FLOAT32, missing));
    give_rows(c, onnx_choose(c, is, value, x));
}

static void convert_extractor(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), index = onnx_cast(c, onnx_in(c, 1), SDLF_INT64);
    if (!onnx_ok(c)) return;
    if (x.shape.rank == 1) x = onnx_split_axis(c, x, 0, 1);
    index = onnx_flat(c, index);
    if (onnx_ok(c)) onnx_set_output(c, 0, onnx_gather(c, x, index, x.shape.rank - 1));
}

static void convert_vectorizer(onnx_context *c)
{
    onnx_flow *part = onnx_arena_array(&c->import->file->arena, (size_t)c->input_count, sizeof *part);
    const Onnx__AttributeProto *sizes = onnx_attribute(c, "inputdimensions");
    if (part == NULL) onnx_no_memory(c);
    for (int i = 0; i < c->input_count && onnx_ok(c); i++) {
        part[i] = onnx_cast(c, onnx_in(c, i), SDLF_FLOAT32);
        bool fits =
            part[i].shape.rank == 2 &&
            (sizes == NULL || (sizes->n_ints == (size_t)c->input_count && sizes->ints[i] == part[i].shape.dim[1]));
        if (onnx_ok(c) && !fits) onnx_unsupported(c, "input %d of %s", i, sdlf_shape_print(part[i].shape).text);
    }
    if (onnx_ok(c)) onnx_set_output(c, 0, onnx_join(c, part, c->input_count, 1));
}

/* ---- outputs of models ---- */

static onnx_flow logistic(onnx_context *c, onnx_flow x)
{
    return onnx_layer(c, "sigmoid", NULL, &x, 1);
}

static onnx_flow transformed(onnx_context *c, onnx_flow y)
{
    onnx_word transform = onnx_text(c, "post_transform", "NONE");
    if (strcmp(transform.text, "LOGISTIC") == 0) return logistic(c, y);
    if (strcmp(transform.text, "SOFTMAX") == 0) return onnx_softmax(c, y, 1);
    if (strcmp(transform.text, "NONE") != 0) onnx_unsupported(c, "attribute 'post_transform' is '%s'", transform.text);
    return y;
}

/* The class labels, at most MOST_CLASSES. */
static onnx_list labels_of(onnx_context *c, const char *name)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(c, name);
    size_t count = attribute != NULL ? attribute->n_ints : 0;
    if (count < 1 || count > MOST_CLASSES)
        onnx_unsupported(c, "attribute '%s' has %zu integers: classes of other labels are not supported", name, count);
    return onnx_ok(c) ? (onnx_list){attribute->ints, (int)count} : (onnx_list){NULL, 0};
}

/* Label and scores, (N) and (N, classes): the label with the highest score. */
static void give_classes(onnx_context *c, onnx_flow scores, onnx_list labels)
{
    onnx_flow best = onnx_layer(c, "arg_reduce", &(sdlf_arg_reduce_layer_options){.axis = 1}, &scores, 1);
    onnx_flow label = onnx_gather(c, onnx_int64s(c, labels.item, sdlf_shape(labels.count)), best, 0);
    onnx_set_output(c, 0, label);
    if (c->output_count > 1) onnx_set_output(c, 1, transformed(c, scores));
}

/* x (N, features) times the coefficients' rows, (targets, features), plus the intercepts. */
static onnx_flow linear(onnx_context *c, onnx_flow x, int64_t targets)
{
    if (!onnx_ok(c)) return x;
    if (targets < 1 || targets > MOST_CLASSES) onnx_wrong(c, "%lld targets", (long long)targets);
    if (!onnx_ok(c)) return x;
    onnx_flow y = onnx_product(c, x, reals_as_layer(c, "coefficients", sdlf_shape(targets, x.shape.dim[1])), true);
    return onnx_has_attribute(c, "intercepts")
               ? onnx_elementwise(c, "add", y, reals_as_layer(c, "intercepts", sdlf_shape(targets)))
               : y;
}

static void convert_linear_regressor(onnx_context *c)
{
    onnx_set_output(c, 0, transformed(c, linear(c, rows(c), onnx_integer(c, "targets", 1))));
}

static void convert_linear_classifier(onnx_context *c)
{
    onnx_list labels = labels_of(c, "classlabels_ints");
    onnx_flow x = rows(c);
    if (!onnx_ok(c)) return;
    if (labels.count < 2) onnx_unsupported(c, "a classifier of %d class", labels.count);
    give_classes(c, linear(c, x, labels.count), labels);
}

/* ---- trees ---- */

static onnx_flow with_base(onnx_context *c, onnx_flow y, int64_t targets)
{
    return onnx_has_attribute(c, "base_values")
               ? onnx_elementwise(c, "add", y, reals_as_layer(c, "base_values", sdlf_shape(targets)))
               : y;
}

static void convert_tree_regressor(onnx_context *c)
{
    onnx_word aggregate = onnx_text(c, "aggregate_function", "SUM");
    int64_t targets = onnx_integer(c, "n_targets", 1), trees = 1;
    bool average = strcmp(aggregate.text, "AVERAGE") == 0;
    if (!average && strcmp(aggregate.text, "SUM") != 0)
        onnx_unsupported(c, "attribute 'aggregate_function' is '%s'", aggregate.text);
    if (targets < 1 || targets > MOST_CLASSES) onnx_wrong(c, "attribute 'n_targets' is %lld", (long long)targets);
    onnx_flow y = onnx_trees_sum(c, rows(c), "target", targets, &trees);
    if (average) y = onnx_with_number(c, "div", y, (double)trees);
    onnx_set_output(c, 0, transformed(c, with_base(c, y, targets)));
}

/* Two classes whose weights are all of the first and then belong to the second, as in onnxruntime: the first gets 1
 * minus the score if no weight is negative and no LOGISTIC follows, else the negated score. */
static void give_two_classes(onnx_context *c, onnx_flow score, bool positive, onnx_list labels)
{
    onnx_word transform = onnx_text(c, "post_transform", "NONE");
    bool applies = strcmp(transform.text, "LOGISTIC") == 0;
    if (!applies && strcmp(transform.text, "NONE") != 0)
        onnx_unsupported(c, "attribute 'post_transform' is '%s', of two classes", transform.text);
    onnx_flow is = onnx_cast(c, onnx_with_number(c, "greater", score, positive ? 0.5 : 0), SDLF_INT64);
    is = onnx_join_axes(c, is, 0, 1);
    onnx_set_output(c, 0, onnx_gather(c, onnx_int64s(c, labels.item, sdlf_shape(2)), is, 0));
    onnx_flow other = onnx_with_number(c, "mul", score, -1);
    if (positive && !applies) other = onnx_with_number(c, "add", other, 1);
    onnx_flow parts[] = {other, score};
    onnx_flow scores = onnx_join(c, parts, 2, 1);
    if (c->output_count > 1) onnx_set_output(c, 1, applies ? logistic(c, scores) : scores);
}

static void convert_tree_classifier(onnx_context *c)
{
    onnx_list labels = labels_of(c, "classlabels_int64s");
    const Onnx__AttributeProto *ids = onnx_attribute(c, "class_ids"), *weights = onnx_attribute(c, "class_weights");
    int64_t trees;
    bool one = labels.count == 2 && ids != NULL && ids->n_ints > 0, positive = true;
    for (size_t i = 0; one && i < ids->n_ints; i++) one = ids->ints[i] == ids->ints[0];
    for (size_t i = 0; weights != NULL && i < weights->n_floats; i++) positive = positive && weights->floats[i] >= 0;
    onnx_flow y = onnx_trees_sum(c, rows(c), "class", labels.count, &trees);
    if (!one) {
        give_classes(c, with_base(c, y, labels.count), labels);
        return;
    }
    if (onnx_ok(c) && ids->ints[0] != 0) onnx_unsupported(c, "two classes with weights of the second alone");
    if (onnx_ok(c)) give_two_classes(c, with_base(c, onnx_take(c, y, 1, 0, 1, 1), 1), positive, labels);
}

/* ---- support vectors ---- */

/* The kernel function of each row with each vector, (N, vectors). */
static onnx_flow kernel(onnx_context *c, onnx_flow x, onnx_flow vectors)
{
    onnx_word type = onnx_text(c, "kernel_type", "LINEAR");
    const Onnx__AttributeProto *given = onnx_attribute(c, "kernel_params");
    double parameter[3] = {0, 0, 3}; /* gamma, coef0, degree */
    for (size_t i = 0; given != NULL && i < given->n_floats && i < 3; i++) parameter[i] = (double)given->floats[i];
    if (strcmp(type.text, "RBF") == 0) {
        onnx_flow difference =
            onnx_elementwise(c, "sub", onnx_split_axis(c, x, 1, 1), vectors); /* (N, vectors, features) */
        onnx_flow far = onnx_reduce(c, difference, SDLF_REDUCE_LAYER_SUM_SQUARES, sdlf_shape(2), false);
        return onnx_function(c, SDLF_UNARY_EXP, onnx_with_number(c, "mul", far, -parameter[0]));
    }
    onnx_flow y = onnx_product(c, x, vectors, true);
    if (strcmp(type.text, "LINEAR") == 0) return y;
    y = onnx_with_number(c, "add", onnx_with_number(c, "mul", y, parameter[0]), parameter[1]);
    if (strcmp(type.text, "POLY") == 0) return onnx_with_number(c, "pow", y, parameter[2]);
    if (strcmp(type.text, "SIGMOID") == 0) return onnx_layer(c, "tanh", NULL, &y, 1);
    onnx_unsupported(c, "attribute 'kernel_type' is '%s'", type.text);
    return y;
}

static void convert_svm_regressor(onnx_context *c)
{
    onnx_flow x = rows(c);
    int64_t vectors = onnx_integer(c, "n_supports", 0), features = onnx_ok(c) ? x.shape.dim[1] : 1;
    if (onnx_flag(c, "one_class", false)) onnx_unsupported(c, "attribute 'one_class' is not 0");
    if (onnx_ok(c) && (vectors < 0 || vectors > MOST_ELEMENTS / features ||
                       x.shape.dim[0] > MOST_ELEMENTS / features / (vectors + 1)))
        onnx_unsupported(c, "%lld vectors of %lld features", (long long)vectors, (long long)features);
    if (!onnx_ok(c)) return;
    onnx_flow y;
    if (vectors > 0) {
        y = kernel(c, x, reals_as_layer(c, "support_vectors", sdlf_shape(vectors, features)));
        y = onnx_product(c, y, reals_as_layer(c, "coefficients", sdlf_shape(1, vectors)), true);
    } else { /* the coefficients are the single vector */
        y = kernel(c, x, reals_as_layer(c, "coefficients", sdlf_shape(1, features)));
    }
    onnx_set_output(c, 0, transformed(c, onnx_elementwise(c, "add", y, reals_as_layer(c, "rho", sdlf_shape(1)))));
}

#define LEARNING(name, inputs, words, function)                                                                        \
    {                                                                                                                  \
        .type = "ai.onnx.ml." name, .since = 1, .from_first = true, .minimum_inputs = 1, .maximum_inputs = (inputs),   \
        .attributes = (words), .convert = (function)                                                                   \
    }
#define NODES                                                                                                          \
    " base_values nodes_falsenodeids nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes "     \
    "nodes_nodeids nodes_treeids nodes_truenodeids nodes_values post_transform "

const onnx_operator onnx_ml_operators[] = {
    LEARNING("Scaler", 1, " offset scale ", convert_scaler),
    LEARNING("Normalizer", 1, " norm ", convert_normalizer),
    LEARNING("Binarizer", 1, " threshold ", convert_binarizer),
    LEARNING("Imputer", 1, " imputed_value_floats replaced_value_float ", convert_imputer),
    LEARNING("ArrayFeatureExtractor", 2, " ", convert_extractor),
    LEARNING("FeatureVectorizer", 4096, " inputdimensions ", convert_vectorizer),
    LEARNING("LinearRegressor", 1, " coefficients intercepts post_transform targets ", convert_linear_regressor),
    LEARNING("LinearClassifier", 1, " classlabels_ints coefficients intercepts multi_class post_transform ",
             convert_linear_classifier),
    LEARNING("TreeEnsembleRegressor", 1,
             NODES "aggregate_function n_targets target_ids target_nodeids target_treeids target_weights ",
             convert_tree_regressor),
    LEARNING("TreeEnsembleClassifier", 1,
             NODES "class_ids class_nodeids class_treeids class_weights classlabels_int64s ", convert_tree_classifier),
    LEARNING("SVMRegressor", 1,
             " coefficients kernel_params kernel_type n_supports one_class post_transform rho support_vectors ",
             convert_svm_regressor),
    {.type = NULL},
};
