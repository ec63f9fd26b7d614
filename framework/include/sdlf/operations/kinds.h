/* SPDX-License-Identifier: MIT */
/* The contract of each kind of operation: what it computes, on which operands. Each is stated once, here or in the
 * header of its family, which the section names.
 *
 * Rules for every kind, unless its contract says otherwise:
 * - Operands are dense and row-major without gaps. Outputs are overwritten, never accumulated into.
 * - "Or channels last" (see tensor.h) in a contract: either all or none of its activations (N,C,H,W) are, except those
 *   that it lets stay row-major. Weights are row-major in either case. Not every calculator has such kernels.
 * - An operand may begin at any multiple of its element size (views do). Tensors allocated by plans and
 *   sdlf_tensor_create, and workspaces, are 64-byte aligned.
 * - Outputs do not overlap inputs. "y may alias x" allows the same memory, element for element.
 * - "?" marks an optional operand: a zeroed tensor (dtype SDLF_NONE) when absent. "!" marks an output that is read and
 *   updated in place.
 * - If a kind's class permits, operands may be stored in 16 bits or in float32 channels last: operation.h, "storage".
 * - T is float32 or float64, the same type throughout an operation. Forward kinds exist for both; backward and update
 *   kinds exist for both on `reference` and at least for float32 elsewhere.
 * - Scalars that change from step to step (the step number, the learning rate) are operands in the calculator's memory,
 *   so that a recorded sequence can be replayed without being rebuilt.
 *
 * Letters: N batch, C channels, H W height and width, K output channels, R S kernel height and width, P Q output height
 * and width, G groups.
 *
 * Threads: declarations only.
 * Ownership: an operation borrows the memory of its operands.
 * Errors: a kernel fails only because of its device; its operands have been checked. */
#ifndef SDLF_OPERATIONS_KINDS_H
#define SDLF_OPERATIONS_KINDS_H

