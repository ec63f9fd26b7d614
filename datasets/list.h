/* SPDX-License-Identifier: MIT */
/* The list of data set classes, in the order of listings. Define SDLF_DATASET(class) before including it. A line here
 * declares and registers a class. There is no include guard, because the file is included more than once. */
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
