/* SPDX-License-Identifier: MIT */
/* The operation classes, one file per family beside this header, collected in framework/operation.c. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_H
#define SDLF_FRAMEWORK_OPERATIONS_H

#include <sdlf/operation.h>

#define SDLF_OPERATION(kind, class) extern const sdlf_operation_class class;
#include "framework/operations/list.h"
#undef SDLF_OPERATION

#endif
