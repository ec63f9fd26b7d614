/* SPDX-License-Identifier: MIT */
/* The list of communicator classes, in the order of listings. The including file must define SDLF_COMMUNICATOR(class);
 * a line here declares and registers a class. No include guard: the file is included more than once. */
SDLF_COMMUNICATOR(sdlf_threads_communicator_class)
#ifdef SDLF_HAVE_MPI
SDLF_COMMUNICATOR(sdlf_mpi_communicator_class)
#endif
#ifdef SDLF_HAVE_NCCL
SDLF_COMMUNICATOR(sdlf_nccl_communicator_class)
#endif
