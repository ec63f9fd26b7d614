/* A program outside the tree: it needs the installed headers and the library with all that the library links. */
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

int main(void)
{
    printf("sdlf %s\n", SDLF_VERSION);
    sdlf_fail(SDLF_ERROR_ARGUMENT, "an expected message");
    return strcmp(sdlf_error_message(), "an expected message") == 0 ? 0 : 1;
}
