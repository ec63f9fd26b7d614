/* SPDX-License-Identifier: MIT */
/* What jansson's values take in memory, estimated from a text before it is read. */
#ifndef SDLF_FRAMEWORK_JSON_COST_H
#define SDLF_FRAMEWORK_JSON_COST_H

/* Bytes that jansson allocates for a sign that begins something or stands between two, malloc's own share included. */
static inline int json_cost(char sign)
{
    switch (sign) {
    case '{': return 256; /* a table of eight */
    case '[': return 144; /* room for eight */
    case ':': return 112; /* a key */
    case ',': return 64;  /* a place, and a number in it */
    case '"': return 48;  /* half of a text */
    default: return 1;    /* its bytes */
    }
}

#endif
