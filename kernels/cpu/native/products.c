/* Products of a few rows with several matrices in blocks: what Python calls. */

#include "products.h"

#include <stdlib.h>
#include <string.h>

#include "threads.h"

#define FLOAT_ROWS 16
#define LEAST_WORK 16384 /* bytes of weights times rows that are worth taking at a time: about half a microsecond */
#define ROWS_AT_ONCE 128 /* of activations, at most: what stays in the second cache while all matrices pass */
#define FLOATS_AT_ONCE (1 << 17) /* the same of activations that are not rounded, in numbers */

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
  int has_avx512 = has_avx2 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq");
#if defined(HAS_PAIRS)
  static InstructionSet with_pairs;
  int has_pairs = has_avx512 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vbmi");
  if ((any || strcmp(name, "avx512bf16") == 0) && has_pairs) {
    if (with_pairs.attend == NULL) { /* once: others may use it already */
      with_pairs = maskwright_avx512;
      with_pairs.multiply_floats = maskwright_multiply_looked_up;
      with_pairs.attend = maskwright_attend_pairs;
    }
    return &with_pairs;
  }
#endif
  if ((any || strcmp(name, "avx512") == 0) && has_avx512) return &maskwright_avx512;
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
  const Input *input;
  const float *given; /* [num_rows, given_stride], before it is rounded */
  int64_t given_stride;
  float *prepared; /* [num_rows, num_columns]: numbers in the order, and on the grid, that matrices call for; NULL: as given */
  int8_t *quants, *pairs, *turned; /* NULL where no matrix has such */
  float *scales;
  int32_t *sums;
  int64_t num_groups; /* of rows of all matrices */
  const int64_t *groups; /* [num_groups]: those that are computed, NULL: all */
  int64_t rows_at_once; /* of activations */
} Product;

/* Of eight bytes those at even places, then those at odd ones. */
static inline uint64_t pairs_apart(uint64_t eight) {
  uint64_t even = eight & 0x00FF00FF00FF00FFu, odd = eight >> 8 & 0x00FF00FF00FF00FFu;
  even = (even | even >> 8) & 0x0000FFFF0000FFFFu, odd = (odd | odd >> 8) & 0x0000FFFF0000FFFFu;
  return ((even | even >> 16) & 0xFFFFFFFFu) | (odd | odd >> 16) << 32;
}

/* Bytes 0, 8, 16, 24 of a block, then 1, 9, ... */
static void turn_block(const int8_t *block, int8_t *out) {
  for (int i = 0; i < BLOCK; i++) out[i] = block[i / 4 + i % 4 * 8];
}

static const float *prepared_row(const Product *product, int64_t row) {
  const float *given = product->given + row * product->given_stride;
  if (product->prepared == NULL) return given;
  const Input *input = product->input;
  float *numbers = product->prepared + row * product->x.num_columns;
  if (input->order != NULL) {
    for (int64_t i = 0; i < product->x.num_columns; i++) numbers[i] = given[input->order[i]];
    given = numbers;
  }
  if (input->grid == TO_FLOAT8) product->set->round_to_float8(input, given, product->x.num_columns, numbers);
  return numbers;
}

static void round_rows(void *context, int64_t begin, int64_t end) {
  Product *product = context;
  int64_t columns = product->x.num_columns;
  for (int64_t row = begin; row < end; row++) {
    const float *given = prepared_row(product, row);
    if (product->quants == NULL) continue;
    int8_t *quants = product->quants + row * columns;
    float *scales = product->scales + row * (columns / 32);
    int32_t *sums = product->sums + row * (columns / 16);
    if (product->input != NULL && product->input->grid == TO_INT8) {
      product->set->round_to_int8(product->input, given, columns, quants, scales, sums);
    } else {
      product->set->quantize(given, columns, quants, scales, sums);
    }
    for (int64_t i = 0; product->pairs != NULL && i < columns; i += 8) {
      uint64_t eight;
      memcpy(&eight, quants + i, sizeof eight);
      eight = pairs_apart(eight);
      memcpy(product->pairs + row * columns + i, &eight, sizeof eight);
    }
    for (int64_t i = 0; product->turned != NULL && i < columns; i += BLOCK) turn_block(quants + i, product->turned + row * columns + i);
  }
}

