/* The products for one instruction set, which a header simd_*.h has defined before this is included.

   Lane r of a vector belongs to row r of a few neighbouring rows of the matrix, so that nothing is summed across lanes: whatever the
   instruction set and however many activations there are, each output is the same sum in the same order, bit by bit
   (twin.py writes it down):

       y = 0
       for each block b of 32 columns:
           for each group g of the block, 32 or 16 columns:
               y = fma(weight_scale[g] * x_scale[b], (float) sum(weight * x over g), y)
               y = fma(weight_minimum[g], x_scale[b] * (float) sum(x over g), y)         where the type has minima

   Codes have their scales beside them, one for several blocks; their zero points are integers, and are subtracted as such. */

/* 32 columns of LANES rows as bytes, four columns a lane. */
typedef struct {
  Ints weights[8];
  Floats scales[2]; /* one for all columns, or one for each sixteen */
  Floats minima[2]; /* of codes: zero points, integers */
} Block;

typedef struct {
  int64_t num_bytes;
  int num_blocks; /* of 32 columns, in one of the file's */
  int groups;     /* scales in 32 columns: 1 or 2 */
  int has_minima, is_signed, offset, has_zeros;
} Format;

#define UNROLLED _Pragma("GCC unroll 16") /* so that arrays of vectors stay in registers */
#define EVERY(byte) all_ints((int32_t)((byte) * 0x01010101u))
#define LOW(v) ((v) & EVERY(15))
#define SHIFTED(v, n) ((Ints)((Words)(v) >> (n)))
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));

static inline __attribute__((always_inline)) void nibbles(const uint8_t *p, int64_t stride, Block *out) {
  Ints packed[4];
  columns(p, stride, packed);
  for (int i = 0; i < 4; i++) {
    out->weights[i] = LOW(packed[i]);
    out->weights[i + 4] = LOW(SHIFTED(packed[i], 4));
  }
}

static inline __attribute__((always_inline)) void looked_up_nibbles(const uint8_t *p, int64_t stride, const int8_t *table, Block *out) {
  nibbles(p, stride, out);
  for (int i = 0; i < 8; i++) out->weights[i] = looked_up(table, out->weights[i]) ^ all_ints((int32_t)SIGNED_AS);
}

static inline __attribute__((always_inline)) void fifth_bits(const uint8_t *p, int64_t stride, Block *out) {
  Ints high = words(p, stride);
  for (int i = 0; i < 8; i++) {
    Ints bits = SHIFTED(high, 4 * i) & all_ints(15); /* spread over four bytes by a product */
    out->weights[i] |= (bits * all_ints(0x00204081) & EVERY(1)) << 4;
  }
}

/* Six-bit scales and minima of Q4_K and Q5_K: `word` has the second to fourth four bytes of the header. */
static inline __attribute__((always_inline)) void six_bits(const Ints *word, int j, Ints *scale, Ints *minimum) {
  if (j < 4) {
    *scale = SHIFTED(word[1], 8 * j) & all_ints(63);
    *minimum = SHIFTED(word[2], 8 * j) & all_ints(63);
  } else {
    int shift = 8 * (j - 4);
    *scale = (SHIFTED(word[3], shift) & all_ints(15)) | (SHIFTED(word[1], shift + 2) & all_ints(48));
    *minimum = (SHIFTED(word[3], shift + 4) & all_ints(15)) | (SHIFTED(word[2], shift + 2) & all_ints(48));
  }
}

static inline __attribute__((always_inline)) void k_scales(const uint8_t *p, int64_t stride, Block *out) {
  Ints word[4], scale, minimum;
  columns(p, stride, word);
  Floats factor = from_halves(word[0] & all_ints(0xFFFF)), least = -from_halves(SHIFTED(word[0], 16));
  for (int j = 0; j < 8; j++) {
    six_bits(word, j, &scale, &minimum);
    out[j].scales[0] = factor * floats_of(scale);
    out[j].minima[0] = least * floats_of(minimum);
  }
}

