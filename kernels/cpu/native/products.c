/* Products of a few rows with several matrices in blocks: what Python calls. */

#include "products.h"

#include <stdlib.h>
#include <string.h>

#include "threads.h"

#define FLOAT_ROWS 16
#define LEAST_WORK 16384 /* bytes of weights times rows that are worth taking at a time: about half a microsecond */
#define ROWS_AT_ONCE 128 /* of activations, at most: what stays in the second cache while all matrices pass */
#define FLOATS_AT_ONCE (1 << 17) /* the same of activations that are not rounded, in numbers */

extern const InstructionSet maskwright_avx512, maskwright_avx2, maskwright_neon;

#if defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
static int has_dot_products(void) { return (getauxval(AT_HWCAP) >> 20 & 1) != 0; } /* HWCAP_ASIMDDP */
#else
static int has_dot_products(void) { return 1; } /* Apple's processors have them */
#endif
#endif

/* The best set that this processor has, or the one that is named; NULL where there is none. */
const InstructionSet *maskwright_chosen;

static const InstructionSet *found(const char *name) {
  int any = strcmp(name, "auto") == 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if ((any || strcmp(name, "avx512") == 0) && has_avx2 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return &maskwright_avx512;
  if ((any || strcmp(name, "avx2") == 0) && has_avx2) return &maskwright_avx2;
#elif defined(__aarch64__)
  if ((any || strcmp(name, "neon") == 0) && has_dot_products()) return &maskwright_neon;
#endif
  return NULL;
}

/* How many rows of a matrix of integers the instructions in use compute together. */
int maskwright_lanes(void) { return maskwright_chosen->lanes; }

/* Use an instruction set from here on, "auto" for the best. Returns 1, or 0 if this processor does not have it. */
int maskwright_use(const char *name) {
  const InstructionSet *set = found(name);
  if (set != NULL) maskwright_chosen = set;
  return set != NULL;
}

static int is_float(const Matrix *matrix) { return matrix->type >= NUM_INTEGER_TYPES; }

void *maskwright_kept(void **memory, size_t *size, size_t wanted) {
  if (*size >= wanted) return *memory;
  free(*memory);
  *size = 0;
  if (posix_memalign(memory, 64, wanted) != 0) return *memory = NULL;
  *size = wanted;
  return *memory;
}

/* Rows of a matrix that are computed at a time. */
static int64_t group_size(const InstructionSet *set, const Matrix *matrix) { return is_float(matrix) ? FLOAT_ROWS : set->lanes; }

static int64_t num_groups(const InstructionSet *set, const Matrix *matrix) {
  int64_t size = group_size(set, matrix);
  return (matrix->num_rows + size - 1) / size;
}

typedef struct {
  const InstructionSet *set;
  const Matrix *parts;
  Output output;
  Activations x;
  const float *given; /* [num_rows, given_stride], before it is rounded */
  int64_t given_stride;
  int8_t *quants;
  float *scales;
  int32_t *sums;
  int64_t num_groups; /* of rows of all matrices */
  int64_t rows_at_once; /* of activations */
} Product;

static void round_rows(void *context, int64_t begin, int64_t end) {
  Product *product = context;
  int64_t columns = product->x.num_columns;
  for (int64_t row = begin; row < end; row++) {
    product->set->quantize(product->given + row * product->given_stride, columns, product->quants + row * columns,
                           product->scales + row * (columns / 32), product->sums + row * (columns / 16));
  }
}

static Activations some_rows(const Activations *x, int64_t first, int64_t count) {
  Activations part = *x;
  part.quants += first * x->num_columns, part.scales += first * (x->num_columns / 32), part.sums += first * (x->num_columns / 16);
  part.num_rows = count;
  return part;
}

/* Groups of matrix rows for one tile of activations after another. */
static void multiply_groups(void *context, int64_t begin, int64_t end) {
  static _Thread_local float scratch[ROWS_AT_ONCE * 16] __attribute__((aligned(64)));
  Product *product = context;
  for (int64_t place = begin; place < end; place++) {
    int64_t row = place / product->num_groups * product->rows_at_once, group = place % product->num_groups;
    int64_t left = product->x.num_rows - row, count = left < product->rows_at_once ? left : product->rows_at_once;
    const Matrix *matrix = product->parts;
    for (int64_t size; group >= (size = num_groups(product->set, matrix)); matrix++) group -= size;
    Output output = product->output;
    output.data += row * output.stride;
    int64_t size = group_size(product->set, matrix), fresh = group * size, last = matrix->num_rows - size;
    if (is_float(matrix)) {
      const float *x = product->given + row * product->given_stride;
      int64_t rows = fresh > last ? matrix->num_rows - fresh : size;
      product->set->multiply_floats(matrix, fresh, rows, x, product->given_stride, count, &output);
    } else {
      Activations x = some_rows(&product->x, row, count);
      product->set->multiply(matrix, fresh > last ? last : fresh, fresh, &x, &output, scratch);
    }
  }
}

/* out [num_rows, stride] = x [num_rows, x_stride] times the matrices, side by side. Returns 0, or -1 when there is no memory. */
int maskwright_multiply(const Matrix *parts, int num_parts, const float *x, int64_t num_rows, int64_t x_stride, float *out,
                        int64_t out_stride, const int32_t *places, int num_threads) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  Product product = {maskwright_chosen, parts, {out, out_stride, places}, {NULL, NULL, NULL, num_rows, parts->num_columns}, x, x_stride, NULL, NULL, NULL, 0, ROWS_AT_ONCE};
  int has_integers = 0, has_floats = 0;
  for (int i = 0; i < num_parts; i++) {
    product.num_groups += num_groups(maskwright_chosen, parts + i);
    has_integers |= !is_float(parts + i), has_floats |= is_float(parts + i);
  }
  if (has_floats && parts->num_columns * ROWS_AT_ONCE > FLOATS_AT_ONCE) {
    product.rows_at_once = FLOATS_AT_ONCE / parts->num_columns / 4 * 4; /* four are computed together */
    if (product.rows_at_once < 16) product.rows_at_once = 16;
  }
  if (has_integers) {
    size_t num_quants = (size_t)(num_rows * parts->num_columns);
    int8_t *quants = maskwright_kept(&memory, &size, num_quants + num_quants / 8 + num_quants / 4);
    if (quants == NULL) return -1;
    product.quants = quants, product.scales = (float *)(quants + num_quants), product.sums = (int32_t *)(quants + num_quants + num_quants / 8);
    product.x.quants = quants, product.x.scales = product.scales, product.x.sums = product.sums;
    run_in_parallel(round_rows, &product, num_rows, 4, num_threads);
  }
  int64_t count = product.num_groups * ((num_rows + product.rows_at_once - 1) / product.rows_at_once), work = 0;
  for (int i = 0; i < num_parts; i++) work += parts[i].num_rows * parts[i].row_bytes * num_rows;
  int64_t grain = count * LEAST_WORK / (work + 1);
  run_in_parallel(multiply_groups, &product, count, grain < 1 ? 1 : grain, num_threads);
  return 0;
}
