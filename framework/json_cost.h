/* SPDX-License-Identifier: MIT */
/* Memory needed by jansson's values, estimated from a text before it is parsed. */
#ifndef SDLF_FRAMEWORK_JSON_COST_H
#define SDLF_FRAMEWORK_JSON_COST_H

/* Bytes that jansson allocates for a character that begins or separates something, including malloc's overhead. */
static inline int json_cost(char sign)
{
    switch (sign) {
    case '{': return 256; /* a table for eight */
    case '[': return 144; /* an array for eight */
    case ':': return 112; /* a key */
    case ',': return 64;  /* an element that is a number */
    case '"': return 48;  /* half of a string */
    default: return 1;    /* the character itself */
    }
}

#endif
