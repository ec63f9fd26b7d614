/* SPDX-License-Identifier: MIT */
/* The optimizer classes; one file each beside this one. */
#ifndef SDLF_FRAMEWORK_OPTIMIZERS_H
#define SDLF_FRAMEWORK_OPTIMIZERS_H

#include <sdlf/optimizer.h>

extern const sdlf_optimizer_class sdlf_adam_class;
extern const sdlf_optimizer_class sdlf_adamw_class;
extern const sdlf_optimizer_class sdlf_lars_class;
extern const sdlf_optimizer_class sdlf_muon_class;
extern const sdlf_optimizer_class sdlf_rmsprop_class;
extern const sdlf_optimizer_class sdlf_sgd_class;

#endif
