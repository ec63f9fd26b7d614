/* SPDX-License-Identifier: MIT */
/* Overwrites a file in place with another file's content.
 *
 * For targets that cannot be replaced: a mount point, such as a single file bound into a container, cannot be renamed
 * over. The space for the new content is reserved first, so that a full disk leaves the old content unchanged; from
 * then on the target is neither the old nor the new file until the call has ended. The caller keeps `source` until
 * then. */
#ifndef SDLF_FORMATS_OVERWRITE_FILE_H
#define SDLF_FORMATS_OVERWRITE_FILE_H

#include <stdbool.h>

#include <sdlf/status.h>

/* Both paths are borrowed. *touched: the target has been modified. Failures are SDLF_ERROR_IO with the target's path
 * and the system's reason. */
sdlf_status overwrite_file(const char *target, const char *source, bool *touched);

#endif
