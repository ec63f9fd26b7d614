/* SPDX-License-Identifier: MIT */
/* The geometry of windows: x has channels x height x width, y has filters x rows x columns; pairs are height, then
 * width. */
typedef struct window {
    int channels, height, width, filters, rows, columns, groups;
    int size[2], stride[2], dilation[2], padding[2];
} window;
