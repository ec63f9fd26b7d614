/* The operation classes, one file a family beside this header, gathered in framework/operation.c. */
#ifndef SDLF_FRAMEWORK_OPERATIONS_H
#define SDLF_FRAMEWORK_OPERATIONS_H

#include <sdlf/operation.h>

#endif
