/* The data sets that are known by name. */
#include "datasets/datasets_internal.h"

static const sdlf_dataset_class *const classes[] = {
    &sdlf_digits_dataset_class,
    &sdlf_mnist_dataset_class,
};

const sdlf_dataset_class *sdlf_dataset_class_at(int index)
{
    return index >= 0 && index < (int)(sizeof classes / sizeof classes[0]) ? classes[index] : NULL;
}
