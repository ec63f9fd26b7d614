/* SPDX-License-Identifier: MIT */
/* Functions of a program that are called like functions inside the library: the program links, and each calls its own.
 * Beside consumer.c, whose network has steps that call the library's. */
#include <stdio.h>
#include <stdlib.h>

int c_open(void);
int model_find_layer(const char *name);

int c_open(void)
{
    fputs("c_open: the library has called the program's function\n", stderr);
    abort();
}

int model_find_layer(const char *name)
{
    fprintf(stderr, "model_find_layer %s: the library has called the program's function\n", name);
    abort();
}
