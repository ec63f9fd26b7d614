/* SPDX-License-Identifier: MIT */
#include "framework/formats/atomic_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/leftover_files.h"
#include "framework/formats/overwrite_file.h"
#include "framework/portable.h"

/* More leftovers of killed processes with our process id are not expected. */
enum { TEMPORARY_ATTEMPTS = 1000 };

static sdlf_status io_error(const char *action, const char *path)
{
    return sdlf_fail(SDLF_ERROR_IO, "cannot %s '%s': %s", action, path, strerror(errno));
}

static sdlf_status out_of_memory(void)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for the name of a file to write");
}

enum { PATH_SIZE = 4096 /* PATH_MAX of Linux */, LINKS_MOST = 40 /* as many as Linux follows */ };

/* Replaces the path by the target of the link at `path`; false if that is no link, or too long. */
static bool follow(char path[PATH_SIZE])
{
    char target[PATH_SIZE];
    ssize_t length = readlink(path, target, sizeof target);
    if (length <= 0) return false;
    const char *slash = strrchr(path, '/');
    size_t folder = slash == NULL || target[0] == '/' ? 0 : (size_t)(slash - path) + 1;
    if (folder + (size_t)length >= PATH_SIZE) return false;
    memcpy(path + folder, target, (size_t)length);
    path[folder + (size_t)length] = '\0';
    return true;
}

/* A copy of the path with symbolic links followed, even to a file that does not exist. A pipe under /dev/fd exists, but
 * its link holds no path. */
static char *resolve(const char *path)
{
    char buffer[PATH_SIZE]; /* realpath with a buffer of ours allocates nothing */
    if (realpath(path, buffer) != NULL) return strdup(buffer);
    struct stat at;
    size_t length = strlen(path);
    if (stat(path, &at) == 0 || length >= sizeof buffer) return strdup(path);
    memcpy(buffer, path, length + 1);
    for (int links = 0; links < LINKS_MOST && follow(buffer);) links++;
    return strdup(buffer);
}

/* The folder that holds the target; the caller frees it. NULL: out of memory. */
static char *folder_of(const char *target)
{
    const char *slash = strrchr(target, '/');
    if (slash == NULL) return strdup(".");
    char *folder = strdup(target);
    if (folder != NULL) folder[slash == target ? 1 : slash - target] = '\0';
    return folder;
}

/* Opened before anything is written, so that a missing folder is reported early and committing needs no memory. */
static sdlf_status open_folder(atomic_file *file)
{
    char *folder = folder_of(file->target);
    if (folder == NULL) return out_of_memory();
    sdlf_status status = SDLF_OK;
    file->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* a folder may be writable without being readable; then it is not synced */
    if (file->folder < 0 && errno != EACCES)
        status = sdlf_fail(SDLF_ERROR_IO, "%s: the folder %s %s (%s)", file->target, folder,
                           errno == ENOENT || errno == ENOTDIR ? "is not there" : "cannot be opened", strerror(errno));
    free(folder);
    return status;
}

static const char *name_of(const char *target)
{
    const char *slash = strrchr(target, '/');
    return slash != NULL ? slash + 1 : target;
}

/* Copies owner, group and mode of the file to be replaced, as far as this process may. If the group cannot
 * be kept, its members get only the permissions of others, as they are not those that the old file's group
 * had. */
static void take_after(int file, const struct stat *old)
{
    mode_t mode = old->st_mode & 0777;
    if (fchown(file, old->st_uid, old->st_gid) != 0 && fchown(file, (uid_t)-1, old->st_gid) != 0)
        mode &= ~(mode_t)S_IRWXG | (mode & S_IRWXO) << 3;
    (void)fchmod(file, mode); /* some file systems have no permissions */
}