typedef enum sdlf_operation_kind {
    /* ---- memory ---- */

    /* fill: set every element of y (any dtype) to fill.value, converted as by sdlf_convert.
     *   in: -   out: y */
    SDLF_FILL = 0,

    /* copy: y = x element by element. x and y have the same shape, any strides and any two dtypes (converted as by
     * sdlf_convert). With views this does concatenation, slicing, transposition and padding.
     *   in: x   out: y */
    SDLF_COPY,

    /* gather_batch: y[n] = (x[index[n]] - mean) * scale, after the augmentation in gather.augment. mean and scale are
     * gather.mean and gather.scale or, if gather.channels has as many channels as axis 1, those of the channel. If x
     * and y are integers, nothing is normalised or augmented. Before all this, gather.automatic changes images
     * (M,C,H,W) of bytes, which requires epoch and a workspace.
     *   in: x (M, ...) uint8 or T, index (N) int32, epoch? (1) int64, number? (M) int32   out: y (N, ...)
     * The caller ensures that index[n] is in [0, M). Augmentation requires x (M,C,H,W) and epoch; image i of the data
     * set is augmented in the same way in whichever batch it is drawn: see sdlf_augmentation. If x is only a part of
     * the data set, number[i] is the index of x[i] in the data set. */
    SDLF_GATHER_BATCH,

    /* next_batch: the first operation of a training step that draws its own batch. With c = cursor[0] before:
     * index[n] = order[c N + n], rate = rates[c], step = first[0] + c, batch_labels[n] = labels[index[n]]; then
     * cursor[0] = c + 1. The caller ensures that c < L, (c + 1) N <= M and index[n] is within labels, which is present
     * if and only if batch_labels is.
     *   in: order (M) int32, rates (L) T, first (1) int64, labels? (any count) int32
     *   out: cursor! (1) int64, index (N) int32, rate (1) T, step (1) int64, batch_labels? (N) int32 */
    SDLF_NEXT_BATCH,

    /* shuffle: the order in which an epoch draws its samples: 0 .. M - 1, sorted by the 64-bit keys word[1] 2^32 + word[0] of
     * Philox(shuffle.seed, number, SDLF_STREAM_SHUFFLE, low half of epoch[0]), ties by number (see sdlf_shuffle_order).
     *   in: epoch (1) int64   out: order (M) int32 */
    SDLF_SHUFFLE,

    /* ---- matrix multiplication and reduction ---- */

    /* gemm: c = act(alpha * op(a) op(b) + bias + residual); op transposes if gemm.transpose_a / transpose_b is set.
     *   in: a (m,k) or (k,m) if transposed, b (k,n) or (n,k), bias? (n), residual? (m,n), scale? (n,blocks) float32,
     *       zero? (n,blocks) float32   out: c (m,n)
     * 2 m n k FLOPs. c may alias residual. If k = 0 the matrix product is 0.
     * With scale, b holds 8-bit or 4-bit integers: see operations/quantization.h. */
    SDLF_GEMM,

    /* spmm_csr: y = f(a x + bias) with a sparse matrix a (see tensor.h): y[r,j] = f(bias[j] + sum of a[r,c] x[c,j] over the
     * stored elements of row r); an empty row has the sum 0. f is the activation or, if spmm.log_softmax is set (and there
     * is no activation), log_softmax along j. The gradient with respect to x is this operation with the transpose of a.
     *   in: a (R,C) csr T, x (C,F), bias? (F)   out: y (R,F)
     * 2 E F FLOPs for E elements. Elements of a row are added in an order that does not depend on the thread count. */
    SDLF_SPMM_CSR,

    /* reduce: y[o,i] = sum | mean | max | sum of squares | min | product over j of x[o,j,i], where reduce.axis names j's axis and o, i
     * are the flattened axes before and after it. The order of summation does not depend on the thread count.
     *   in: x (...)   out: y (x's shape without the axis, or with 1 there) */
    SDLF_REDUCE,

    /* add: y = act(a + b), equal shapes. y may alias a or b.
     *   in: a, b   out: y */
    SDLF_ADD,

    /* ---- convolution: cross-correlation, as in every deep-learning framework ---- */

    /* conv2d_forward: y[n,k,p,q] = act(bias[k] + residual[n,k,p,q] + sum over c,r,s of
     *   x[n, g C/G + c, p stride_h + r dilation_h - padding_top, q stride_w + s dilation_w - padding_left] w[k,c,r,s])
     * with g = k / (K/G), c < C/G, and x = 0 outside. P = (H + top + bottom - dilation_h (R - 1) - 1) / stride_h + 1.
     *   in: x (N,C,H,W), w (K,C/G,R,S), bias? (K), residual? (N,K,P,Q)   out: y (N,K,P,Q)
     * 2 N K P Q (C/G) R S FLOPs. y may alias residual. Row-major or channels last; x may stay row-major when the others
     * are channels last. Infinities and NaN in x may reach neighbouring outputs, also of other groups: kernels multiply
     * them by zeros. */
    SDLF_CONV2D_FORWARD,

    /* conv2d_backward_input (dgrad): dx = input gradient of that sum + residual (from other readers of x), which dx may alias.
     *   in: dy (N,K,P,Q), w (K,C/G,R,S), residual? (N,C,H,W)   out: dx (N,C,H,W) */
    SDLF_CONV2D_BACKWARD_INPUT,

    /* conv2d_backward_weights (wgrad): dw and db; db[k] = sum over n,p,q of dy.
     *   in: x (N,C,H,W), dy (N,K,P,Q)   out: dw (K,C/G,R,S), db? (K) */
    SDLF_CONV2D_BACKWARD_WEIGHTS,

    /* ---- pooling ---- */

    /* max_pool2d_forward: y[n,c,p,q] = act(max over the window). Padding is minus infinity; NaN propagates. Padding is
     * smaller than the window, so every window contains at least one element. Row-major or channels last. `mask` holds
     * one byte per y for the backward pass: bit r * window_w + s is set if window position (r, s) attains the maximum
     * and act'(y) = 1; with SDLF_TIES_FIRST only for the first such position. No bit is set if y is NaN. With a mask,
     * operands are row-major, and windows have at most 8 positions, no dilation and no padding, and do not overlap
     * (stride = window).
     *   in: x (N,C,H,W)   out: y (N,C,P,Q), mask? (N,C,P,Q) uint8 */
    SDLF_MAX_POOL2D_FORWARD,

    /* max_pool2d_backward: dx = sum of dy times the element's share over the windows that contain it. If several inputs
     * of a window tie for the maximum, the gradient is shared equally among them (SDLF_TIES_SHARE) or goes to the first
     * in row-major order (SDLF_TIES_FIRST, as in PyTorch). With the forward pass's mask, x and y are absent; the marked
     * positions share the gradient, which thereby includes act'.
     *   in: x? (N,C,H,W), y? (N,C,P,Q), dy (N,C,P,Q), mask? (N,C,P,Q) uint8   out: dx (N,C,H,W) */
    SDLF_MAX_POOL2D_BACKWARD,

    /* avg_pool2d_forward: the mean over the window; divides by R S if pool2d.count_padding, else by the number of
     * positions inside the input. Row-major or channels last.
     *   in: x (N,C,H,W)   out: y (N,C,P,Q) */
    SDLF_AVG_POOL2D_FORWARD,
    /*   in: dy (N,C,P,Q)   out: dx (N,C,H,W) */
    SDLF_AVG_POOL2D_BACKWARD,

    /* global_avg_pool2d_forward: y[n,c] = mean over h,w. Row-major or channels last.
     *   in: x (N,C,H,W)   out: y (N,C,1,1) */
    SDLF_GLOBAL_AVG_POOL2D_FORWARD,
    /*   in: dy (N,C,1,1)   out: dx (N,C,H,W) */
    SDLF_GLOBAL_AVG_POOL2D_BACKWARD,

    /* ---- elementwise ---- */

    /* activation_forward: y = f(x), a function of elementwise.h. y may alias x.
     *   in: x   out: y (x's shape) */
    SDLF_ACTIVATION_FORWARD,

    /* activation_backward: dx = dy f'(x), with f' computed from v: the forward OUTPUT y, or the input x if
     * sdlf_activation_reads_input says so. dx may alias dy.
     *   in: v, dy   out: dx */
    SDLF_ACTIVATION_BACKWARD,

    /* dropout_forward: y = x m / (1 - p), with m = 0 with probability p, else 1. Element e, counted from dropout.first, is dropped if its
     * uniform number (random.h; stream = dropout.stream, step = the low half of `step`) is below p. y may alias x.
     *   in: x, step (1) int64   out: y */
    SDLF_DROPOUT_FORWARD,
    /* dropout_backward: dx = dy m / (1 - p) with the same m, generated again. dx may alias dy.
     *   in: dy, step (1) int64   out: dx */
    SDLF_DROPOUT_BACKWARD,

    /* ---- normalisation ---- */

    /* batch_norm2d_forward (training): with mean and biased variance v over N,H,W of each channel,
     * y = act((x - mean) / sqrt(v + epsilon) scale + shift + residual); saves mean and 1 / sqrt(v + epsilon); updates
     * running = (1 - momentum) running + momentum (mean; v n / (n - 1), n = N H W; v itself if n = 1).
     * x is (N,C,H,W) or (N,C). y may alias residual.
     *   in: x, scale (C), shift (C), residual? (x's shape)
     *   out: y, saved_mean (C), saved_inverse_std (C), running_mean! (C), running_variance! (C) */
    SDLF_BATCH_NORM2D_FORWARD,

    /* batch_norm2d_infer: y = act((x - mean) / sqrt(variance + epsilon) scale + shift). y may alias x.
     *   in: x, scale (C), shift (C), mean (C), variance (C)   out: y */
    SDLF_BATCH_NORM2D_INFER,

    /* batch_norm2d_backward: with xhat = (x - mean) inverse_std and g = dy act', where act' is computed from the forward output y:
     * dshift = sum g; dscale = sum g xhat; dx = scale inverse_std (g - dshift / n - xhat dscale / n); dresidual = g. y, shift or both
     * are present if and only if there is an activation; without y, it is recomputed as act(scale xhat + shift), rounded to x's type.
     * If act' depends on act's input (sdlf_activation_reads_input), only shift is present; that input is scale xhat + shift, not rounded.
     *   in: x, scale (C), saved_mean (C), saved_inverse_std (C), dy, y? (x's shape), shift? (C)
     *   out: dx?, dscale (C), dshift (C), dresidual? (x's shape) */
    SDLF_BATCH_NORM2D_BACKWARD,

    /* ---- softmax and loss ---- */

    /* softmax_forward: along softmax.axis, y = exp(x - max) / sum exp(x - max). y may alias x. In softmax, log_softmax and
     * softmax_cross_entropy, a row is all NaN if it contains a NaN or plus infinity, or only minus infinities; otherwise minus
     * infinity has the probability 0.   in: x   out: y */
    SDLF_SOFTMAX_FORWARD,
    /* softmax_backward: dx = y (dy - sum y dy). dx may alias dy.   in: y, dy   out: dx */
    SDLF_SOFTMAX_BACKWARD,
    /* log_softmax_forward: y = x - max - log sum exp(x - max). y may alias x.   in: x   out: y */
    SDLF_LOG_SOFTMAX_FORWARD,
    /* log_softmax_backward: dx = dy - exp(y) sum dy. dx may alias dy.   in: y, dy   out: dx */
    SDLF_LOG_SOFTMAX_BACKWARD,

    /* softmax_cross_entropy_forward: p = softmax(logits); with targets t = (1 - smoothing) onehot(label) + smoothing / C,
     * loss = mean over N of -sum t log p. metrics! += (sum of the N losses, number of rows whose largest logit (the first
     * of equal ones) is the label's, N). A label outside [0, C) makes the loss NaN; whether a row with NaN counts as correct is
     * unspecified. dlogits = (p - t) dloss / N is present if and only if dloss is: forward and backward pass fused.
     * With weights w, loss is the sum over N of w[n] (-sum t log p) instead of the mean, and dlogits = (p - t) dloss w[n].
     * Rows of weight 0 are ignored: in the metrics (whose losses are not weighted), even if their label is invalid; their
     * gradient is 0. As a mask, use w = 1 / (number of rows that count).
     *   in: logits (N,C), labels (N) int32, dloss? (1) T, weights? (N)
     *   out: p (N,C), loss (1) T, metrics!? (3) float64, dlogits? (N,C) */
    SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD,

    /* softmax_cross_entropy_backward: dlogits = (p - t) dloss / N; with weights (p - t) dloss w[n], or 0 if w[n] is 0.
     *   in: p (N,C), labels (N) int32, dloss (1) T, weights? (N)   out: dlogits (N,C) */
    SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD,

    /* ---- two operands, broadcast ----
     * a, b and y have the same shape; a and b may have any strides. A stride of 0 repeats an element along an axis: that
     * is how shapes are broadcast. */

    /* binary: y = a op b, a function of elementwise.h: arithmetic on T, int32, int64, uint8 or int8 gives that type;
     * comparisons of these and of bool give bool; logic on bool gives bool. One of a and b may be absent and is then
     * binary.scalar. y may alias a or b if that is row-major.
     *   in: a?, b?   out: y */
    SDLF_BINARY,

    /* binary_backward: da = dy times the derivative with respect to a; db likewise
     * for b. Both have y's shape: they are not yet summed over broadcast axes.
     *   in: a? T, b? T, dy T   out: da? T, db? T */
    SDLF_BINARY_BACKWARD,

    /* select: y = condition ? a : b; an absent one counts as 0. Any single dtype.
     *   in: condition bool, a?, b?   out: y */
    SDLF_SELECT,

    /* ---- along an axis: x seen as (outer, L, inner); options in indexing.h ---- */

    /* arg_reduce: y[o,i] = index j of the largest (or smallest) x[o,j,i]. NaN counts as larger (or smaller) than any.
     *   in: x T   out: y int64 (x's shape without the axis, or with 1 there) */
    SDLF_ARG_REDUCE,

    /* gather: y[o,m,i] = x[o, index[m], i], with m over all of index. A negative index counts from the end; outside
     * [-L, L), y is 0. Any single dtype.
     *   in: x, index (any shape) int32 or int64   out: y (x's shape, its axis replaced by index's shape) */
    SDLF_GATHER,

    /* gather_backward: dx[o,l,i] = sum of dy[o,m,i] over every m that was gathered from l, in ascending order.
     *   in: dy T, index int32 or int64   out: dx T */
    SDLF_GATHER_BACKWARD,

    /* top_k: the K largest (or smallest) of x[o,0..L,i], sorted, ties by index, and their indices. NaN counts as larger
     * (or smaller) than all others. K <= L is y's size along the axis.
     *   in: x T   out: y T, index int64 */
    SDLF_TOP_K,

    /* resample: y[o,j,i] = weighted sum of some x[o,l,i] around the position of j, for upscaling, downscaling and padding
     * along an axis. Weights add up to 1. Modes that select one element support any single dtype.
     *   in: x T   out: y (x's shape except for the axis) T */
    SDLF_RESAMPLE,

    /* resample_backward: dx[o,l,i] = sum over j of dy[o,j,i] times the weight of l in y[j].   in: dy T   out: dx T */
    SDLF_RESAMPLE_BACKWARD,

    /* ---- matrices and rows ---- */

    /* matmul: y = a b for every matrix of a batch (...), of any number of axes. a and b may have any strides along these,
     * but each of their matrices is row-major. a is (...,k,m) if matmul.transpose_a, b is (...,n,k) if transpose_b.
     *   in: a (...,m,k) T, b (...,k,n) T   out: y (...,m,n) T.   2 m n k FLOPs per matrix. */
    SDLF_MATMUL,

    /* normalize_forward: x consists of rows of normalize.length consecutive elements. With the mean
     * and the biased variance v of the row, and channel c = e / normalize.inner mod C of element e:
     * y[e] = (x[e] - mean) / sqrt(v + epsilon) scale[c] + shift[c]. This covers layer (inner 1, length
     * C), instance (inner = length = H W) and group normalisation. length is a multiple of inner.
     *   in: x T, scale? (C), shift? (C)   out: y (x's shape), mean (rows), inverse_std (rows) */
    SDLF_NORMALIZE_FORWARD,

    /* normalize_backward: with g = dy scale and xhat = (x - mean) inverse_std: dx = inverse_std (g - mean of g - xhat mean of
     * g xhat) over the row; dscale[c] = sum dy xhat and dshift[c] = sum dy over the elements of channel c.
     *   in: x, scale? (C), mean (rows), inverse_std (rows), dy   out: dx?, dscale? (C), dshift? (C) */
    SDLF_NORMALIZE_BACKWARD,

    /* ---- random ---- */

    /* random_uniform: y[e] = low + (high - low) u(e), random.h's uniform with random.seed, random.stream, step 0.
     * Computed in float32 (as low + (high - low) * u, each operation rounded), then converted.   in: -   out: y float */
    SDLF_RANDOM_UNIFORM,

    /* random_normal: Box-Muller on pairs of words (w0, w1), (w2, w3) of a group: with u1 = (w0 + 1) 2^-32 and
     * u2 = w1 2^-32, the two numbers are mean + deviation sqrt(-2 ln u1) (cos, sin)(2 pi u2), in float64, then converted.
     *   in: -   out: y float */
    SDLF_RANDOM_NORMAL,

    /* ---- optimizer updates. g is the gradient; `rate` the learning rate. If scale? is present, g is first multiplied by
     * scale[0] (gradient clipping, loss scaling); a scale[0] of 0 skips the step: nothing changes, whatever g is. Weight decay of
     * sgd, rmsprop and adam: g += decay w. ---- */

    /* sgd_update: v = momentum v + g; w -= rate (nesterov ? g + momentum v : v). Without momentum v is absent and
     * w -= rate g.
     *   in: g, rate (1) T, scale? (1) T   out: w!, v!? */
    SDLF_SGD_UPDATE,

    /* adam_update: m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; t = step + 1;
     * w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon). With adam.decoupled (AdamW) the decay is
     * w -= rate decay w before the step, instead of g += decay w.
     *   in: g, rate (1) T, scale? (1) T, step (1) int64   out: w!, m!, v! */
    SDLF_ADAM_UPDATE,

    /* rmsprop_update: v = rho v + (1 - rho) g^2; u = g / (sqrt(v) + epsilon); b = momentum b + u; w -= rate (b or u).
     *   in: g, rate (1) T, scale? (1) T   out: w!, v!, b!? */
    SDLF_RMSPROP_UPDATE,

    /* clip_scale: scale = min(1, max_norm / (sqrt(sum of squares) + 1e-6)). With factor present, the squares are of gradients not
     * yet multiplied by it: scale = factor min(1, max_norm / (factor sqrt(sum of squares) + 1e-6)), or 0 if factor is 0.
     *   in: squares (any count) T, factor? (1) T   out: scale (1) T */
    SDLF_CLIP_SCALE,

    /* check_finite: found = 1 if an element of x is infinite or NaN; otherwise found is unchanged.   in: x T   out: found! (1) T */
    SDLF_CHECK_FINITE,

    /* loss_scale_update: dynamic loss scaling; operations/update.h has the formula.
     *   in: found (1) T, step (1) int64   out: state! (3) T, factor (1) T, done (1) int64 */
    SDLF_LOSS_SCALE_UPDATE,

    /* ---- quantised values: contracts in <sdlf/operations/quantization.h> ---- */

    SDLF_QUANTIZE,
    SDLF_DEQUANTIZE,
    SDLF_QUANTIZED_CONV2D,
    SDLF_QUANTIZED_ADD,
    SDLF_QUANTIZED_POOL2D,
    SDLF_INTEGER_MATMUL,
    SDLF_DYNAMIC_QUANTIZE,

    /* ---- attention: contracts in <sdlf/operations/attention.h> ---- */

    SDLF_ATTENTION_FORWARD,
    SDLF_ATTENTION_BACKWARD,

    /* ---- recurrent networks: contracts in <sdlf/operations/recurrent.h> ---- */

    SDLF_LSTM_FORWARD,
    SDLF_LSTM_BACKWARD,
    SDLF_GRU_FORWARD,
    SDLF_GRU_BACKWARD,

    /* ---- fused operations ---- */

    /* fused: what the operation's fusion computes, which also defines its operands and options: <sdlf/fusion.h>. */
    SDLF_FUSED,

    SDLF_OPERATION_COUNT
} sdlf_operation_kind;

#endif
