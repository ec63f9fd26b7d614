/* The layers that come with SDLF, as calls that append them to a model.
 *
 * Each takes the node it reads and returns the node it makes. A member left at zero means its default. Nothing is checked
 * at once: the first error is kept in the model and reported when it is built (see model.h), so calls can be chained. */
#ifndef SDLF_LAYERS_H
#define SDLF_LAYERS_H

#include <sdlf/layer.h>
#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 2-D convolution (cross-correlation). Input (N,C,H,W); output (N,filters,P,Q); parameters weight
 * (filters, C/groups, kernel) and bias (filters). Depthwise: groups = C. Default initialisation: he_uniform, bias zero. */
typedef struct sdlf_conv2d_options {
    const char *name;
    int filters;          /* required */
    int kernel[2];        /* required */
    int stride[2];        /* default 1 */
    int padding[2];       /* zeros above and left, and below and right too; default 0 */
    int padding_extra[2]; /* more (or, if negative, fewer) zeros below and right; default 0 */
    int dilation[2];      /* default 1 */
    int groups;           /* default 1 */
    bool no_bias;
    int initializer; /* sdlf_initializer_kind */
} sdlf_conv2d_options;
sdlf_node sdlf_conv2d(sdlf_model *model, sdlf_node x, const sdlf_conv2d_options *options);

/* Max and average pooling. Input (N,C,H,W); output (N,C,P,Q). */
typedef struct sdlf_pool2d_options {
    const char *name;
    int window[2];  /* required */
    int stride[2];  /* default: the window */
    int padding[2]; /* default 0; smaller than the window */
    int padding_extra[2];
    int dilation[2];    /* default 1; max_pool2d alone */
    int ties;           /* max_pool2d: sdlf_ties, who gets the gradient of tied maxima; default shared */
    bool count_padding; /* avg_pool2d: padding counts in the mean; default no */
} sdlf_pool2d_options;
sdlf_node sdlf_max_pool2d(sdlf_model *model, sdlf_node x, const sdlf_pool2d_options *options);
sdlf_node sdlf_avg_pool2d(sdlf_model *model, sdlf_node x, const sdlf_pool2d_options *options);

/* Mean over H and W: (N,C,H,W) to (N,C,1,1). */
sdlf_node sdlf_global_avg_pool2d(sdlf_model *model, sdlf_node x);

/* y = x weight^T + bias. Input (N, ...), flattened to (N,I); output (N,units); parameters weight (units,I), bias (units).
 * Default initialisation: he_uniform, bias zero. */
typedef struct sdlf_fully_connected_options {
    const char *name;
    int units; /* required */
    bool no_bias;
    int initializer;
} sdlf_fully_connected_options;
sdlf_node sdlf_fully_connected(sdlf_model *model, sdlf_node x, const sdlf_fully_connected_options *options);

/* Batch normalisation over each channel of (N,C,H,W) or (N,C). Parameters weight, bias, running_mean, running_var (C). */
typedef struct sdlf_batch_norm2d_options {
    const char *name;
    float epsilon;  /* default 1e-5 */
    float momentum; /* weight of the newest batch in the running statistics; default 0.1 */
} sdlf_batch_norm2d_options;
sdlf_node sdlf_batch_norm2d(sdlf_model *model, sdlf_node x, const sdlf_batch_norm2d_options *options);

/* Zeroes each element with the given probability while training, scaling the rest by 1 / (1 - probability). */
typedef struct sdlf_dropout_options {
    const char *name;
    float probability; /* in [0, 1) */
} sdlf_dropout_options;
sdlf_node sdlf_dropout(sdlf_model *model, sdlf_node x, const sdlf_dropout_options *options);

/* y = A (x weight) + bias: x (N,I) of N nodes, A (N,N) sparse, y (N,units). `transposed` is A's transpose, for the gradient
 * by x weight; where the two are equal (an undirected graph), give A twice or use sdlf_graph_conv. */
