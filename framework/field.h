/* SPDX-License-Identifier: MIT */
/* Field tables (see layer.h): completing an options struct. */
#ifndef SDLF_FRAMEWORK_FIELD_H
#define SDLF_FRAMEWORK_FIELD_H

#include <sdlf/layer.h>

/* Fills in the defaults of `options`, whose members `fields` describes, and checks that each is in its range. A number
 * without a default whose minimum is above 0 is thereby required: left at zero it is out of range. NaN is in no
 * range.
 * Errors: SDLF_ERROR_ARGUMENT; the message names the field, the range and the value. */
sdlf_status sdlf_fields_complete(const sdlf_field *fields, void *options);

/* Compares the described members of two complete options. Returns the first that differs; NULL if none does. */
const sdlf_field *sdlf_fields_difference(const sdlf_field *fields, const void *a, const void *b);

#endif
