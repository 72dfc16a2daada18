/* Products of float32 rows with matrices in blocks of integers: what the instruction sets have in common. */

#ifndef MASKWRIGHT_PRODUCTS_H
#define MASKWRIGHT_PRODUCTS_H

#include <stdint.h>

typedef uint16_t __attribute__((aligned(1), may_alias)) Unaligned16;
typedef uint32_t __attribute__((aligned(1), may_alias)) Unaligned32;

#define BLOCK 32 /* activations that share a scale */
#define BLOCKS_AT_ONCE 32 /* of weights that are unpacked at a time: what stays in the nearest cache */

/* A matrix [num_rows, num_columns] whose rows are blocks of one type; at least 16 rows. */
typedef struct {
  const uint8_t *data;
  int64_t num_rows, num_columns, row_bytes;
  int32_t type; /* index of FORMATS in formats.py */
  int32_t first_column; /* of the output: where the product with the first row goes */
} Matrix;

/* Activations rounded to 8 bits, block by block: x is about scale * quants. */
typedef struct {
  const int8_t *quants; /* [num_rows, num_columns] */
  const float *scales;  /* [num_rows, num_columns / 32] */
  const int32_t *sums;  /* [num_rows, num_columns / 16]: of sixteen quants each */
  int64_t num_rows, num_columns;
} Activations;

typedef struct {
  float *data; /* [num_rows, stride] */
  int64_t stride;
  const int32_t *places; /* of each column, where it goes; NULL: where it is */
} Output;

enum { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, MXFP4, NUM_INTEGER_TYPES, F32 = NUM_INTEGER_TYPES, F16, BF16 };

/* One instruction set. */
typedef struct {
  int lanes; /* rows of a matrix that are computed together */
  void (*quantize)(const float *x, int64_t num_columns, int8_t *quants, float *scales, int32_t *sums);
  /* Rows `first` to `first + lanes` of a matrix times all rows of x; of the output those from row `fresh` on are written. */
  void (*multiply)(const Matrix *matrix, int64_t first, int64_t fresh, const Activations *x, const Output *output, float *scratch);
  /* The same for a matrix of floating-point numbers: `count` rows times all rows of x [num_rows, stride]. */
  void (*multiply_floats)(const Matrix *matrix, int64_t first, int64_t count, const float *x, int64_t stride, int64_t num_rows, const Output *output);
} InstructionSet;

#endif
