/* SDLF, the Simple Deep Learning Framework: everything. */
#ifndef SDLF_SDLF_H
#define SDLF_SDLF_H

#include <sdlf/calculator.h>
#include <sdlf/dataset.h>
#include <sdlf/formats.h>
#include <sdlf/graph.h>
#include <sdlf/image.h>
#include <sdlf/layers.h>
#include <sdlf/machine.h>
#include <sdlf/model.h>
#include <sdlf/optimizer.h>
#include <sdlf/plan.h>
#include <sdlf/random.h>
#include <sdlf/suggest.h>
#include <sdlf/trainer.h>
#include <sdlf/version.h>

#endif
