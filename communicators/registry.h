/* SPDX-License-Identifier: MIT */
/* The communicator classes of this build. */
#ifndef SDLF_COMMUNICATORS_REGISTRY_H
#define SDLF_COMMUNICATORS_REGISTRY_H

#include <sdlf/communicator.h>

#define SDLF_COMMUNICATOR(class) extern const sdlf_communicator_class class;
#include "communicators/list.h"
#undef SDLF_COMMUNICATOR

#endif