static const int8_t IQ4_NL_TABLE[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t MXFP4_TABLE[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static inline Ints byte_of(const Ints *vectors, int i) { return SHIFTED(vectors[i / 4], i % 4 * 8) & all_ints(255); }
static inline Ints signed_byte_of(const Ints *vectors, int i) { return (vectors[i / 4] << (24 - i % 4 * 8)) >> 24; }

static inline __attribute__((always_inline)) void unpack(int type, const uint8_t *p, int64_t stride, Block *out) {
  switch (type) {
    case Q4_0:
      nibbles(p + 2, stride, out);
      out->scales[0] = halves(p, stride);
      return;
    case Q4_1:
      nibbles(p + 4, stride, out);
      out->scales[0] = halves(p, stride);
      out->minima[0] = halves(p + 2, stride);
      return;
    case Q5_0:
      nibbles(p + 6, stride, out);
      fifth_bits(p + 2, stride, out);
      out->scales[0] = halves(p, stride);
      return;
    case Q5_1:
      nibbles(p + 8, stride, out);
      fifth_bits(p + 4, stride, out);
      out->scales[0] = halves(p, stride);
      out->minima[0] = halves(p + 2, stride);
      return;
    case Q8_0:
      columns(p + 2, stride, out->weights);
      columns(p + 18, stride, out->weights + 4);
      for (int i = 0; i < 8; i++) out->weights[i] ^= all_ints((int32_t)SIGNED_AS);
      out->scales[0] = halves(p, stride);
      return;
    case IQ4_NL:
      looked_up_nibbles(p + 2, stride, IQ4_NL_TABLE, out);
      out->scales[0] = halves(p, stride);
      return;
    case MXFP4: {
      looked_up_nibbles(p + 1, stride, MXFP4_TABLE, out);
      Ints exponent = bytes(p, stride); /* of half a power of two; 0 and 1 are too small to be normal numbers */
      Ints is_small = exponent < all_ints(2);
      out->scales[0] = (Floats)((is_small & (all_ints(0x00200000) << (exponent & all_ints(1)))) | (~is_small & (exponent - 1) << 23));
      return;
    }
    case Q4_K:
      k_scales(p, stride, out);
      for (int pair = 0; pair < 4; pair++) {
        Ints packed[8];
        columns(p + 16 + 32 * pair, stride, packed);
        columns(p + 32 + 32 * pair, stride, packed + 4);
        for (int i = 0; i < 8; i++) {
          out[2 * pair].weights[i] = LOW(packed[i]);
          out[2 * pair + 1].weights[i] = LOW(SHIFTED(packed[i], 4));
        }
      }
      return;
    case Q5_K: {
      Ints high[8];
      k_scales(p, stride, out);
      columns(p + 16, stride, high);
      columns(p + 32, stride, high + 4);
      for (int pair = 0; pair < 4; pair++) {
        Ints packed[8];
        columns(p + 48 + 32 * pair, stride, packed);
        columns(p + 64 + 32 * pair, stride, packed + 4);
        for (int i = 0; i < 8; i++) {
          out[2 * pair].weights[i] = LOW(packed[i]) | (SHIFTED(high[i], 2 * pair) & EVERY(1)) << 4;
          out[2 * pair + 1].weights[i] = LOW(SHIFTED(packed[i], 4)) | (SHIFTED(high[i], 2 * pair + 1) & EVERY(1)) << 4;
        }
      }
      return;
    }
    case Q6_K: {
      Ints scales[4];
      Floats factor = halves(p + 208, stride);
      columns(p + 192, stride, scales);
      for (int half = 0; half < 2; half++) {
        Ints low[16], high[8];
        for (int i = 0; i < 4; i++) columns(p + 64 * half + 16 * i, stride, low + 4 * i);
        for (int i = 0; i < 2; i++) columns(p + 128 + 32 * half + 16 * i, stride, high + 4 * i);
        for (int quarter = 0; quarter < 4; quarter++) {
          Block *block = out + 4 * half + quarter;
          for (int i = 0; i < 8; i++) {
            Ints top = (SHIFTED(high[i], 2 * quarter) & EVERY(3)) << 4;
            block->weights[i] = LOW(SHIFTED(low[i + quarter % 2 * 8], quarter / 2 * 4)) | top;
          }
          for (int g = 0; g < 2; g++) block->scales[g] = factor * floats_of(signed_byte_of(scales, 8 * half + 2 * quarter + g));
        }
      }
      return;
    }
    case Q2_K: {
      Ints scales[4];
      Floats factor = halves(p + 80, stride), least = -halves(p + 82, stride);
      columns(p, stride, scales);
      for (int j = 0; j < 8; j++) {
        Ints packed[8];
        columns(p + 16 + j / 4 * 32, stride, packed);
        columns(p + 32 + j / 4 * 32, stride, packed + 4);
        for (int i = 0; i < 8; i++) out[j].weights[i] = SHIFTED(packed[i], j % 4 * 2) & EVERY(3);
        for (int g = 0; g < 2; g++) {
          Ints both = byte_of(scales, 2 * j + g);
          out[j].scales[g] = factor * floats_of(both & 15);
          out[j].minima[g] = least * floats_of(SHIFTED(both, 4));
        }
      }
      return;
    }
    case Q3_K: {
      Ints is_high[8], low[2], high;
      Floats factor = halves(p + 108, stride);
      columns(p, stride, is_high);
      columns(p + 16, stride, is_high + 4);
      low[0] = words(p + 96, stride), low[1] = words(p + 100, stride), high = words(p + 104, stride);
      for (int j = 0; j < 8; j++) {
        Ints packed[8];
        columns(p + 32 + j / 4 * 32, stride, packed);
        columns(p + 48 + j / 4 * 32, stride, packed + 4);
        for (int i = 0; i < 8; i++) {
          out[j].weights[i] = (SHIFTED(packed[i], j % 4 * 2) & EVERY(3)) | (SHIFTED(is_high[i], j) & EVERY(1)) << 2;
        }
        for (int g = 0; g < 2; g++) {
          int group = 2 * j + g;
          Ints first = SHIFTED(byte_of(low, group % 8), group / 8 * 4) & 15;
          Ints rest = SHIFTED(byte_of(&high, group % 4), group / 4 * 2) & 3;
          out[j].scales[g] = factor * floats_of((first | rest << 4) - 32);
        }
      }
      return;
    }
  }
}

static inline __attribute__((always_inline)) Format format_of(int type) {
  static const Format formats[NUM_INTEGER_TYPES] = {
    [Q4_0] = {18, 1, 1, 0, 0, 8},  [Q4_1] = {20, 1, 1, 1, 0, 0}, [Q5_0] = {22, 1, 1, 0, 0, 16},
    [Q5_1] = {24, 1, 1, 1, 0, 0},  [Q8_0] = {34, 1, 1, 0, 1, SIGNED_OFFSET}, [Q2_K] = {84, 8, 2, 1, 0, 0},
    [Q3_K] = {110, 8, 2, 0, 0, 4}, [Q4_K] = {144, 8, 1, 1, 0, 0}, [Q5_K] = {176, 8, 1, 1, 0, 0},
    [Q6_K] = {210, 8, 2, 0, 0, 32}, [IQ4_NL] = {18, 1, 1, 0, 1, SIGNED_OFFSET}, [MXFP4] = {17, 1, 1, 0, 1, SIGNED_OFFSET},
    [CODES4] = {16, 1, 1, 0, 0, 0, 1}, [CODES8] = {32, 1, 1, 0, 1, 0, 1},
  };
  return formats[type];
}

/* Add `num_blocks` blocks, the first of which is that of column 32 * at, times TILE rows of x from `row` on to their sums. */
static inline __attribute__((always_inline)) void accumulate(
    int type, int tile, const Block *blocks, int64_t at, int64_t num_blocks, const Activations *x, int64_t row, Floats *sums) {
  const Format format = format_of(type);
  const int64_t all = x->num_columns / BLOCK;
  const int32_t *quants = (const int32_t *)((type == CODES4 ? x->pairs : x->quants) + row * x->num_columns + BLOCK * at);
  const float *scales = x->scales + row * all + at;
  const int32_t *totals = x->sums + 2 * (row * all + at);
  Floats y[4];
  UNROLLED
  for (int i = 0; i < tile; i++) y[i] = sums[i];
  for (int64_t b = 0; b < num_blocks; b++) {
    const Block *block = blocks + b;
    UNROLLED
    for (int g = 0; g < format.groups; g++) {
      const int begin = 4 * g, end = format.groups == 1 ? 8 : begin + 4;
      Ints exact[4];
      UNROLLED
      for (int i = 0; i < tile; i++) {
        const int32_t *two = totals + 2 * (i * all + b);
        const int32_t sum = format.groups == 1 ? two[0] + two[1] : two[g];
        exact[i] = format.has_zeros ? (Ints)block->minima[0] * all_ints(-sum) : all_ints(-format.offset * sum);
      }
      UNROLLED
      for (int k = begin; k < end; k++) {
        UNROLLED
        for (int i = 0; i < tile; i++) {
          Ints four = all_ints(quants[i * all * 8 + 8 * b + k]);
          exact[i] = type == CODES8     ? dot_bytes(exact[i], block->weights[k], four)
                     : format.is_signed ? dot_signed(exact[i], block->weights[k], four)
                                        : dot(exact[i], block->weights[k], four);
        }
      }
      UNROLLED
      for (int i = 0; i < tile; i++) {
        float scale = scales[i * all + b];
        y[i] = fused(block->scales[g] * all_floats(scale), floats_of(exact[i]), y[i]);
        if (format.has_minima) {
          const int32_t *two = totals + 2 * (i * all + b);
          float sum = scale * (float)(format.groups == 1 ? two[0] + two[1] : two[g]);
          y[i] = fused(block->minima[g], all_floats(sum), y[i]);
        }
      }
    }
  }
  UNROLLED
  for (int i = 0; i < tile; i++) sums[i] = y[i];
}

static inline void write_lanes(const Output *output, int64_t row, int64_t column, int skipped, Floats values) {
  float *to = output->data + row * output->stride;
  if (output->places == NULL && skipped == 0) {
    __builtin_memcpy(to + column, &values, sizeof values);
    return;
  }
  for (int lane = skipped; lane < LANES; lane++) to[output->places == NULL ? column + lane : output->places[column + lane]] = values[lane];
}

/* Of a group of columns of LANES rows of codes. */
typedef struct {
  Floats scale;
  Ints zero;
  int64_t next; /* column with which the next group begins */
} Group;

/* Scales at `p`, each `stride` bytes behind that of the row before. */
static inline __attribute__((always_inline)) Floats scales_at(int type, const uint8_t *p, int64_t stride) {
  return type == F32 ? (Floats)words(p, stride) : type == F16 ? halves(p, stride) : (Floats)(shorts(p, stride) << 16);
}

static inline __attribute__((always_inline)) void next_group(int type, const Matrix *matrix, int64_t first, Group *group) {
  const int64_t number = group->next / matrix->group;
  group->scale = scales_at(matrix->scale_type, matrix->scales + first * matrix->scale_row + number * matrix->scale_group, matrix->scale_row);
  group->zero = all_ints(type == CODES4 ? 8 : 0);
  if (matrix->zeros != NULL) {
    group->zero = bytes(matrix->zeros + first * matrix->zero_row + number * matrix->zero_group, matrix->zero_row);
    if (type == CODES8) group->zero = ((group->zero ^ all_ints(matrix->is_unsigned ? 128 : 0)) << 24) >> 24;
  }
  if (type == CODES8) group->zero += SIGNED_OFFSET;
  group->next += matrix->group;
}

static inline __attribute__((always_inline)) void unpack_codes(int type, const Matrix *matrix, int64_t first, int64_t b, Group *group, Block *out) {
  const uint8_t *p = matrix->data + first * matrix->row_bytes + b * format_of(type).num_bytes;
  if (BLOCK * b == group->next) next_group(type, matrix, first, group);
  out->scales[0] = group->scale;
  out->minima[0] = (Floats)group->zero;
  if (type == CODES4) {
    Ints packed[4];
    columns(p, matrix->row_bytes, packed);
    for (int i = 0; i < 4; i++) {
      out->weights[2 * i] = LOW(packed[i]);
      out->weights[2 * i + 1] = LOW(SHIFTED(packed[i], 4));
    }
  } else {
    const Ints turned = all_ints((int32_t)(matrix->is_unsigned ? SIGNED_AS ^ 0x80808080u : SIGNED_AS));
    columns(p, matrix->row_bytes, out->weights);
    columns(p + 16, matrix->row_bytes, out->weights + 4);
    for (int i = 0; i < 8; i++) out->weights[i] ^= turned;
  }
}

/* Unpack what the file has at block `b` of the rows from `first` on, and ask for the same of the rows behind them: they are far apart, so
   that the processor does not guess that they come next, and the product would wait for memory in every block. */
static inline __attribute__((always_inline)) void unpack_ahead(int type, const Matrix *matrix, int64_t first, int64_t b, Group *group, Block *out) {
  const Format format = format_of(type);
  const int64_t num_bytes = LANES * format.num_bytes, byte = b / format.num_blocks * format.num_bytes;
  const uint8_t *data = matrix->data + first * matrix->row_bytes;
  for (int64_t i = 0; i < num_bytes; i += 64) __builtin_prefetch(data + LANES * (matrix->row_bytes + byte) + i, 0, 3);
  if (format.has_zeros) {
    unpack_codes(type, matrix, first, b, group, out);
  } else {
    unpack(type, data + byte, matrix->row_bytes, out);
  }
}

/* See InstructionSet.multiply. */
static inline __attribute__((always_inline)) void multiply_type(
    int type, const Matrix *matrix, int64_t first, int64_t fresh, const Activations *x, const Output *output, float *scratch) {
  const Format format = format_of(type);
  const int64_t num_blocks = matrix->num_columns / BLOCK, column = matrix->first_column + first;
  const int skipped = (int)(fresh - first);
  Group group = {0};
  if (x->num_rows == 1 && format.num_blocks == 1) { /* blocks stay in registers */
    Floats sum = all_floats(0.0f);
    for (int64_t b = 0; b < num_blocks; b++) {
      Block block;
      unpack_ahead(type, matrix, first, b, &group, &block);
      accumulate(type, 1, &block, b, 1, x, 0, &sum);
    }
    write_lanes(output, 0, column, skipped, sum);
    return;
  }
  Floats *sums = (Floats *)scratch;
  Block blocks[BLOCKS_AT_ONCE];
  for (int64_t row = 0; row < x->num_rows; row++) sums[row] = all_floats(0.0f);
  for (int64_t at = 0; at < num_blocks; at += BLOCKS_AT_ONCE) {
    int64_t count = num_blocks - at < BLOCKS_AT_ONCE ? num_blocks - at : BLOCKS_AT_ONCE, row = 0;
    for (int64_t b = 0; b < count; b += format.num_blocks) {
      unpack_ahead(type, matrix, first, at + b, &group, blocks + b);
    }
    for (; row + 4 <= x->num_rows; row += 4) accumulate(type, 4, blocks, at, count, x, row, sums + row);
    for (; row < x->num_rows; row++) accumulate(type, 1, blocks, at, count, x, row, sums + row);
  }
  for (int64_t row = 0; row < x->num_rows; row++) write_lanes(output, row, column, skipped, sums[row]);
}

static void multiply(const Matrix *matrix, int64_t first, int64_t fresh, const Activations *x, const Output *output, float *scratch) {
  switch (matrix->type) {
#define CASE(type) case type: multiply_type(type, matrix, first, fresh, x, output, scratch); return;
    CASE(Q4_0) CASE(Q4_1) CASE(Q5_0) CASE(Q5_1) CASE(Q8_0) CASE(Q2_K) CASE(Q3_K) CASE(Q4_K) CASE(Q5_K) CASE(Q6_K) CASE(IQ4_NL) CASE(MXFP4)
    CASE(CODES4) CASE(CODES8)
#undef CASE
  }
}

/* ---- matrices of floating-point numbers

   Here lanes are columns: y is the sum of sixteen partial sums, of the columns i, i + 16, i + 32, ..., each by fma in their order;
   then the sums i and i + 8 are added, i and i + 4, i and i + 2, 0 and 1. Small floats are multiplied by their scale first. */

#define PARTIAL (16 / LANES)
#define ROWS 4                    /* of the matrix that are read together */
#define TILE (LANES == 16 ? 4 : 1) /* of activations that they are multiplied by together */
#define AHEAD 2                   /* as many times ROWS rows further on, memory is asked for */

static inline __attribute__((always_inline)) Floats some_floats(int type, const uint8_t *p) {
  if (type == F32) {
    Floats values;
    __builtin_memcpy(&values, p, sizeof values);
    return values;
  }
  return type == F16 ? converted_halves(p) : type == BF16 ? (Floats)(extended(p) << 16) : float8(p);
}

static inline float one_float(int type, const uint8_t *p) {
  uint8_t bytes[64] = {0};
  __builtin_memcpy(bytes, p, type == F32 ? 4 : 2);
  return some_floats(type, bytes)[0];
}

static inline int width_of(int type) { return type == F32 ? 4 : type == FLOAT8 ? 1 : 2; }

/* Of small floats: the scale of a group of a row, times what `float8` leaves out. */
static inline Floats scale_of_row(const Matrix *matrix, int64_t row, int64_t column) {
  const uint8_t *p = matrix->scales + row * matrix->scale_row + column / matrix->group * matrix->scale_group;
  float scale;
  if (matrix->scale_type == F32) {
    __builtin_memcpy(&scale, p, sizeof scale);
  } else {
    scale = (matrix->scale_type == F16 ? halves(p, 0) : (Floats)(shorts(p, 0) << 16))[0];
  }
  return all_floats(scale * 256.0f);
}

static inline float total(const Floats *partial) {
  Floats sums[PARTIAL];
  for (int p = 0; p < PARTIAL; p++) sums[p] = partial[p];
  for (int half = PARTIAL / 2; half > 0; half /= 2) {
    for (int p = 0; p < half; p++) sums[p] += sums[p + half];
  }
  return lanes_added(sums[0]);
}

/* `rows` rows of the matrix from `first` on, which lie at `data`, times `tile` rows of x. */
static inline __attribute__((always_inline)) void multiply_tile(
    int type, int rows, int tile, const uint8_t *data, const Matrix *matrix, int64_t first, const float *x, int64_t stride, float (*out)[ROWS]) {
  const int width = width_of(type);
  int64_t next = 0; /* column with which the next group of scales begins */
  Floats scales[ROWS] = {0};
  Floats sums[ROWS][TILE][PARTIAL];
  UNROLLED
  for (int r = 0; r < rows; r++) {
    UNROLLED
    for (int i = 0; i < tile; i++) {
      UNROLLED
      for (int p = 0; p < PARTIAL; p++) sums[r][i][p] = all_floats(0.0f);
    }
  }
  int64_t column = 0;
  for (; column + 16 <= matrix->num_columns; column += 16) {
    if (type == FLOAT8 && column == next) {
      for (int r = 0; r < rows; r++) scales[r] = scale_of_row(matrix, first + r, column);
      next += matrix->group;
    }
    for (int at = 0; at < rows * width * 16; at += 64) __builtin_prefetch(data + AHEAD * rows * matrix->row_bytes + rows * width * column + at, 0, 3);
    UNROLLED
    for (int p = 0; p < PARTIAL; p++) {
      int64_t at = column + p * LANES;
      UNROLLED
      for (int r = 0; r < rows; r++) {
        Floats weights = some_floats(type, data + r * matrix->row_bytes + width * at);
        if (type == FLOAT8) weights *= scales[r];
        UNROLLED
        for (int i = 0; i < tile; i++) sums[r][i][p] = fused(weights, some_floats(F32, (const uint8_t *)(x + i * stride + at)), sums[r][i][p]);
      }
    }
  }
  if (column < matrix->num_columns) {
    uint8_t rest[64] = {0};
    float some[16] = {0};
    UNROLLED
    for (int r = 0; r < rows; r++) {
      __builtin_memcpy(rest, data + r * matrix->row_bytes + width * column, (size_t)(width * (matrix->num_columns - column)));
      UNROLLED
      for (int i = 0; i < tile; i++) {
        __builtin_memcpy(some, x + i * stride + column, (size_t)(4 * (matrix->num_columns - column)));
        UNROLLED
        for (int p = 0; p < PARTIAL; p++) {
          sums[r][i][p] = fused(some_floats(type, rest + width * p * LANES), some_floats(F32, (const uint8_t *)(some + p * LANES)), sums[r][i][p]);
        }
      }
    }
  }
  UNROLLED
  for (int i = 0; i < tile; i++) {
    UNROLLED
    for (int r = 0; r < rows; r++) out[i][r] = total(sums[r][i]);
  }
}

/* Small floats times their scales, as float32 [count, num_columns]. */
static void decode_float8(const Matrix *matrix, int64_t first, int64_t count, float *out) {
  for (int64_t row = first; row < first + count; row++, out += matrix->num_columns) {
    for (int64_t begin = 0, end; begin < matrix->num_columns; begin = end) {
      const Floats scale = scale_of_row(matrix, row, begin);
      end = begin + matrix->group < matrix->num_columns ? begin + matrix->group : matrix->num_columns;
      for (int64_t i = begin; i < end; i += LANES) {
        Floats values = float8(matrix->data + row * matrix->row_bytes + i) * scale;
        __builtin_memcpy(out + i, &values, sizeof values);
      }
    }
  }
}

static inline __attribute__((always_inline)) void multiply_float_type(
    int type, const Matrix *matrix, int64_t first, int64_t count, const float *x, int64_t stride, int64_t num_rows, const Output *output) {
  for (int64_t r = 0; r < count; r += ROWS) {
    const uint8_t *data = matrix->data + (first + r) * matrix->row_bytes;
    const int64_t rows = count - r < ROWS ? count - r : ROWS, column = matrix->first_column + first + r;
    for (int64_t row = 0, tile; row < num_rows; row += tile) {
      float out[TILE][ROWS];
      tile = num_rows - row < TILE ? 1 : TILE;
      const float *some = x + row * stride;
      if (rows == ROWS && tile == TILE) {
        multiply_tile(type, ROWS, TILE, data, matrix, first + r, some, stride, out);
      } else if (rows == ROWS) {
        multiply_tile(type, ROWS, 1, data, matrix, first + r, some, stride, out);
      } else {
        tile = 1;
        for (int64_t i = 0; i < rows; i++) {
          float one[1][ROWS];
          multiply_tile(type, 1, 1, data + i * matrix->row_bytes, matrix, first + r + i, some, stride, one);
          out[0][i] = one[0][0];
        }
      }
      for (int64_t i = 0; i < tile; i++) {
        float *to = output->data + (row + i) * output->stride;
        for (int64_t j = 0; j < rows; j++) to[output->places == NULL ? column + j : output->places[column + j]] = out[i][j];
      }
    }
  }
}

/* Rows of small floats decoded once for all rows of x. Returns 0 where there is no memory for them. */
static int multiply_decoded(const Matrix *matrix, int64_t first, int64_t count, const float *x, int64_t stride, int64_t num_rows, const Output *output) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  float *numbers = maskwright_kept(&memory, &size, (size_t)(count * matrix->num_columns) * sizeof *numbers);
  if (numbers == NULL) return 0;
  decode_float8(matrix, first, count, numbers);
  Matrix decoded = *matrix;
  decoded.data = (const uint8_t *)numbers, decoded.num_rows = count, decoded.row_bytes = 4 * matrix->num_columns;
  decoded.type = F32, decoded.first_column += (int32_t)first;
  multiply_float_type(F32, &decoded, 0, count, x, stride, num_rows, output);
  return 1;
}

static void multiply_floats(const Matrix *matrix, int64_t first, int64_t count, const float *x, int64_t stride, int64_t num_rows, const Output *output) {
  if (matrix->type == FLOAT8 && num_rows > TILE && multiply_decoded(matrix, first, count, x, stride, num_rows, output)) return;
  switch (matrix->type) {
#define CASE(type) case type: multiply_float_type(type, matrix, first, count, x, stride, num_rows, output); return;
    CASE(F32) CASE(F16) CASE(BF16) CASE(FLOAT8)
#undef CASE
  }
}

static inline __attribute__((always_inline)) void read_blocks(int type, const uint8_t *data, int64_t num_columns, float factor, float *out) {
  const Format format = format_of(type);
  for (int64_t b = 0; b < num_columns / BLOCK; b += format.num_blocks, data += format.num_bytes) {
    Block blocks[8];
    unpack(type, data, 0, blocks); /* the same in all lanes */
    for (const Block *block = blocks; block < blocks + format.num_blocks; block++) {
      for (int column = 0; column < BLOCK; column++, out++) {
        const int group = format.groups == 1 ? 0 : column / 16, byte = block->weights[column / 4][0] >> column % 4 * 8 & 255;
        float weight = block->scales[group][0] * (float)(format.is_signed && SIGNED_OFFSET == 0 ? (int8_t)byte : byte - format.offset);
        *out = (format.has_minima ? weight + block->minima[group][0] : weight) * factor;
      }
    }
  }
}

/* See InstructionSet.read_row: what `dequantize` of kernels/quantized gives. */
static void read_row(const Matrix *matrix, int64_t row, float factor, float *out) {
  const uint8_t *data = matrix->data + row * matrix->row_bytes;
  switch (matrix->type) {
#define CASE(type) case type: read_blocks(type, data, matrix->num_columns, factor, out); return;
    CASE(Q4_0) CASE(Q4_1) CASE(Q5_0) CASE(Q5_1) CASE(Q8_0) CASE(Q2_K) CASE(Q3_K) CASE(Q4_K) CASE(Q5_K) CASE(Q6_K) CASE(IQ4_NL) CASE(MXFP4)
#undef CASE
#define CASE(type) case type: for (int64_t i = 0; i < matrix->num_columns; i++) out[i] = one_float(type, data + i * width_of(type)) * factor; return;
    CASE(F32) CASE(F16) CASE(BF16)
#undef CASE
  }
}

/* Round a row of activations to 8 bits, 32 at a time: the largest becomes 127. */
static void quantize(const float *x, int64_t num_columns, int8_t *quants, float *scales, int32_t *sums) {
  for (int64_t b = 0; b < num_columns / BLOCK; b++, x += BLOCK, quants += BLOCK, sums += 2) {
    uint32_t bits[BLOCK], most = 0;
    __builtin_memcpy(bits, x, sizeof bits);
    for (int i = 0; i < BLOCK; i++) most = (bits[i] & 0x7FFFFFFF) > most ? bits[i] & 0x7FFFFFFF : most; /* NaN is the most */
    float largest;
    __builtin_memcpy(&largest, &most, sizeof largest);
    float inverse = largest < 1e-30f ? 0.0f : 127.0f / largest;
    scales[b] = largest < 1e-30f ? 0.0f : largest / 127.0f;
    for (int half = 0; half < 2; half++) {
      int32_t sum = 0;
      for (int i = 16 * half; i < 16 * half + 16; i++) {
        int32_t quant = (int32_t)__builtin_rintf(x[i] * inverse);
        quants[i] = (int8_t)quant;
        sum += quant;
      }
      sums[half] = sum;
    }
  }
}

/* ---- activations on the grid that a checkpoint calls for: the formulas are those of kernels/quantized/rounding.py */

static float largest_of(const float *x, int64_t count) {
  uint32_t most = 0;
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    __builtin_memcpy(&bits, x + i, sizeof bits);
    most = (bits & 0x7FFFFFFF) > most ? bits & 0x7FFFFFFF : most; /* NaN is the most */
  }
  float largest;
  __builtin_memcpy(&largest, &most, sizeof largest);
  return largest;
}

