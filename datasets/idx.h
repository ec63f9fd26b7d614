/* The header of IDX files. */
#ifndef SDLF_DATASETS_IDX_H
#define SDLF_DATASETS_IDX_H

/* Bytes of an IDX header: magic, and four for each dimension. */
static inline int sdlf_idx_header_size(int rank)
{
    return 4 + 4 * rank;
}

#endif
