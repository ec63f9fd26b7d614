/* SPDX-License-Identifier: MIT */
/* Layers for sequences: embeddings, positions, attention, recurrent layers. A sequence is (N,T,C): N samples, T
 * positions, C channels. layers.h describes what is common to all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
#ifndef SDLF_LAYERS_SEQUENCES_H
#define SDLF_LAYERS_SEQUENCES_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Look up a row of the parameter weight (vocabulary,units) for each token: (N,...) to (N,...,units). Tokens are int32, int64, or whole numbers in
 * the network's floating type; those from -vocabulary to -1 count from the end. Any other outside the vocabulary is an error in a network input
 * (sdlf_plan_write), and gives zeros if the network computed it. No gradient passes to the tokens. Initialisation: normal with `deviation`. */
typedef struct sdlf_embedding_options {
    const char *name;
    int vocabulary;    /* required */
    int units;         /* required */
    float deviation;   /* standard deviation of the initial weights; default 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_embedding_options;
sdlf_node sdlf_embedding(sdlf_model *model, sdlf_node tokens, const sdlf_embedding_options *options);

/* Learned positions: y[n,t,c] = x[n,t,c] + weight[t,c], with parameter weight (T,C). Initialisation: normal with
 * `deviation`. */
typedef struct sdlf_position_embedding_options {
    const char *name;
    float deviation;   /* standard deviation of the initial weights; default 0.02 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_position_embedding_options;
sdlf_node sdlf_position_embedding(sdlf_model *model, sdlf_node x, const sdlf_position_embedding_options *options);

/* Rotary positions (Su et al., "RoFormer", 2021) for (...,T,D), D even. Element i < D/2 of each row forms a pair with
 * element i + D/2, rotated by a[t,i] = t base^(-2i/D):
 * y[i] = x[i] cos a - x[i + D/2] sin a, y[i + D/2] = x[i + D/2] cos a + x[i] sin a. */
typedef struct sdlf_rotary_embedding_options {
    const char *name;
    float base;        /* default 10000 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_rotary_embedding_options;
sdlf_node sdlf_rotary_embedding(sdlf_model *model, sdlf_node x, const sdlf_rotary_embedding_options *options);

/* Self-attention (Vaswani et al., "Attention is all you need", 2017) on x (N,T,C) with H heads of D = C / H channels:
 *   q, k, v = x in_proj_weight^T + in_proj_bias, split in three and into heads
 *   p = softmax over j of q[i] k[j] / sqrt(D) + mask[i,j]
 *   y = (p v, heads concatenated) out_proj_weight^T + out_proj_bias
 * Parameters in_proj_weight (3C,C), in_proj_bias (3C), out_proj_weight (C,C) and out_proj_bias (C) have the layout of
 * PyTorch's MultiheadAttention. Initialisation: xavier_uniform, biases zero.
 *
 * The masked function takes a mask that broadcasts to (N,H,T,T): bool, true where i may attend to j, or the network's
 * floating type, which is added to the scores and receives a gradient. A row that is masked everywhere attends to all
 * positions equally. */
typedef struct sdlf_multi_head_attention_options {
    const char *name;
    int heads;         /* required; divides C */
    bool causal;       /* position i attends only to positions up to i */
    bool no_bias;      /* omit both biases */
    float dropout;     /* of the probabilities p, in training; in [0, 1) */
    bool rotary;       /* rotate q and k as in rotary_embedding; D must be even */
    float base;        /* for rotary; default 10000 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_multi_head_attention_options;
sdlf_node sdlf_multi_head_attention(sdlf_model *model, sdlf_node x, const sdlf_multi_head_attention_options *options);
sdlf_node sdlf_multi_head_attention_masked(sdlf_model *model, sdlf_node x, sdlf_node mask,
                                           const sdlf_multi_head_attention_options *options);

/* Recurrent layers with H units: (N,T,C) to the states of all steps (N,T,H), or with `last` to the final state (N,H).
 * The initial state is 0, or in the _from functions a value that broadcasts to (N,H). At most 1024 steps. Calculators
 * without an operation for a whole sequence run the steps unrolled. Parameters weight_ih (G H,C), weight_hh (G H,H),
 * bias_ih and bias_hh (G H) stack the G gates; the layout is that of PyTorch's LSTM and GRU, whose names end in "_l0".
 * Initialisation: uniform in +-1 / sqrt(H).
 *
 * With a = weight_ih x + bias_ih and b = weight_hh h + bias_hh, where h is the previous state:
 *   lstm (Hochreiter and Schmidhuber, "Long short-term memory", 1997), gates i, f, g, o:
 *     i, f, o = sigmoid(a + b), g = tanh(a + b), c = f c + i g, h = o tanh(c)
 *     c starts as 0 or c0.
 *   gru (Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014), gates r, z, n:
 *     r, z = sigmoid(a + b), n = tanh(a + r b), h = (1 - z) n + z h
 *
 * For several layers, chain nodes. For a bidirectional layer, concatenate the outputs of two nodes, one of them with
 * `reverse`. */
typedef struct sdlf_recurrent_options {
    const char *name;
    int units;         /* H; required */
    bool last;         /* return only the state after the last step */
    bool reverse;      /* run from position T - 1 to 0; the state after a step is stored at that step's position */
    bool no_bias;      /* omit both biases */
    void *reserved[4]; /* zero; reserved for new members */
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
