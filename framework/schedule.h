/* SPDX-License-Identifier: MIT */
/* Field tables of schedules, for code that reads and writes settings. */
#ifndef SDLF_FRAMEWORK_SCHEDULE_H
#define SDLF_FRAMEWORK_SCHEDULE_H

#include <sdlf/optimizer.h>

/* The members that a schedule of this kind uses, including `peak`. The kind must be in range. */
const sdlf_field *sdlf_schedule_fields(sdlf_schedule_kind kind);

#endif