/* `old` is NULL for a new file. */
static sdlf_status open_temporary(atomic_file *file, const struct stat *old, const char *kin)
{
    size_t folder = (size_t)(name_of(file->target) - file->target), size = folder + LEFTOVER_NAME_SIZE;
    file->temporary = malloc(size);
    if (file->temporary == NULL) return out_of_memory();
    memcpy(file->temporary, file->target, folder);
    for (int attempt = 0; attempt < TEMPORARY_ATTEMPTS; attempt++) {
        leftover_files_name(file->temporary + folder, kin != NULL ? kin : file->target + folder, attempt);
        file->descriptor =
            open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, old != NULL ? S_IRUSR | S_IWUSR : 0666);
        if (file->descriptor < 0 && errno != EEXIST) break;
        if (file->descriptor >= 0 && leftover_files_lock(file->descriptor, file->temporary)) break;
        if (file->descriptor >= 0) close(file->descriptor);
        file->descriptor = -1;
    }
    if (file->descriptor < 0)
        return sdlf_fail(SDLF_ERROR_IO, "cannot write '%s': cannot create a file in its folder (%s)", file->target,
                         strerror(errno));
    if (old != NULL) take_after(file->descriptor, old);
    return SDLF_OK;
}

/* Syncs the folder's entries, so that they survive a power failure; some file systems cannot (EINVAL). */
static sdlf_status sync_folder(const atomic_file *file)
{
    if (file->folder < 0 || fsync(file->folder) == 0 || errno == EINVAL) return SDLF_OK;
    return io_error("sync the folder of", file->target);
}

/* Renames the temporary file over the target while holding a lock on the existing file, or to a name that does not
 * exist: so a process that locks a file, verifies that it still has its name, and removes that (leftover_files.h) never
 * removes ours. Returns 0, or -1 as rename does. */
static int rename_locked(const atomic_file *file)
{
    enum { ATTEMPTS = 1000 }; /* a file that cannot be locked is replaced without a lock */
    int replaced = -1;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        replaced = leftover_files_hold(file->target);
        if (replaced >= 0) break;
        if (portable_rename_new(file->temporary, file->target) == 0) return 0;
        if (errno == EINVAL || errno == ENOSYS) break; /* not supported by this file system, or by Linux */
        if (errno != EEXIST) return -1;
    }
    int result = rename(file->temporary, file->target), reason = errno;
    if (replaced >= 0) close(replaced);
    errno = reason;
    return result;
}

/* Replaces the target by the temporary file, and forgets that name. */
static sdlf_status replace_target(atomic_file *file)
{
    if ((file->has_kin ? rename_locked(file) : rename(file->temporary, file->target)) == 0) {
        free(file->temporary);
        file->temporary = NULL;
        return SDLF_OK;
    }
    if (errno != EBUSY) return io_error("replace", file->target);
    /* a mount point cannot be replaced. Its intended content must always be recoverable under the temporary name */
    sdlf_status status = sync_folder(file);
    if (status != SDLF_OK) return status;
    bool touched;
    status = overwrite_file(file->target, file->temporary, &touched);
    if (status == SDLF_OK || !touched) return status;
    status = sdlf_fail(SDLF_ERROR_IO, "%s (a mount point is written in place); what it should hold is in '%s'",
                       sdlf_error_message(), file->temporary);
    free(file->temporary);
    file->temporary = NULL;
    return status;
}

/* Closes and frees everything; the temporary file is kept. */
static void release(atomic_file *file)
{
    if (file->descriptor >= 0) close(file->descriptor);
    if (file->folder >= 0) close(file->folder);
    free(file->temporary);
    free(file->target);
    *file = (atomic_file){.descriptor = -1, .folder = -1};
}

/* Examines the target. *in_place: it is no regular file, and is written to directly. */
static sdlf_status inspect_target(atomic_file *file, const char *path, struct stat *old, bool *exists, bool *in_place)
{
    *file = (atomic_file){.descriptor = -1, .folder = -1};
    if (path == NULL || path[0] == '\0') return sdlf_fail(SDLF_ERROR_ARGUMENT, "the path of a file to write is empty");
    file->target = resolve(path);
    if (file->target == NULL) return out_of_memory();
    *exists = stat(file->target, old) == 0;
    *in_place = *exists && !S_ISREG(old->st_mode);
    if (*exists && S_ISDIR(old->st_mode)) return sdlf_fail(SDLF_ERROR_IO, "cannot write '%s': it is a folder", path);
    /* renaming would bypass the file's write protection */
    if (*exists && access(file->target, W_OK) == 0) return SDLF_OK;
    if (*exists && errno != ENOENT) return io_error("write", file->target);
    *exists = *exists && errno != ENOENT; /* another process has removed it since */
    if (errno == ENOENT) {
        struct stat link;
        if (lstat(file->target, &link) != 0 || !S_ISLNK(link.st_mode)) return SDLF_OK;
        errno = ELOOP; /* too many links: renaming would replace the last one */
    }
    return io_error("write", path);
}

