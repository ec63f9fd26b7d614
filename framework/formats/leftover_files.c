#include "framework/formats/leftover_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool leftover_files_lock(int file, const char *path)
{
    struct stat ours, there;
    if (flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK; /* else this file system has no locks */
    return fstat(file, &ours) == 0 && lstat(path, &there) == 0 && is_same_file(&ours, &there);
}

/* "NAME.sdlf-tmp-PID-N"? */
static bool is_temporary_of(const char *found, const char *name)
{
    static const char digits[] = "0123456789", infix[] = ".sdlf-tmp-";
    size_t length = strlen(name);
    if (strncmp(found, name, length) != 0 || strncmp(found + length, infix, sizeof infix - 1) != 0) return false;
    const char *process = found + length + sizeof infix - 1;
    size_t first = strspn(process, digits);
    if (first == 0 || process[first] != '-') return false;
    size_t second = strspn(process + first + 1, digits);
    return second > 0 && process[first + 1 + second] == '\0';
}

/* Remove one, unless a process has it. Its name may have become another file's by the time that it is locked. */
static void remove_leftover(int folder, const char *found)
{
    struct stat locked, there;
    /* for writing, without which some file systems lock nothing; never through a link, and not waiting for a pipe */
    int file = openat(folder, found, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return;
    if (fstat(file, &locked) == 0 && S_ISREG(locked.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(folder, found, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same_file(&locked, &there))
        (void)unlinkat(folder, found, 0);
    close(file);
}

void leftover_files_remove(int folder, const char *name)
{
    int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a position of its own */
    DIR *names = listed >= 0 ? fdopendir(listed) : NULL;
    if (names == NULL) {
        if (listed >= 0) close(listed);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(names)) != NULL;) {
        if (is_temporary_of(entry->d_name, name)) remove_leftover(folder, entry->d_name);
    }
    closedir(names);
}