/* Of numbers that have one together, on a grid from -half to half. Where all are zero any will do. */
static float scale_of(const Input *input, const float *x, int64_t count, float half) {
  if (input->scale != 0.0f) return input->scale;
  float largest = largest_of(x, count);
  if (largest > input->ceiling) largest = input->ceiling;
  float scale = largest / half;
  return scale == 0.0f ? 1.1920929e-07f : scale;
}

static void round_to_int8(const Input *input, const float *x, int64_t num_columns, int8_t *quants, float *scales, int32_t *sums) {
  for (int64_t begin = 0, end; begin < num_columns; begin = end) {
    end = begin + input->group < num_columns ? begin + input->group : num_columns;
    const float scale = scale_of(input, x + begin, end - begin, 127.5f);
    for (int64_t i = begin; i < end; i++) {
      float number = x[i] / scale;
      number = number < -128.0f ? -128.0f : number > 127.0f ? 127.0f : number;
      quants[i] = number == number ? (int8_t)(int32_t)__builtin_rintf(number) : 0; /* of NaN the scale tells */
    }
    for (int64_t half = begin / 16; half < end / 16; half++) {
      int32_t sum = 0;
      for (int i = 0; i < 16; i++) sum += quants[16 * half + i];
      sums[half] = sum;
      scales[half / 2] = scale;
    }
  }
}

static void round_to_float8(const Input *input, const float *x, int64_t num_columns, float *out) {
  for (int64_t begin = 0, end; begin < num_columns; begin = end) {
    end = begin + input->group < num_columns ? begin + input->group : num_columns;
    const float scale = scale_of(input, x + begin, end - begin, 448.0f);
    for (int64_t i = begin; i < end; i++) {
      float number = x[i] / scale;
      number = number < -448.0f ? -448.0f : number > 448.0f ? 448.0f : number;
      out[i] = nearest_float8(number) * scale;
    }
  }
}
