/* SPDX-License-Identifier: MIT */
/* Expansion and depthwise convolution of one panel of channels. See inverted_panel.h.
 *
 * A panel has so few channels that the lines of the expanded image that an output row reads (three, for a 3x3 window)
 * fit the first-level cache. They form a ring, with line h in slot h % lines, and include the padding of the image, so
 * that windows need no bounds checks. For each output row, the lines that its windows reach and those of the row before
 * did not are expanded, then filtered. A line of zeros serves those above and below the image.
 *
 * The last vector of all channels is aligned to the end of the channels, and overlaps the one before. */
#include "calculators/cpu/kernels/inverted_panel.h"

#include "calculators/cpu/kernels/inverted_lines.h"

inverted_block inverted_block_cpu(const convolution *v, int64_t c)
{
    inverted_block b = {.v = *v, .c = c};
    b.vectors = cpu_divide_up(v->groups, LANES);
    b.panels = cpu_max(1, cpu_divide_up(b.vectors, INVERTED_MOST_VECTORS));
    b.lines = cpu_min(v->h, (v->r - 1) * v->dilation[0] + 1);
    b.columns = (v->q - 1) * v->stride[1] + (v->s - 1) * v->dilation[1] + 1;
    b.left = cpu_min(v->before[1], b.columns);
    b.inside = cpu_min(v->w, b.columns - b.left);
    return b;
}

static int64_t start_of(const inverted_block *b, int64_t panel)
{
    return panel * b->vectors / b->panels;
}

/* The first channel of vector `index`. */
static int64_t channel_of(const inverted_block *b, int64_t index)
{
    return cpu_min(index * LANES, b->v.groups - LANES);
}

int64_t inverted_kept_size_cpu(const inverted_block *b)
{
    return (b->lines + 1) * b->columns * cpu_divide_up(b->vectors, b->panels) * LANES;
}

/* ---- weights: for each panel [c][channel], its bias, [r][s][channel], its bias ---- */

static int64_t rows_packed(const inverted_block *b)
{
    return (b->c > 0 ? b->c + 1 : 0) + b->v.r_s + 1;
}

int64_t inverted_packed_size_cpu(const inverted_block *b)
{
    return rows_packed(b) * b->vectors * LANES;
}

/* to [row][channel of the panel] = from [channel][row]; zeros if from is NULL. Returns the end. */
static element *pack_rows(element *to, const inverted_block *b, int64_t panel, const element *from, int64_t rows)
{
    int64_t start = start_of(b, panel), end = start_of(b, panel + 1);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t j = start; j < end; j++) {
            const element *channel = from ? from + channel_of(b, j) * rows + row : NULL;
            for (int64_t i = 0; i < LANES; i++) *to++ = channel ? channel[i * rows] : 0;
        }
    }
    return to;
}

void inverted_pack_cpu(element *packed, const inverted_block *b, const element *expand, const element *expand_bias,
                       const element *filters, const element *filter_bias)
{
    for (int64_t panel = 0; panel < b->panels; panel++) {
        if (b->c > 0) packed = pack_rows(packed, b, panel, expand, b->c);
        if (b->c > 0) packed = pack_rows(packed, b, panel, expand_bias, 1);
        packed = pack_rows(packed, b, panel, filters, b->v.r_s);
        packed = pack_rows(packed, b, panel, filter_bias, 1);
    }
}

/* ---- rows of outputs ---- */

static inverted_channels work_of(const inverted_block *b, int64_t panel)
{
    int64_t start = start_of(b, panel);
    inverted_channels p = {.block = b, .vectors = start_of(b, panel + 1) - start};
    p.width = p.vectors * LANES;
    p.expand = b->packed + start * LANES * rows_packed(b);
    p.expand_bias = p.expand + b->c * p.width;
    p.filters = b->c > 0 ? p.expand_bias + p.width : p.expand;
    p.filter_bias = p.filters + b->v.r_s * p.width;
    for (int j = 0; j < p.vectors; j++) p.channel[j] = channel_of(b, start + j);
    return p;
}

/* Clears the padding beside every line, and the line of zeros after them. */
static void clear_padding(const inverted_channels *p, element *kept)
{
    const inverted_block *b = p->block;
    int64_t right = b->columns - b->left - b->inside;
    for (int64_t i = 0; i < b->lines; i++, kept += b->columns * p->width) {
        memset(kept, 0, (size_t)(b->left * p->width) * sizeof *kept);
        memset(kept + (b->left + b->inside) * p->width, 0, (size_t)(right * p->width) * sizeof *kept);
    }
    memset(kept, 0, (size_t)(b->columns * p->width) * sizeof *kept);
}

int64_t inverted_panel_cpu(const inverted_block *b, int64_t panel, const element *x, element *kept, int64_t made,
                           int64_t first, int64_t last, element *y)
{
    const convolution *v = &b->v;
    const element *line[INVERTED_MOST_LINES];
    inverted_channels p = work_of(b, panel);
    if (made == INVERTED_NONE_MADE) clear_padding(&p, kept);
    for (int64_t row = first; row < last; row++, y += v->q * v->groups) {
        int64_t top = row * v->stride[0] - v->before[0], d = v->dilation[0];
        int64_t bottom = cpu_min(v->h, top + (v->r - 1) * d + 1);
        for (made = cpu_max(made, cpu_max(0, top)); made < bottom; made++) inverted_expand_line_cpu(&p, x, made, kept);
        for (int64_t r = 0; r < v->r; r++) {
            int64_t h = top + r * d, place = h >= 0 && h < v->h ? h % b->lines : b->lines;
            line[r] = kept + place * b->columns * p.width;
        }
        inverted_filter_line_cpu(&p, line, y);
    }
    return made;
}
