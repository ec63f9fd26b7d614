/* SPDX-License-Identifier: MIT */
/* SDLF, the Simple Deep Learning Framework: includes every public header.
 *
 * Threads: as each header says: unrelated objects may be used in different threads, and one object in one thread at a
 * time.
 * Ownership: what a function creates, opens or reads belongs to the caller, who frees, closes or releases it; those
 * functions accept NULL.
 * Errors: a status, and a message for the calling thread (status.h). The library never prints, never exits (with one
 * exception: sdlf_communicator_abort), and never aborts because of a caller's arguments. */
#ifndef SDLF_SDLF_H
#define SDLF_SDLF_H

#include <sdlf/calculator.h>
#include <sdlf/communicator.h>
#include <sdlf/dataset.h>
#include <sdlf/formats.h>
#include <sdlf/fusion.h>
#include <sdlf/graph.h>
#include <sdlf/image.h>
#include <sdlf/layers.h>
#include <sdlf/machine.h>
#include <sdlf/memory.h>
#include <sdlf/model.h>
#include <sdlf/optimizer.h>
#include <sdlf/plan.h>
#include <sdlf/plan_cache.h>
#include <sdlf/plan_info.h>
#include <sdlf/quantize.h>
#include <sdlf/random.h>
#include <sdlf/stateful.h>
#include <sdlf/suggest.h>
#include <sdlf/trainer.h>
#include <sdlf/version.h>

#endif
