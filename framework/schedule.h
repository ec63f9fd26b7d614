/* SPDX-License-Identifier: MIT */
/* Field tables of schedules, for those who read and write settings. */
#ifndef SDLF_FRAMEWORK_SCHEDULE_H
#define SDLF_FRAMEWORK_SCHEDULE_H

#include <sdlf/optimizer.h>

/* The members that a schedule of this kind uses, `peak` among them. The kind must be in its range. */
const sdlf_field *sdlf_schedule_fields(sdlf_schedule_kind kind);

#endif
