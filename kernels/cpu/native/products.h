/* What the instruction sets have in common. */

#ifndef MASKWRIGHT_PRODUCTS_H
#define MASKWRIGHT_PRODUCTS_H

#include <stddef.h>
#include <stdint.h>

typedef uint16_t __attribute__((aligned(1), may_alias)) Unaligned16;
typedef uint32_t __attribute__((aligned(1), may_alias)) Unaligned32;

/* Vectors stay in registers only where the functions between which they go are one. */
#define INLINE static inline __attribute__((always_inline))

/* Bytes from each row of a matrix to those behind it. Sixteen rows have more addresses than a processor has registers; of these and two
   bases an instruction makes them all, by factors of 1, 2 and 4. */
typedef struct {
  int64_t one, two, six, ten, fourteen;
} Stride;

INLINE Stride stride_of(int64_t bytes) {
  Stride stride = {bytes, 2 * bytes, 6 * bytes, 10 * bytes, 14 * bytes};
  /* or compilers add up sixteen addresses again */
  __asm__("" : "+r"(stride.two), "+r"(stride.six), "+r"(stride.ten), "+r"(stride.fourteen));
  return stride;
}

INLINE const uint8_t *row_of(const uint8_t *p, Stride stride, int row) {
  if (row % 2 != 0) p += stride.one;
  switch (row / 2) {
    case 1: return p + stride.two;
    case 2: return p + 2 * stride.two;
    case 3: return p + stride.six;
    case 4: return p + 4 * stride.two;
    case 5: return p + stride.ten;
    case 6: return p + 2 * stride.six;
    case 7: return p + stride.fourteen;
  }
  return p;
}

#define ROW(i) row_of(p, stride, i)
#define UNROLLED _Pragma("GCC unroll 16") /* so that arrays of vectors stay in registers */

#define BLOCK 32 /* activations that share a scale */
#define BLOCKS_AT_ONCE 32 /* of weights that are unpacked at a time: what stays in the nearest cache */

/* A matrix [num_rows, num_columns] whose rows are blocks, codes or numbers of one type; of integers at least 16 rows. */
typedef struct {
  const uint8_t *data;
  int64_t num_rows, num_columns, row_bytes;
  int32_t type; /* index of TYPES in library.py */
  int32_t first_column; /* of the output: where the product with the first row goes */
  /* Of codes: (code - zero point) * scale, each of `group` columns of a row. */
  const uint8_t *scales, *zeros; /* zeros: bytes, or NULL: the middle of the codes */
  int64_t scale_row, scale_group, zero_row, zero_group; /* bytes to those of the next row, and of the next group */
  int64_t group;
  int32_t scale_type;  /* F32, F16, BF16 or EXPONENT8: of a power of two */
  int32_t is_unsigned; /* CODES8: bytes count from 128 */
} Matrix;

/* What is done to activations before they are multiplied; see `Input` in codes.py. */
typedef struct {
  const int64_t *order; /* [num_columns]: which column of x each column of the matrix is; NULL: as they are */
  int64_t group;        /* columns that are rounded together; of TO_BLOCKS BLOCK */
  int32_t grid;         /* TO_BLOCKS: matrices of integers are given blocks of integers, others x as it is */
  float scale;          /* of all; 0: found */
  float ceiling;        /* no number counts as larger when a scale is found */
} Input;

enum { TO_BLOCKS, TO_INT8, TO_FLOAT8 }; /* GRIDS in codes.py */

/* Matrices that are given the same activations. */
typedef struct {
  const Matrix *parts;
  const Input *input; /* NULL: TO_BLOCKS, and no order */
  int64_t num_parts;
} Run;

/* Activations rounded to 8 bits, block by block: x is about scale * quants. */
typedef struct {
  const int8_t *quants; /* [num_rows, num_columns] */
  /* The same for codes that share bytes, where a matrix has such: of 4 bits with even columns of eight before odd ones, of others with
     columns 0, 8, 16, 24, 1, 9, ... of each block. */
  const int8_t *pairs, *turned;
  const float *scales;  /* [num_rows, num_columns / 32] */
  const int32_t *sums;  /* [num_rows, num_columns / 16]: of sixteen quants each */
  int64_t num_rows, num_columns;
} Activations;