typedef struct sdlf_graph_conv_options {
    const char *name;
    int units; /* outputs of a node; required */
    bool no_bias;
    bool no_decay;   /* weight decay leaves the weight alone */
    int initializer; /* sdlf_initializer_kind of the weight; xavier_uniform by default */
} sdlf_graph_conv_options;
sdlf_node sdlf_graph_conv(sdlf_model *model, sdlf_node x, sdlf_node matrix, const sdlf_graph_conv_options *options);
sdlf_node sdlf_graph_conv_directed(sdlf_model *model, sdlf_node x, sdlf_node matrix, sdlf_node transposed,
                                   const sdlf_graph_conv_options *options);

sdlf_node sdlf_relu(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_relu6(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_sigmoid(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_tanh(sdlf_model *model, sdlf_node x);

typedef struct sdlf_clip_options {
    const char *name;
    float low, high; /* low < high */
} sdlf_clip_options;
sdlf_node sdlf_clip(sdlf_model *model, sdlf_node x, const sdlf_clip_options *options);

typedef struct sdlf_leaky_relu_options {
    const char *name;
    float slope; /* default 0.01 */
} sdlf_leaky_relu_options;
sdlf_node sdlf_leaky_relu(sdlf_model *model, sdlf_node x, const sdlf_leaky_relu_options *options);

/* Any function of <sdlf/operations/elementwise.h>, element by element. */
typedef struct sdlf_unary_options {
    const char *name;
    int function; /* sdlf_unary_function */
    float alpha;  /* elu, celu: default 1; selu: 1.6732632; hard_sigmoid: 0.2 */
    float beta;   /* selu: default 1.050701; hard_sigmoid: default 0.5 */
} sdlf_unary_options;
typedef enum sdlf_unary_function {
    SDLF_UNARY_SILU = 0,
    SDLF_UNARY_HARD_SWISH,
    SDLF_UNARY_ELU,
    SDLF_UNARY_SELU,
    SDLF_UNARY_CELU,
    SDLF_UNARY_GELU,
    SDLF_UNARY_GELU_TANH,
    SDLF_UNARY_MISH,
    SDLF_UNARY_SOFTPLUS,
    SDLF_UNARY_SOFTSIGN,
    SDLF_UNARY_HARD_SIGMOID,
    SDLF_UNARY_ERF,
    SDLF_UNARY_SQRT,
    SDLF_UNARY_EXP,
    SDLF_UNARY_LOG,
    SDLF_UNARY_ABS,
    SDLF_UNARY_NEGATE,
    SDLF_UNARY_RECIPROCAL,
    SDLF_UNARY_FLOOR,
    SDLF_UNARY_CEIL,
    SDLF_UNARY_ROUND, /* ties to even */
    SDLF_UNARY_FUNCTION_COUNT
} sdlf_unary_function;
sdlf_node sdlf_unary(sdlf_model *model, sdlf_node x, const sdlf_unary_options *options);

/* (N, ...) to (N, product). */
sdlf_node sdlf_flatten(sdlf_model *model, sdlf_node x);

/* (N, ...) to (N, shape); one dimension may be -1 and is worked out. With `whole`, anything to shape itself: the batch is a
 * dimension like the others. */
typedef struct sdlf_reshape_options {
    const char *name;
    sdlf_shape shape; /* without the batch, unless `whole` */
    bool whole;
} sdlf_reshape_options;
sdlf_node sdlf_reshape(sdlf_model *model, sdlf_node x, const sdlf_reshape_options *options);

/* Elementwise sum of two nodes of one shape: the residual connection. */
sdlf_node sdlf_add(sdlf_model *model, sdlf_node a, sdlf_node b);

/* Join nodes of one element type along an axis: 1, channels, by default; negative ones count from the end. */
typedef struct sdlf_concat_options {
    const char *name;
    int axis;
} sdlf_concat_options;
sdlf_node sdlf_concat(sdlf_model *model, const sdlf_node *nodes, int count, const sdlf_concat_options *options);

/* A function of two nodes of one element type, broadcast as in numpy, or of one node and a number. Comparisons give bool. */
typedef enum sdlf_binary_layer_function {
    SDLF_LAYER_ADD = 0,
    SDLF_LAYER_SUBTRACT,
    SDLF_LAYER_MULTIPLY,
    SDLF_LAYER_DIVIDE,
    SDLF_LAYER_POWER,
    SDLF_LAYER_MINIMUM,
    SDLF_LAYER_MAXIMUM,
    SDLF_LAYER_PRELU, /* a, or b a where a is negative */
    SDLF_LAYER_EQUAL,
    SDLF_LAYER_LESS,
    SDLF_LAYER_LESS_EQUAL,
    SDLF_LAYER_GREATER,
    SDLF_LAYER_GREATER_EQUAL,
    SDLF_LAYER_AND, /* of bool, as or and xor; "not x" is x equal to 0 */
    SDLF_LAYER_OR,
    SDLF_LAYER_XOR,
    SDLF_LAYER_FUNCTION_COUNT
} sdlf_binary_layer_function;
typedef struct sdlf_binary_layer_options {
    const char *name;
    int function;
    float scalar;      /* with one input: the number that takes the other's place */
    bool scalar_first; /* with one input: number op x instead of x op number */
} sdlf_binary_layer_options;
sdlf_node sdlf_binary(sdlf_model *model, const sdlf_node *nodes, int count, const sdlf_binary_layer_options *options);

/* condition ? a : b, all three broadcast; condition is bool, a and b have one element type. */
sdlf_node sdlf_select(sdlf_model *model, sdlf_node condition, sdlf_node a, sdlf_node b);

/* Some axes folded to one number. */
typedef enum sdlf_reduce_function {
    SDLF_REDUCE_LAYER_SUM = 0,
    SDLF_REDUCE_LAYER_MEAN,
    SDLF_REDUCE_LAYER_MAX,
    SDLF_REDUCE_LAYER_MIN,
    SDLF_REDUCE_LAYER_PRODUCT, /* its gradient divides by x, which must not be 0 */
    SDLF_REDUCE_LAYER_L1,
    SDLF_REDUCE_LAYER_L2,
    SDLF_REDUCE_LAYER_SUM_SQUARES,
    SDLF_REDUCE_LAYER_LOG_SUM,
    SDLF_REDUCE_LAYER_LOG_SUM_EXP,
    SDLF_REDUCE_LAYER_FUNCTION_COUNT
} sdlf_reduce_function;
typedef struct sdlf_reduce_options {
    const char *name;
    int function;
    sdlf_shape axes; /* 0 is the batch, -1 the last; left empty: all */
    bool keep;       /* the axes stay, with 1 element each */
} sdlf_reduce_options;
sdlf_node sdlf_reduce(sdlf_model *model, sdlf_node x, const sdlf_reduce_options *options);

/* The index, int64, of the largest element along an axis. */
typedef struct sdlf_arg_reduce_layer_options {
    const char *name;
    int axis; /* default 1; -1 is the last */
    bool smallest, last;
    bool keep;
} sdlf_arg_reduce_layer_options;
sdlf_node sdlf_arg_reduce(sdlf_model *model, sdlf_node x, const sdlf_arg_reduce_layer_options *options);

/* x at the indices (int32 or int64, of any shape, negative ones from the end) along an axis; 0 where an index lies outside. */
typedef struct sdlf_gather_options {
    const char *name;
    int axis; /* default 1; -1 is the last */
} sdlf_gather_options;
sdlf_node sdlf_gather(sdlf_model *model, sdlf_node x, sdlf_node index, const sdlf_gather_options *options);

/* y = a b: matrices, or batches of them with broadcast leading axes; a vector is a row on the left, a column on the right. */
typedef struct sdlf_matmul_options {
    const char *name;
    bool transpose_a, transpose_b;
} sdlf_matmul_options;
sdlf_node sdlf_matmul(sdlf_model *model, sdlf_node a, sdlf_node b, const sdlf_matmul_options *options);

/* Transposed convolution. Input (N,C,P,Q); output (N,filters,H,W); parameters weight (C, filters/groups, kernel), bias. */
typedef struct sdlf_conv_transpose2d_options {
    const char *name;
    int filters;           /* required */
    int kernel[2];         /* required */
    int stride[2];         /* default 1 */
    int padding[2];        /* cut off above and left, and below and right too; default 0 */
    int padding_extra[2];  /* more cut off below and right; default 0 */
    int output_padding[2]; /* added below and right, less than the stride; default 0 */
    int dilation[2];       /* default 1 */
    int groups;            /* default 1 */
    bool no_bias;
} sdlf_conv_transpose2d_options;
sdlf_node sdlf_conv_transpose2d(sdlf_model *model, sdlf_node x, const sdlf_conv_transpose2d_options *options);

/* All axes from `axis` on normalised together. Parameters weight and bias of these axes' shape. Outputs 1 and 2 are the means
 * and the inverse deviations. */
typedef struct sdlf_layer_norm_options {
    const char *name;
    int axis;      /* default -1 */
    float epsilon; /* default 1e-5 */
} sdlf_layer_norm_options;
sdlf_node sdlf_layer_norm(sdlf_model *model, sdlf_node x, const sdlf_layer_norm_options *options);

/* Groups of channels of (N,C,...) normalised. Parameters weight and bias (C). */
typedef struct sdlf_group_norm_options {
    const char *name;
    int groups;    /* default: as many as channels, which is instance normalisation */
    float epsilon; /* default 1e-5 */
} sdlf_group_norm_options;
sdlf_node sdlf_group_norm(sdlf_model *model, sdlf_node x, const sdlf_group_norm_options *options);

/* y = x / (bias + alpha mean of x^2 over `size` channels around)^beta, of (N,C,...). */
typedef struct sdlf_lrn_options {
    const char *name;
    int size;    /* required */
    float alpha; /* default 1e-4 */
    float beta;  /* default 0.75 */
    float bias;  /* default 1 */
} sdlf_lrn_options;
sdlf_node sdlf_lrn(sdlf_model *model, sdlf_node x, const sdlf_lrn_options *options);

/* The k largest along an axis, in order; output 1 has their indices, int64. */
typedef struct sdlf_top_k_layer_options {
    const char *name;
    int k;    /* required */
    int axis; /* default -1 */
    bool smallest;
} sdlf_top_k_layer_options;
sdlf_node sdlf_top_k(sdlf_model *model, sdlf_node x, const sdlf_top_k_layer_options *options);

/* Axes enlarged or shrunk; modes, coordinates and roundings as in <sdlf/operations/indexing.h>. */
typedef struct sdlf_resize_options {
    const char *name;
    sdlf_shape axes;   /* left empty: all from 2 on */
    sdlf_shape sizes;  /* of each of these axes; left empty: floor(scale times its size) */
    float scale;       /* what they are stretched by; with sizes, 0 stands for size / size before */
    int mode;          /* sdlf_resample_mode: nearest, linear, cubic */
    int coordinates;   /* sdlf_resample_coordinates */
    int rounding;      /* sdlf_resample_rounding */
    float cubic;       /* default -0.75 */
    float start, end;  /* of a crop, as parts of the axes; default 0 and 1 */
    bool extrapolates; /* what lies outside is `outside` */
    float outside;
    bool antialias, exclude_outside;
} sdlf_resize_options;
sdlf_node sdlf_resize(sdlf_model *model, sdlf_node x, const sdlf_resize_options *options);

/* A value of the network's own, its parameter "value"; zero until somebody sets it. No input. */
typedef struct sdlf_value_options {
    const char *name;
    sdlf_shape shape; /* all of it: there is no batch */
    int dtype;        /* 0 the network's float, 1 int32, 2 int64, 3 uint8, 4 int8, 5 bool */
    bool trainable;   /* floats alone */
} sdlf_value_options;
sdlf_node sdlf_value(sdlf_model *model, const sdlf_value_options *options);

/* Another element type; numbered as above. */
typedef struct sdlf_cast_options {
    const char *name;
    int dtype;
} sdlf_cast_options;
sdlf_node sdlf_cast(sdlf_model *model, sdlf_node x, const sdlf_cast_options *options);

/* Axis i of the output is axis order[i] of the input, the batch included; left empty, the axes are reversed. */
typedef struct sdlf_transpose_options {
    const char *name;
    sdlf_shape order;
} sdlf_transpose_options;
sdlf_node sdlf_transpose(sdlf_model *model, sdlf_node x, const sdlf_transpose_options *options);

/* Elements start, start + step, ... before end along each of the axes; negative ones count from the end, as in numpy. */
typedef struct sdlf_slice_options {
    const char *name;
    sdlf_shape axes, start, end;
    sdlf_shape step; /* left empty: 1 */
} sdlf_slice_options;
sdlf_node sdlf_slice(sdlf_model *model, sdlf_node x, const sdlf_slice_options *options);

/* So many elements of `value` before and behind each axis, the batch first; negative: so many fewer. */
typedef struct sdlf_pad_options {
    const char *name;
    sdlf_shape before, after;
    float value;
    int mode; /* 0 constant, 1 edge, 2 reflect, 3 wrap */
} sdlf_pad_options;
sdlf_node sdlf_pad(sdlf_model *model, sdlf_node x, const sdlf_pad_options *options);

/* Broadcast with a shape, the batch included. */
typedef struct sdlf_expand_options {
    const char *name;
    sdlf_shape shape;
} sdlf_expand_options;
sdlf_node sdlf_expand(sdlf_model *model, sdlf_node x, const sdlf_expand_options *options);

/* So many times along each axis, the batch first. */
typedef struct sdlf_tile_options {
    const char *name;
    sdlf_shape repeats;
} sdlf_tile_options;
sdlf_node sdlf_tile(sdlf_model *model, sdlf_node x, const sdlf_tile_options *options);

/* Blocks of block x block pixels from block^2 channels, and back. */
typedef struct sdlf_depth_to_space_options {
    const char *name;
    int block;
    int mode; /* 0 dcr: block before channel; 1 crd: channel before block */
} sdlf_depth_to_space_options;
sdlf_node sdlf_depth_to_space(sdlf_model *model, sdlf_node x, const sdlf_depth_to_space_options *options);
typedef sdlf_depth_to_space_options sdlf_space_to_depth_options;
sdlf_node sdlf_space_to_depth(sdlf_model *model, sdlf_node x, const sdlf_space_to_depth_options *options);

/* Along axis 1 of (N,C,...) by default; negative axes count from the end. */
typedef struct sdlf_softmax_options {
    const char *name;
    int axis; /* default 1 */
} sdlf_softmax_options;
sdlf_node sdlf_softmax(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_log_softmax(sdlf_model *model, sdlf_node x);

/* Mean cross-entropy of logits (N,C) against labels (N) int32. The output is the scalar loss; what a training plan
 * minimises. A trainer adds this layer itself to a network that ends in softmax or in logits. */
typedef struct sdlf_softmax_cross_entropy_options {
    const char *name;
    float smoothing; /* label smoothing, in [0, 1); default 0 */
} sdlf_softmax_cross_entropy_options;
sdlf_node sdlf_softmax_cross_entropy(sdlf_model *model, sdlf_node logits, sdlf_node labels,
                                     const sdlf_softmax_cross_entropy_options *options);
/* The same with weights (N): the sum of each row's loss times its weight, instead of the mean. Rows of weight 0 do not count:
 * a mask over labelled nodes is 1 / (their number) at each of them. */
sdlf_node sdlf_softmax_cross_entropy_weighted(sdlf_model *model, sdlf_node logits, sdlf_node labels, sdlf_node weights,
                                              const sdlf_softmax_cross_entropy_options *options);

#ifdef __cplusplus
}
#endif
#endif