sdlf_status atomic_file_open_with(atomic_file *file, const char *path, const char *kin)
{
    struct stat old;
    bool exists, in_place;
    sdlf_status status = inspect_target(file, path, &old, &exists, &in_place);
    if (status == SDLF_OK && in_place) {
        file->descriptor = open(file->target, O_WRONLY | O_CLOEXEC);
        if (file->descriptor < 0) status = io_error("open", file->target);
    } else if (status == SDLF_OK) {
        file->has_kin = kin != NULL;
        status = open_folder(file);
        if (status == SDLF_OK) status = open_temporary(file, exists ? &old : NULL, kin);
    }
    if (status != SDLF_OK) release(file);
    return status;
}

sdlf_status atomic_file_open(atomic_file *file, const char *path)
{
    return atomic_file_open_with(file, path, NULL);
}

/* True if the folder's file system supports unnamed files. */
static bool takes_nameless(const char *target)
{
    char *folder = folder_of(target);
    int file = folder != NULL ? portable_open_nameless(folder) : -1;
    free(folder);
    return file >= 0 && close(file) == 0;
}

sdlf_status atomic_file_check(const char *path)
{
    atomic_file file;
    struct stat old;
    bool exists, in_place;
    sdlf_status status = inspect_target(&file, path, &old, &exists, &in_place);
    bool done = status != SDLF_OK || in_place || takes_nameless(file.target);
    release(&file);
    if (done) return status;
    status = atomic_file_open(&file, path); /* reports the error, if there is one */
    if (status == SDLF_OK) atomic_file_abandon(&file);
    return status;
}

sdlf_status atomic_file_write(atomic_file *file, const void *bytes, size_t count)
{
    assert(file->descriptor >= 0);
    const char *at = bytes;
    while (count > 0) {
        ssize_t done = write(file->descriptor, at, count);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0)
            return sdlf_fail(SDLF_ERROR_IO, "cannot write '%s': %s (after %" PRIu64 " bytes)", file->target,
                             strerror(errno), file->written);
        at += done;
        count -= (size_t)done;
        file->written += (uint64_t)done;
    }
    return SDLF_OK;
}

/* Syncs and closes the file; the lock on its temporary name is kept in another descriptor, until it has its
 * own. */
static sdlf_status sync_and_close(atomic_file *file, int *lock)
{
    assert(file->descriptor >= 0);
    sdlf_status status = SDLF_OK;
    if (file->temporary != NULL && fsync(file->descriptor) != 0) status = io_error("sync", file->target);
    int descriptor = file->descriptor;
    *lock = file->temporary != NULL ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1;
    file->descriptor = -1;
    if (close(descriptor) != 0 && status == SDLF_OK) status = io_error("close", file->target);
    return status;
}

sdlf_status atomic_file_commit_locked(atomic_file *file, int *lock)
{
    sdlf_status status = sync_and_close(file, lock);
    bool placed = status == SDLF_OK && file->temporary != NULL;
    if (placed) status = replace_target(file);
    if (placed && status == SDLF_OK) status = sync_folder(file);
    if (placed && status == SDLF_OK && file->folder >= 0) leftover_files_remove(file->folder, name_of(file->target));
    atomic_file_abandon(file);
    return status;
}

sdlf_status atomic_file_commit(atomic_file *file)
{
    int lock;
    sdlf_status status = atomic_file_commit_locked(file, &lock);
    if (lock >= 0) close(lock);
    return status;
}

void atomic_file_abandon(atomic_file *file)
{
    if (file->temporary != NULL) unlink(file->temporary);
    release(file);
}