typedef struct {
  float *data; /* [num_rows, stride] */
  int64_t stride;
  const int32_t *places; /* of each column, where it goes; NULL: where it is */
} Output;

enum {
  Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, MXFP4,
  CODES2, CODES3, CODES4, CODES5, CODES6, CODES7, CODES8, FLOAT4, NF4,
  NUM_INTEGER_TYPES, F32 = NUM_INTEGER_TYPES, F16, BF16, FLOAT8, EXPONENT8,
};

/* Attention of one new token of each sequence to what is in the paged cache; see `attend` in between.py. */
typedef struct {
  const float *query;         /* [num_rows, num_kv_heads, heads_per_kv_head, head_dim] */
  const uint8_t *keys, *values; /* [blocks, block_size, num_kv_heads, head_dim], of `kv_type` */
  const int64_t *tables;      /* [num_rows, table_width] */
  const int64_t *lengths;     /* [num_rows]: tokens that each row sees */
  float *out;                 /* as query */
  int64_t num_rows, num_kv_heads, heads_per_kv_head, head_dim, block_size, table_width, window, max_tokens; /* window 0: all */
  float scale;
  int32_t kv_type; /* F32, F16, BF16 or FLOAT8 (of numbers up to 448; larger ones are cut) */
} Attention;

#define PIECE 128 /* tokens that are attended to at a time */
#define ROOM(head_dim) ((size_t)(head_dim) + 16 * 16) /* numbers of scratch for each head beside its weights: a query, and sixteen vectors */

/* Queries, keys and values of each row normalised, turned and written to the cache; see `turn_and_cache` in between.py. */
typedef struct {
  const float *heads;         /* [num_rows, stride]: queries, keys and values */
  const float *cosine, *sine; /* [places, half] */
  const int64_t *angles;      /* [num_rows]: the place of each row's; NULL: rows have theirs in their order */
  const float *norm;          /* [num_heads + num_kv_heads, head_dim], or NULL */
  const int64_t *slots;       /* [num_rows] */
  float *query;               /* [num_rows, num_heads, head_dim] */
  uint8_t *keys, *values;     /* [places, num_kv_heads, head_dim], of `kv_type` */
  int64_t num_rows, stride, num_heads, num_kv_heads, head_dim, half;
  float eps;
  int32_t kv_type; /* as in Attention */
} Turn;

enum { SILU, GELU_TANH, GELU }; /* ACTIVATIONS in between.py */

/* Whether codes of a type share bytes; whether two do. */
static inline int shares_bytes(int type) { return type >= CODES2 && type <= NF4 && type != CODES8; }
static inline int are_pairs(int type) { return type == CODES4 || type == FLOAT4 || type == NF4; }

/* One instruction set. */
typedef struct {
  int lanes; /* rows of a matrix that are computed together */
  void (*quantize)(const float *x, int64_t num_columns, int8_t *quants, float *scales, int32_t *sums);
  /* The same on another grid: to integers, a scale for each BLOCK; or to numbers, which may be x itself. */
  void (*round_to_int8)(const Input *input, const float *x, int64_t num_columns, int8_t *quants, float *scales, int32_t *sums);
  void (*round_to_float8)(const Input *input, const float *x, int64_t num_columns, float *out);
  /* A row of a matrix of blocks or numbers, times `factor`. */
  void (*read_row)(const Matrix *matrix, int64_t row, float factor, float *out);
  /* Rows `first` to `first + lanes` of a matrix times all rows of x; of the output those from row `fresh` on are written. */
  void (*multiply)(const Matrix *matrix, int64_t first, int64_t fresh, const Activations *x, const Output *output, float *scratch);
  /* The same for a matrix of floating-point numbers: `count` rows times all rows of x [num_rows, stride]. */
  void (*multiply_floats)(const Matrix *matrix, int64_t first, int64_t count, const float *x, int64_t stride, int64_t num_rows, const Output *output);
  void (*add_and_normalize)(const float *hidden, const float *delta, const float *weight, float eps, int64_t width, float *sum, float *out);
  void (*gated)(int activation, const float *gate, const float *up, int64_t width, float *out);
  void (*turn_head)(const float *head, const float *norm, float eps, const float *cosine, const float *sine, int64_t half, int64_t width, float *out);
  /* All heads of a row to the tokens [first, last), at most PIECE, of its sequence, which ends at `end`. Of each head out [heads, 2 + head_dim] has the
     largest score, the sum of all weights, exp(score - largest), and the sum of values times weights. `weights` [heads] are scratch, as
     is what lies behind them: see ROOM. */
  void (*attend)(const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t end, float (*weights)[PIECE], float *out);
  /* What a head attends to, of its pieces, each `stride` numbers behind the one before; they are used up. */
  void (*join)(float *pieces, int64_t num_pieces, int64_t stride, int64_t head_dim, float *out);
  /* Of logits whose bits are set: the largest, and the sum of exp(logit - most). NaN and infinities count as finite numbers. */
  float (*most_of)(const float *logits, const uint32_t *bits, int64_t count);
  double (*sum_of)(const float *logits, const uint32_t *bits, int64_t count, float most);
  /* Of draws: see pick.h. */
  void (*mask_scores)(const float *logits, const uint32_t *bits, int64_t count, float *scores);
  float (*largest)(const float *scores, int64_t count);
  void (*weights_of)(const float *scores, int64_t count, float best, float temperature, float *weights);
  int64_t (*fixed_sum)(const float *weights, int64_t count, float unit);
  int (*has_nan)(const float *x, int64_t count);
} InstructionSet;