static Activations some_rows(const Activations *x, int64_t first, int64_t count) {
  Activations part = *x;
  part.quants += first * x->num_columns, part.turned += x->turned == NULL ? 0 : first * x->num_columns;
  part.pairs += x->pairs == NULL ? 0 : first * x->num_columns;
  part.scales += first * (x->num_columns / 32), part.sums += first * (x->num_columns / 16);
  part.num_rows = count;
  return part;
}

/* Groups of matrix rows for one tile of activations after another. */
static void multiply_groups(void *context, int64_t begin, int64_t end) {
  static _Thread_local float scratch[ROWS_AT_ONCE * 16] __attribute__((aligned(64)));
  Product *product = context;
  for (int64_t place = begin; place < end; place++) {
    int64_t row = place / product->num_groups * product->rows_at_once, group = place % product->num_groups;
    if (product->groups != NULL) group = product->groups[group];
    int64_t left = product->x.num_rows - row, count = left < product->rows_at_once ? left : product->rows_at_once;
    const Matrix *matrix = product->parts;
    for (int64_t size; group >= (size = num_groups(product->set, matrix)); matrix++) group -= size;
    Output output = product->output;
    output.data += row * output.stride;
    int64_t size = group_size(product->set, matrix), fresh = group * size, last = matrix->num_rows - size;
    if (is_float(matrix)) {
      const float *x = product->given + row * product->given_stride; /* what was prepared, once it is */
      int64_t rows = fresh > last ? matrix->num_rows - fresh : size;
      product->set->multiply_floats(matrix, fresh, rows, x, product->given_stride, count, &output);
    } else {
      Activations x = some_rows(&product->x, row, count);
      product->set->multiply(matrix, fresh > last ? last : fresh, fresh, &x, &output, scratch);
    }
  }
}

/* List the groups that compute wanted columns, each once. Returns how many. */
static int64_t list_groups(const Run *run, Wanted wanted, int64_t *groups) {
  int64_t count = 0, before = 0;
  for (const Matrix *matrix = run->parts; matrix < run->parts + run->num_parts; matrix++) {
    const int64_t size = group_size(maskwright_chosen, matrix);
    for (int64_t i = 0, last = -1; i < wanted.count; i++) {
      int64_t row = wanted.columns[i] - matrix->first_column;
      if (row < 0 || row >= matrix->num_rows || row / size == last) continue;
      last = row / size;
      groups[count++] = before + last;
    }
    before += num_groups(maskwright_chosen, matrix);
  }
  return count;
}

