/* SPDX-License-Identifier: MIT */
/* Layers of sequences: tokens, positions, attention. A sequence is (N,T,C): N samples, T positions in each, C numbers
 * at each. See layers.h for what holds for every layer.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: kept in the model (layers.h). */
#ifndef SDLF_LAYERS_SEQUENCES_H
#define SDLF_LAYERS_SEQUENCES_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row of the parameter weight (vocabulary,units) for each token: (N,...) to (N,...,units). Tokens are int32, int64,
 * or whole numbers in the network's floating type. One from -vocabulary to -1 counts from the end. Any other outside of
 * the vocabulary is refused where it is an input's (sdlf_plan_write), and gives zeros where the network computes it. No gradient passes to the tokens. Initialisation: normal with the deviation. */
typedef struct sdlf_embedding_options {
    const char *name;
    int vocabulary;    /* required */
    int units;         /* required */
    float deviation;   /* of the initial weights; default 1 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_embedding_options;
sdlf_node sdlf_embedding(sdlf_model *model, sdlf_node tokens, const sdlf_embedding_options *options);

/* Learned positions: y[n,t,c] = x[n,t,c] + weight[t,c], parameter weight (T,C). Initialisation: normal with the
 * deviation. */
typedef struct sdlf_position_embedding_options {
    const char *name;
    float deviation;   /* of the initial weights; default 0.02 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_position_embedding_options;
sdlf_node sdlf_position_embedding(sdlf_model *model, sdlf_node x, const sdlf_position_embedding_options *options);

/* Rotary positions (Su et al., "RoFormer", 2021) of (...,T,D), D even: with angles a[t,i] = t base^(-2i/D), i < D/2,
 * element i of each row is paired with element i + D/2: y[i] = x[i] cos a - x[i + D/2] sin a, y[i + D/2] = x[i + D/2]
 * cos a + x[i] sin a. */
typedef struct sdlf_rotary_embedding_options {
    const char *name;
    float base;        /* default 10000 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_rotary_embedding_options;
sdlf_node sdlf_rotary_embedding(sdlf_model *model, sdlf_node x, const sdlf_rotary_embedding_options *options);

/* Self-attention (Vaswani et al., "Attention is all you need", 2017) of x (N,T,C) with H heads of D = C / H numbers
 * each:
 * q, k, v = x in_proj_weight^T + in_proj_bias, cut in three and into heads; p = softmax over j of q[i] k[j] / sqrt(D) +
 * mask[i,j];
 * y = (p v, heads side by side) out_proj_weight^T + out_proj_bias. Parameters in_proj_weight (3C,C), in_proj_bias (3C),
 * out_proj_weight (C,C), out_proj_bias (C), laid out as in PyTorch's MultiheadAttention. Initialisation:
 * xavier_uniform, biases zero.
 *
 * The masked function takes a mask that broadcasts to (N,H,T,T): bool, true where i may look at j; or of the network's
 * floating type, added to the scores, with its gradient. Where a row may look at nothing, it looks at all alike. */
typedef struct sdlf_multi_head_attention_options {
    const char *name;
    int heads;         /* required; divides C */
    bool causal;       /* position i looks at positions up to i only */
    bool no_bias;      /* neither of the two */
    float dropout;     /* of the probabilities p, while training; in [0, 1) */
    bool rotary;       /* q and k are rotated as by rotary_embedding; D is even */
    float base;        /* of rotary; default 10000 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_multi_head_attention_options;
sdlf_node sdlf_multi_head_attention(sdlf_model *model, sdlf_node x, const sdlf_multi_head_attention_options *options);
sdlf_node sdlf_multi_head_attention_masked(sdlf_model *model, sdlf_node x, sdlf_node mask,
                                           const sdlf_multi_head_attention_options *options);

/* Recurrent layers: (N,T,C) to the states (N,T,H), or with `last` to the state behind the last step, (N,H); H units,
 * the state before the first step is 0, or with the functions _from a value that broadcasts to (N,H). Steps are 1024 at most;
 * calculators without an operation for all of them have them unrolled. Parameters weight_ih (G H,C), weight_hh (G
 * H,H), bias_ih and bias_hh (G H) with the G gates one below the other, laid out as in PyTorch's LSTM and GRU, whose
 * names end in "_l0". Initialisation: uniform in +-1 / sqrt(H).
 *
 * With a = weight_ih x + bias_ih of a position and b = weight_hh h + bias_hh of the state before it:
 * lstm (Hochreiter and Schmidhuber, "Long short-term memory", 1997), gates i, f, g, o: i, f, o = sigmoid(a + b), g =
 * tanh(a + b),
 * c = f c + i g, h = o tanh(c); c begins as 0, or c0.
 * gru (Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014), gates r, z, n: r, z = sigmoid(a
 * + b),
 * n = tanh(a + r b), h = (1 - z) n + z h.
 *
 * Several layers are several nodes; both directions are one node each, of which one has `reverse`, and concat. */
typedef struct sdlf_recurrent_options {
    const char *name;
    int units;         /* H; required */
    bool last;         /* the output is the state behind the last step only */
    bool reverse;      /* steps go from position T - 1 to 0; the state behind each stands at its position */
    bool no_bias;      /* neither of the two */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_recurrent_options;
sdlf_node sdlf_lstm(sdlf_model *model, sdlf_node x, const sdlf_recurrent_options *options);
sdlf_node sdlf_lstm_from(sdlf_model *model, sdlf_node x, sdlf_node h0, sdlf_node c0,
                         const sdlf_recurrent_options *options);
sdlf_node sdlf_gru(sdlf_model *model, sdlf_node x, const sdlf_recurrent_options *options);
sdlf_node sdlf_gru_from(sdlf_model *model, sdlf_node x, sdlf_node h0, const sdlf_recurrent_options *options);

#ifdef __cplusplus
}
#endif

#endif
