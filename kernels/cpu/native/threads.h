/* Loops over several threads. */

#ifndef MASKWRIGHT_THREADS_H
#define MASKWRIGHT_THREADS_H

#include <stdint.h>

/* Part of a loop: the places from `begin` to `end`. */
typedef void (*Part)(void *context, int64_t begin, int64_t end);

/* Call `part` for all of [0, count), at most `grain` places at a time, on up to `num_threads` threads, this one among them. */
void run_in_parallel(Part part, void *context, int64_t count, int64_t grain, int num_threads);

#endif
