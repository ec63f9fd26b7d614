/* SPDX-License-Identifier: MIT */
/* A few operations on shared operands, run in one launch and one by one, and compared. */
#ifndef SDLF_TESTS_KERNELS_SEQUENCE_H
#define SDLF_TESTS_KERNELS_SEQUENCE_H

#include "testing.h"

enum { SEQUENCE_OPERANDS = 360, SEQUENCE_OPERATIONS = 80 };

/* An operand and its initial contents. */
typedef struct sequence_operand {
    sdlf_dtype dtype;
    sdlf_shape shape;
    const void *from; /* NULL: random numbers, of float32 or bfloat16 */
    float scale;
    bool exact, written; /* compared bit for bit; compared at all */
    bool positive;       /* random numbers: at least 0 */
    sdlf_binding binding;
    void *found;
} sequence_operand;

/* A sequence on operands [0, operand_count); operations name them by their number in `buffer`. */
typedef struct sequence {
    sequence_operand operand[SEQUENCE_OPERANDS];
    int operand_count;
    sdlf_operation operation[SEQUENCE_OPERATIONS];
    int count;
} sequence;

/* Add an operand; or one of random numbers up to `scale`, which is written and compared. */
sdlf_tensor sequence_add(sequence *s, sequence_operand made);
sdlf_tensor sequence_numbers(sequence *s, sdlf_shape shape, float scale);

/* Run it `times` times in one launch, again so, and one by one, and check that the first two give the same bits and the
 * outputs match those of single operations. At least `least` operations must be launched together. */
void sequence_compare(const sequence *s, sdlf_calculator *calculator, int times, int least);

/* Run it one by one and check that operand `part` then equals operand `whole` from element `first` on. */
void sequence_compare_part(const sequence *s, sdlf_calculator *calculator, int whole, int64_t first, int part);

#endif
