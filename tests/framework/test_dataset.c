/* Data sets by name: what is known, and what is refused. (What they hold: tests/datasets.) */
#include <string.h>

#include <sdlf/dataset.h>

#include "testing.h"

static void lists_classes(void)
{
    bool mnist = false;
    const sdlf_dataset_class *type;
    for (int i = 0; (type = sdlf_dataset_class_at(i)) != NULL; i++) {
        CHECK(type->name != NULL && type->summary != NULL && type->load != NULL);
        CHECK(strchr(type->name, ':') == NULL);
        mnist = mnist || strcmp(type->name, "mnist") == 0;
    }
    CHECK(mnist);
    CHECK(sdlf_dataset_class_at(-1) == NULL);
}

static void refuses_unknown_names(void)
{
    sdlf_dataset *dataset = NULL;
    CHECK_FAILS(sdlf_dataset_open(&dataset, "cats:big", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT,
                "data set 'cats' is unknown; known are: ");
    CHECK(strstr(sdlf_error_message(), "mnist") != NULL);
    CHECK(dataset == NULL);
    CHECK_FAILS(sdlf_dataset_open(&dataset, "mnis", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "'mnis' is unknown");
    CHECK_FAILS(sdlf_dataset_open(&dataset, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "'' is unknown");
    CHECK_FAILS(sdlf_dataset_open(&dataset, NULL, SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "needs a name");
    CHECK_FAILS(sdlf_dataset_open(&dataset, "mnist", (sdlf_split)2), SDLF_ERROR_ARGUMENT, "found 2");
}

static void frees_nothing(void)
{
    int64_t live = test_live_allocations();
    sdlf_dataset_free(NULL);
    CHECK_EQUAL(test_live_allocations(), live);
}

int main(void)
{
    RUN(lists_classes);
    RUN(refuses_unknown_names);
    RUN(frees_nothing);
    return test_summary();
}