extern const InstructionSet maskwright_avx512, maskwright_avx2, maskwright_neon;

/* What avx512_bf16.c has, where the compiler knows these instructions. */
#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<avx512bf16intrin.h>)
#define HAS_PAIRS
void maskwright_multiply_looked_up(const Matrix *matrix, int64_t first, int64_t count, const float *x, int64_t stride, int64_t num_rows, const Output *output);
void maskwright_attend_pairs(const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t end, float (*weights)[PIECE], float *out);
#endif
#endif

/* The set in use; see maskwright_use in products.c. */
extern const InstructionSet *maskwright_chosen;

/* Of the output only `columns`, ascending, and perhaps others beside them, are wanted; NULL: all. */
typedef struct {
  const int64_t *columns;
  int64_t count;
} Wanted;

int maskwright_multiply_wanted(const Run *runs, int num_runs, const float *x, int64_t num_rows, int64_t x_stride, const Output *output,
                               Wanted wanted, int num_threads);
int maskwright_multiply(const Run *runs, int num_runs, const float *x, int64_t num_rows, int64_t x_stride, float *out,
                        int64_t out_stride, const int32_t *places, int num_threads);
int maskwright_read_rows(const Matrix *matrix, const int64_t *rows, int64_t count, float factor, float *out);
void maskwright_norm(const float *hidden, const float *delta, const float *weight, float eps, int64_t num_rows, int64_t width, float *sum, float *out);
void maskwright_gate(int activation, const float *inner, int64_t num_rows, int64_t stride, int64_t width, float *out);
void maskwright_turn(const Turn *turn);
int maskwright_attend(const Attention *call, int num_threads);

typedef struct Picks Picks; /* what is to be drawn; see pick.c */
int maskwright_pick(const Picks *picks, int num_threads);

/* The nearest number of e4m3, ties to even, of one that is at most 448. */
static inline float nearest_float8(float number) {
  uint32_t bits;
  __builtin_memcpy(&bits, &number, sizeof bits);
  const uint32_t sign = bits & 0x80000000u, size = bits ^ sign;
  if (size < 0x3C800000u) { /* below 2^-6 all are 2^-9 apart, as numbers around 24576 are */
    float small;
    __builtin_memcpy(&small, &size, sizeof small);
    small = (small + 24576.0f) - 24576.0f;
    __builtin_memcpy(&bits, &small, sizeof bits);
    bits |= sign;
  } else if (size < 0x7F800000u) {
    bits = sign | ((size + 0x7FFFFu + (size >> 20 & 1)) & ~0xFFFFFu);
  }
  __builtin_memcpy(&number, &bits, sizeof number);
  return number;
}

/* Write numbers as those of another type, rounded to the nearest, ties to even: what a cache holds. */
void maskwright_store(int type, const float *x, int64_t count, uint8_t *out);

/* Memory of a thread, of which what was asked for last is kept. NULL when there is none. */
void *maskwright_kept(void **memory, size_t *size, size_t wanted);

#endif