static int multiply_run(const Run *run, const float *x, int64_t num_rows, int64_t x_stride, const Output *output, Wanted wanted, int num_threads) {
  static _Thread_local void *memory, *listed;
  static _Thread_local size_t size, listed_size;
  const Matrix *parts = run->parts;
  const Input *input = run->input;
  const int64_t columns = parts->num_columns;
  Product product = {
    .set = maskwright_chosen, .parts = parts, .output = *output, .x = {.num_rows = num_rows, .num_columns = columns},
    .input = input, .given = x, .given_stride = x_stride, .rows_at_once = ROWS_AT_ONCE,
  };
  int has_integers = 0, has_floats = 0, has_pairs = 0, has_turned = 0, is_prepared = input != NULL && (input->order != NULL || input->grid == TO_FLOAT8);
  for (int64_t i = 0; i < run->num_parts; i++) {
    product.num_groups += num_groups(maskwright_chosen, parts + i);
    has_integers |= !is_float(parts + i), has_floats |= is_float(parts + i), has_pairs |= are_pairs(parts[i].type);
    has_turned |= shares_bytes(parts[i].type) && !are_pairs(parts[i].type);
  }
  if (has_floats && columns * ROWS_AT_ONCE > FLOATS_AT_ONCE) {
    product.rows_at_once = FLOATS_AT_ONCE / columns / 4 * 4; /* four are computed together */
    if (product.rows_at_once < 16) product.rows_at_once = 16;
  }
  if (has_integers || is_prepared) {
    const size_t num_quants = (size_t)(num_rows * columns), of_integers = has_integers ? num_quants + num_quants / 8 + num_quants / 4 : 0;
    const size_t of_numbers = is_prepared ? 4 * num_quants : 0;
    char *found = maskwright_kept(&memory, &size, of_numbers + of_integers + (size_t)(has_pairs + has_turned) * num_quants);
    if (found == NULL) return -1;
    product.prepared = is_prepared ? (float *)found : NULL;
    if (has_integers) {
      product.quants = (int8_t *)(found + of_numbers), product.scales = (float *)(product.quants + num_quants);
      product.sums = (int32_t *)(product.quants + num_quants + num_quants / 8);
      product.pairs = has_pairs ? product.quants + of_integers : NULL;
      product.turned = has_turned ? product.quants + of_integers + (has_pairs ? num_quants : 0) : NULL;
      product.x.quants = product.quants, product.x.pairs = product.pairs, product.x.turned = product.turned, product.x.scales = product.scales, product.x.sums = product.sums;
    }
    run_in_parallel(round_rows, &product, num_rows, 4, num_threads);
    if (is_prepared) product.given = product.prepared, product.given_stride = columns;
  }
  int64_t work = 0;
  for (int64_t i = 0; i < run->num_parts; i++) work += parts[i].num_rows * parts[i].row_bytes * num_rows;
  if (wanted.columns != NULL) {
    int64_t *groups = maskwright_kept(&listed, &listed_size, (size_t)(wanted.count * run->num_parts + 1) * sizeof *groups), all = product.num_groups;
    if (groups == NULL) return -1;
    product.num_groups = list_groups(run, wanted, groups), product.groups = groups;
    if (product.num_groups == 0) return 0;
    work = work / all * product.num_groups;
  }
  int64_t count = product.num_groups * ((num_rows + product.rows_at_once - 1) / product.rows_at_once);
  int64_t grain = count * LEAST_WORK / (work + 1);
  run_in_parallel(multiply_groups, &product, count, grain < 1 ? 1 : grain, num_threads);
  return 0;
}

/* out [count, num_columns]: rows of a matrix of blocks or numbers, times `factor`; where a row is negative, the first. Returns 0, or -2 for a row that
   there is not. */
int maskwright_read_rows(const Matrix *matrix, const int64_t *rows, int64_t count, float factor, float *out) {
  for (int64_t i = 0; i < count; i++) {
    if (rows[i] >= matrix->num_rows) return -2;
    maskwright_chosen->read_row(matrix, rows[i] < 0 ? 0 : rows[i], factor, out + i * matrix->num_columns);
  }
  return 0;
}

/* As `maskwright_multiply`. Where output has `places`, all columns are computed. */
int maskwright_multiply_wanted(const Run *runs, int num_runs, const float *x, int64_t num_rows, int64_t x_stride, const Output *output,
                               Wanted wanted, int num_threads) {
  if (output->places != NULL) wanted.columns = NULL;
  for (const Run *run = runs; run < runs + num_runs; run++) {
    if (multiply_run(run, x, num_rows, x_stride, output, wanted, num_threads) != 0) return -1;
  }
  return 0;
}

/* out [num_rows, stride] = x [num_rows, x_stride] times the matrices, side by side. Returns 0, or -1 when there is no memory. */
int maskwright_multiply(const Run *runs, int num_runs, const float *x, int64_t num_rows, int64_t x_stride, float *out,
                        int64_t out_stride, const int32_t *places, int num_threads) {
  const Output output = {out, out_stride, places};
  const Wanted all = {NULL, 0};
  return maskwright_multiply_wanted(runs, num_runs, x, num_rows, x_stride, &output, all, num_threads);
}
