/* SPDX-License-Identifier: MIT */
/* Which convolutions the engine supports, and what workspace they need (engine/conv2d.h). */
#include "calculators/cuda/engine/conv2d.h"

#include "calculators/cuda/engine/groups.h"
#include "calculators/cuda/engine/pack.h"

static bool fits_box(int64_t corner)
{
    return corner >= -128 && corner <= 127;
}

static bool takes(const cuda_calculator *calculator, const engine_conv2d *conv)
{
    const int64_t most = INT32_MAX - 256, in[2] = {conv->h, conv->w}, out[2] = {conv->p, conv->q};
    const int size[2] = {conv->r, conv->s};
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (int64_t)conv->dilation[i] * (size[i] - 1);
        if (conv->stride[i] > 8 || reach > 255) return false;
        if (conv->c < 8) { /* packed together with its padding */
            if (!fits_box(-reach)) return false;
            continue;
        }
        if (!fits_box(-conv->padding[i])) return false;
        if (!fits_box((out[i] - 1) * conv->stride[i] - conv->padding[i] - (in[i] - 1))) return false;
    }
    const int64_t x = conv->n * conv->h * conv->w, y = conv->n * conv->p * conv->q;
    return engine_is_there(calculator) && conv->k % 8 == 0 && x > 0 && y > 0 && x <= most && y <= most && conv->c > 0 &&
           conv->k > 0 && conv->c <= most && conv->k <= most && (conv->c >= 8 || engine_packed_x(conv).lines > 0) &&
           (!engine_is_grouped(conv) || engine_takes_groups(conv));
}

bool engine_takes_forward(const cuda_calculator *calculator, const engine_conv2d *conv)
{
    return takes(calculator, conv);
}

bool engine_takes_backward_input(const cuda_calculator *calculator, const engine_conv2d *conv)
{
    const int size[2] = {conv->r, conv->s};
    for (int i = 0; i < 2; i++) {
        if (conv->stride[i] > 2 || (conv->stride[i] > 1 && conv->dilation[i] > 1)) return false;
        if (!fits_box(conv->padding[i] - (int64_t)conv->dilation[i] * (size[i] - 1))) return false;
    }
    return takes(calculator, conv) && conv->c % 8 == 0 && conv->r * (int64_t)conv->s <= 65535;
}

bool engine_takes_backward_weights(const cuda_calculator *calculator, const engine_conv2d *conv)
{
    return engine_takes_forward(calculator, conv);
}

/* ---- workspace ---- */

int64_t engine_forward_workspace(const engine_conv2d *conv)
{
    if (engine_is_grouped(conv)) return conv->prepared != NULL ? 0 : engine_block_weights_bytes(conv, false);
    return engine_pack_bytes(conv, engine_packed_x(conv)) +
           (conv->prepared != NULL ? 0 : engine_pack_bytes(conv, engine_packed_weights(conv)));
}

int64_t engine_backward_input_workspace(const engine_conv2d *conv)
{
    if (engine_is_grouped(conv)) return conv->prepared != NULL ? 0 : engine_block_weights_bytes(conv, true);
    return conv->dtype == SDLF_FLOAT32 ? conv->k * conv->r * conv->s * conv->c * (int64_t)sizeof(float) : 0;
}
