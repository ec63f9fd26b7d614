/* SPDX-License-Identifier: MIT */
/* The list of data set classes, in the order of listings. Whoever includes it defines SDLF_DATASET(class) first; a class
 * is declared and registered by its line here. No include guard: it is read more than once. */
SDLF_DATASET(sdlf_digits_dataset_class)
SDLF_DATASET(sdlf_mnist_dataset_class)
SDLF_DATASET(sdlf_folder_dataset_class)
SDLF_DATASET(sdlf_segmentation_dataset_class)
SDLF_DATASET(sdlf_cifar10_dataset_class)
SDLF_DATASET(sdlf_cifar100_dataset_class)
SDLF_DATASET(sdlf_npy_dataset_class)
SDLF_DATASET(sdlf_npz_dataset_class)
SDLF_DATASET(sdlf_csv_dataset_class)
SDLF_DATASET(sdlf_text_dataset_class)
