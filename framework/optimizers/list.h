/* SPDX-License-Identifier: MIT */
/* The list of optimizer classes, in the order of listings. The including file must define SDLF_OPTIMIZER(class); a line
 * here declares and registers a class. No include guard: the file is included more than once. */
SDLF_OPTIMIZER(sdlf_sgd_class)
SDLF_OPTIMIZER(sdlf_adam_class)
SDLF_OPTIMIZER(sdlf_adamw_class)
SDLF_OPTIMIZER(sdlf_rmsprop_class)
SDLF_OPTIMIZER(sdlf_muon_class)
SDLF_OPTIMIZER(sdlf_lars_class)
