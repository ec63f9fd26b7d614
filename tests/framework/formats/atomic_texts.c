/* SPDX-License-Identifier: MIT */
/* Writing short files atomically. See atomic_texts.h. */
#include "framework/formats/atomic_texts.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "framework/formats/atomic_file.h"
#include "testing.h"

sdlf_status write_text(const char *path, const char *text)
{
    atomic_file file;
    sdlf_status status = atomic_file_open(&file, path);
    if (status != SDLF_OK) return status;
    status = atomic_file_write(&file, text, strlen(text));
    if (status == SDLF_OK) return atomic_file_commit(&file);
    atomic_file_abandon(&file);
    return status;
}

const char *text_of(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

int files_in(const char *folder)
{
    DIR *list = opendir(folder);
    if (list == NULL) return -1;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

const char *make_folder(const char *name)
{
    const char *folder = test_path(name);
    CHECK(mkdir(folder, 0755) == 0);
    return folder;
}

void in_child(int (*check)(void *), void *argument)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(check(argument));
    int result = -1;
    CHECK(child > 0 && waitpid(child, &result, 0) == child);
    if (WIFEXITED(result) && WEXITSTATUS(result) == 77)
        test_skip("this process may not set the scene");
    else
        CHECK_EQUAL(result, 0);
}

bool fails_with(sdlf_status status, const char *reason)
{
    if (status == SDLF_ERROR_IO && strstr(sdlf_error_message(), reason) != NULL) return true;
    printf("status %s, message '%s', expected '%s'\n", sdlf_status_name(status), sdlf_error_message(), reason);
    fflush(stdout);
    return false;
}
