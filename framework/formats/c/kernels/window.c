/* SPDX-License-Identifier: MIT */
/* Where a window lies: x has channels x height x width, y has filters x rows x columns, first height, then width in
 * pairs. */
typedef struct window {
    int channels, height, width, filters, rows, columns, groups;
    int size[2], stride[2], dilation[2], padding[2];
} window;
