/* Options of the kinds that pick elements along one axis. <sdlf/operation.h> says what the kinds do with them. Everywhere x is
 * seen as (outer, L, inner), L being the axis that the options name. */
#ifndef SDLF_OPERATIONS_INDEXING_H
#define SDLF_OPERATIONS_INDEXING_H

#include <stdbool.h>

typedef struct sdlf_arg_reduce_options {
    int axis;
    bool smallest; /* the smallest element instead of the largest */
    bool last;     /* of equal ones the last instead of the first */
} sdlf_arg_reduce_options;

#endif
