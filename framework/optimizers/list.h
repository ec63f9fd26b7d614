/* SPDX-License-Identifier: MIT */
/* The list of optimizer classes, in the order of listings. Whoever includes it defines SDLF_OPTIMIZER(class) first; a
 * class is declared and registered by its line here. No include guard: it is read more than once. */
SDLF_OPTIMIZER(sdlf_sgd_class)
SDLF_OPTIMIZER(sdlf_adam_class)
SDLF_OPTIMIZER(sdlf_adamw_class)
SDLF_OPTIMIZER(sdlf_rmsprop_class)
SDLF_OPTIMIZER(sdlf_muon_class)
SDLF_OPTIMIZER(sdlf_lars_class)
