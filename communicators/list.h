/* SPDX-License-Identifier: MIT */
/* The list of communicator classes, in the order of listings. Whoever includes it defines SDLF_COMMUNICATOR(class)
 * first; a class is declared and registered by its line here. No include guard: it is read more than once. */
SDLF_COMMUNICATOR(sdlf_threads_communicator_class)
#ifdef SDLF_HAVE_MPI
SDLF_COMMUNICATOR(sdlf_mpi_communicator_class)
#endif
#ifdef SDLF_HAVE_NCCL
SDLF_COMMUNICATOR(sdlf_nccl_communicator_class)
#endif
