/* Where nothing was said of how to train, a built-in network may bring it: sdlf_network_builtin_training. */
#ifndef SDLF_APPS_TRAIN_OWN_H
#define SDLF_APPS_TRAIN_OWN_H

#include "apps/train/session.h"

/* With the session's options complete: take the network's own, unless the training is gone on with or an option was given that shapes it
 * (all but --epochs and --seed do), and describe them in session->own. In any case the settings say then what is trained with. Errors:
 * options out of range. */
sdlf_status own_options_take(train_session *session);

#endif
