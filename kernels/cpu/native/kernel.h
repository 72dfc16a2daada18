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

#define EVERY(byte) all_ints((int32_t)((byte) * 0x01010101u))
#define LOW(v) ((v) & EVERY(15))
#define SHIFTED(v, n) ((Ints)((Words)(v) >> (n)))
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));

#define INTEGER_TYPES \
  CASE(Q4_0) CASE(Q4_1) CASE(Q5_0) CASE(Q5_1) CASE(Q8_0) CASE(Q2_K) CASE(Q3_K) CASE(Q4_K) CASE(Q5_K) CASE(Q6_K) CASE(IQ4_NL) CASE(MXFP4) \
  CASE(CODES2) CASE(CODES3) CASE(CODES4) CASE(CODES5) CASE(CODES6) CASE(CODES7) CASE(CODES8) CASE(FLOAT4) CASE(NF4)

INLINE Format format_of(int type) {
  static const Format formats[NUM_INTEGER_TYPES] = {
    [Q4_0] = {18, 1, 1, 0, 0, 8},  [Q4_1] = {20, 1, 1, 1, 0, 0}, [Q5_0] = {22, 1, 1, 0, 0, 16},
    [Q5_1] = {24, 1, 1, 1, 0, 0},  [Q8_0] = {34, 1, 1, 0, 1, SIGNED_OFFSET}, [Q2_K] = {84, 8, 2, 1, 0, 0},
    [Q3_K] = {110, 8, 2, 0, 0, 4}, [Q4_K] = {144, 8, 1, 1, 0, 0}, [Q5_K] = {176, 8, 1, 1, 0, 0},
    [Q6_K] = {210, 8, 2, 0, 0, 32}, [IQ4_NL] = {18, 1, 1, 0, 1, SIGNED_OFFSET}, [MXFP4] = {17, 1, 1, 0, 1, SIGNED_OFFSET},
    [CODES2] = {8, 1, 1, 0, 0, 0, 1}, [CODES3] = {12, 1, 1, 0, 0, 0, 1}, [CODES4] = {16, 1, 1, 0, 0, 0, 1}, [CODES5] = {20, 1, 1, 0, 0, 0, 1},
    [CODES6] = {24, 1, 1, 0, 0, 0, 1}, [CODES7] = {28, 1, 1, 0, 0, 0, 1}, [CODES8] = {32, 1, 1, 0, 1, 0, 1},
    [FLOAT4] = {16, 1, 1, 0, 1, 0, 1}, [NF4] = {16, 1, 1, 0, 1, 0, 1},
  };
  return formats[type];
}

/* Of types whose scales are beside the codes. */
INLINE int bits_of(int type) { return (int)(format_of(type).num_bytes / 4); }

/* Blocks of 32 columns in a run, of as many bytes as vectors of 16 have, where the type allows it. */
INLINE int run_length(int type) {
  const Format format = format_of(type);
  if (format.num_blocks > 1 || format.has_zeros) return format.num_blocks;
  const int64_t size = format.num_bytes; /* no loop: what follows is unrolled by this number */
  return size % 16 == 0 ? 1 : size % 8 == 0 ? 2 : size % 4 == 0 ? 4 : size % 2 == 0 ? 8 : 16;
}

/* Blocks are unpacked in runs of so many bytes that vectors of 16 bytes hold them whole: `words` are what the run has of each row, transposed,
   as far as the blocks that were asked for reach. */
#define RUN_WORDS 68 /* of the longest run */
typedef struct {
  Ints words[RUN_WORDS];
  Floats scales[8], minima[8];
} Fetched;

/* Words that begin at any byte of a run. */
INLINE Ints word_at(const Fetched *run, int byte) {
  const Ints *words = run->words + byte / 4;
  const int shift = byte % 4 * 8;
  return shift == 0 ? words[0] : SHIFTED(words[0], shift) | words[1] << (32 - shift);
}

INLINE Floats half_at(const Fetched *run, int byte) {
  const Ints word = run->words[byte / 4];
  return from_halves(byte % 4 == 0 ? word & all_ints(0xFFFF) : SHIFTED(word, 16));
}

/* Thirty-two codes of 4 bits: those of the low halves of 16 bytes, then those of the high ones. */
INLINE void nibbles(const Fetched *run, int byte, Block *out) {
  UNROLLED
  for (int i = 0; i < 4; i++) {
    const Ints packed = word_at(run, byte + 4 * i);
    out->weights[i] = LOW(packed);
    out->weights[i + 4] = LOW(SHIFTED(packed, 4));
  }
}

INLINE void looked_up_nibbles(const Fetched *run, int byte, const int8_t *table, Block *out) {
  nibbles(run, byte, out);
  UNROLLED
  for (int i = 0; i < 8; i++) out->weights[i] = looked_up(table, out->weights[i]);
}

INLINE void fifth_bits(const Fetched *run, int byte, Block *out) {
  const Ints high = word_at(run, byte);
  UNROLLED
  for (int i = 0; i < 8; i++) out->weights[i] |= four_bits_apart(SHIFTED(high, 4 * i)) << 4;
}

/* Six-bit scales and minima of Q4_K and Q5_K: `word` has the second to fourth four bytes of the header. */
INLINE void six_bits(const Ints *word, int j, Ints *scale, Ints *minimum) {
  if (j < 4) {
    *scale = SHIFTED(word[1], 8 * j) & all_ints(63);
    *minimum = SHIFTED(word[2], 8 * j) & all_ints(63);
  } else {
    int shift = 8 * (j - 4);
    *scale = (SHIFTED(word[3], shift) & all_ints(15)) | (SHIFTED(word[1], shift + 2) & all_ints(48));
    *minimum = (SHIFTED(word[3], shift + 4) & all_ints(15)) | (SHIFTED(word[2], shift + 2) & all_ints(48));
  }
}

INLINE void k_scales(Fetched *run) {
  const Ints *word = run->words;
  Ints scale, minimum;
  const Floats factor = from_halves(word[0] & all_ints(0xFFFF)), least = -from_halves(SHIFTED(word[0], 16));
  UNROLLED
  for (int j = 0; j < 8; j++) {
    six_bits(word, j, &scale, &minimum);
    run->scales[j] = factor * floats_of(scale);
    run->minima[j] = least * floats_of(minimum);
  }
}

/* Numbers that are looked up, as products take them. */
#define AS(number) (int8_t)((uint8_t)(number) ^ (uint8_t)SIGNED_AS)
static const int8_t IQ4_NL_TABLE[16] = {AS(-127), AS(-104), AS(-83), AS(-65), AS(-49), AS(-35), AS(-22), AS(-10), AS(1), AS(13), AS(25), AS(38), AS(53), AS(69), AS(89), AS(113)};
static const int8_t MXFP4_TABLE[16] = {AS(0), AS(1), AS(2), AS(3), AS(4), AS(6), AS(8), AS(12), AS(0), AS(-1), AS(-2), AS(-3), AS(-4), AS(-6), AS(-8), AS(-12)};

INLINE Ints byte_of(const Ints *vectors, int i) { return SHIFTED(vectors[i / 4], i % 4 * 8) & all_ints(255); }
INLINE Ints signed_byte_of(const Ints *vectors, int i) { return (vectors[i / 4] << (24 - i % 4 * 8)) >> 24; }

/* Sixteen bytes of a run, from `byte` on. */
INLINE void fetch(const uint8_t *p, Stride stride, int byte, Fetched *run) { columns(p + byte, stride, run->words + byte / 4); }

/* What of a block of 256 is needed from its `j`-th 32 columns on. */
INLINE void fetch_of_256(int type, const uint8_t *p, Stride stride, int j, Fetched *run) {
  const int half = j / 4;
  switch (type) {
    case Q4_K: case Q5_K: {
      const int codes = type == Q4_K ? 16 : 48;
      if (j == 0) {
        for (int byte = 0; byte < codes; byte += 16) fetch(p, stride, byte, run);
        k_scales(run);
      }
      if (j % 2 == 0) fetch(p, stride, codes + 16 * j, run), fetch(p, stride, codes + 16 + 16 * j, run);
      return;
    }
    case Q6_K:
      if (j == 0) {
        fetch(p, stride, 192, run);
        run->scales[0] = halves(p + 208, stride);
      }
      if (j % 4 == 0) fetch(p, stride, 128 + 32 * half, run), fetch(p, stride, 144 + 32 * half, run);
      if (j % 4 < 2) fetch(p, stride, 64 * half + 32 * (j % 4), run), fetch(p, stride, 64 * half + 32 * (j % 4) + 16, run);
      return;
    case Q2_K:
      if (j == 0) {
        fetch(p, stride, 0, run);
        run->scales[0] = halves(p + 80, stride), run->minima[0] = -halves(p + 82, stride);
      }
      if (j % 4 == 0) fetch(p, stride, 16 + 32 * half, run), fetch(p, stride, 32 + 32 * half, run);
      return;
    case Q3_K:
      if (j == 0) {
        fetch(p, stride, 0, run), fetch(p, stride, 16, run);
        columns(p + 94, stride, run->words + 24); /* two bytes, then twelve of scales and the factor */
        run->scales[0] = from_halves(SHIFTED(run->words[27], 16));
        for (int i = 24; i < 27; i++) run->words[i] = SHIFTED(run->words[i], 16) | run->words[i + 1] << 16;
      }
      if (j % 4 == 0) fetch(p, stride, 32 + 32 * half, run), fetch(p, stride, 48 + 32 * half, run);
      return;
  }
}

/* The `j`-th 32 columns of the run at `p`; those before were unpacked before. */
INLINE void unpack(int type, const uint8_t *p, Stride stride, int j, Fetched *run, Block *out) {
  const Format format = format_of(type);
  const int at = (int)(j * format.num_bytes); /* of types whose blocks have 32 columns */
  const Ints *words = run->words;
  if (format.num_blocks == 1) {
    for (int byte = (at + 15) / 16 * 16; byte < at + format.num_bytes; byte += 16) fetch(p, stride, byte, run);
  } else {
    fetch_of_256(type, p, stride, j, run);
  }
  switch (type) {
    case Q4_0:
      nibbles(run, at + 2, out);
      out->scales[0] = half_at(run, at);
      return;
    case Q4_1:
      nibbles(run, at + 4, out);
      out->scales[0] = half_at(run, at);
      out->minima[0] = half_at(run, at + 2);
      return;
    case Q5_0:
      nibbles(run, at + 6, out);
      fifth_bits(run, at + 2, out);
      out->scales[0] = half_at(run, at);
      return;
    case Q5_1:
      nibbles(run, at + 8, out);
      fifth_bits(run, at + 4, out);
      out->scales[0] = half_at(run, at);
      out->minima[0] = half_at(run, at + 2);
      return;
    case Q8_0:
      UNROLLED
      for (int i = 0; i < 8; i++) out->weights[i] = word_at(run, at + 2 + 4 * i) ^ all_ints((int32_t)SIGNED_AS);
      out->scales[0] = half_at(run, at);
      return;
    case IQ4_NL:
      looked_up_nibbles(run, at + 2, IQ4_NL_TABLE, out);
      out->scales[0] = half_at(run, at);
      return;
    case MXFP4: {
      looked_up_nibbles(run, at + 1, MXFP4_TABLE, out);
      const Ints exponent = byte_of(words, at); /* of half a power of two; 0 and 1 are too small to be normal numbers */
      const Ints is_small = exponent < all_ints(2);
      out->scales[0] = (Floats)((is_small & (all_ints(0x00200000) << (exponent & all_ints(1)))) | (~is_small & (exponent - 1) << 23));
      return;
    }
    case Q4_K: case Q5_K: {
      const Ints *packed = words + (type == Q4_K ? 4 : 12) + j / 2 * 8, *high = words + 4;
      UNROLLED
      for (int i = 0; i < 8; i++) {
        out->weights[i] = LOW(SHIFTED(packed[i], j % 2 * 4));
        if (type == Q5_K) out->weights[i] |= (j < 4 ? high[i] << (4 - j) : SHIFTED(high[i], j - 4)) & EVERY(16);
      }
      out->scales[0] = run->scales[j];
      out->minima[0] = run->minima[j];
      return;
    }
    case Q6_K: {
      const int half = j / 4, quarter = j % 4;
      const Ints *low = words + 16 * half + quarter % 2 * 8, *high = words + 32 + 8 * half;
      UNROLLED
      for (int i = 0; i < 8; i++) {
        const Ints top = quarter < 2 ? high[i] << (4 - 2 * quarter) : SHIFTED(high[i], 2 * quarter - 4);
        out->weights[i] = LOW(SHIFTED(low[i], quarter / 2 * 4)) | (top & EVERY(48));
      }
      for (int g = 0; g < 2; g++) out->scales[g] = run->scales[0] * floats_of(signed_byte_of(words + 48, 2 * j + g));
      return;
    }
    case Q2_K: {
      UNROLLED
      for (int i = 0; i < 8; i++) out->weights[i] = SHIFTED(words[4 + j / 4 * 8 + i], j % 4 * 2) & EVERY(3);
      for (int g = 0; g < 2; g++) {
        const Ints both = byte_of(words, 2 * j + g);
        out->scales[g] = run->scales[0] * floats_of(both & 15);
        out->minima[g] = run->minima[0] * floats_of(SHIFTED(both, 4));
      }
      return;
    }
    case Q3_K: {
      UNROLLED
      for (int i = 0; i < 8; i++) {
        const Ints top = j < 3 ? words[i] << (2 - j) : SHIFTED(words[i], j - 2);
        out->weights[i] = (SHIFTED(words[8 + j / 4 * 8 + i], j % 4 * 2) & EVERY(3)) | (top & EVERY(4));
      }
      for (int g = 0; g < 2; g++) {
        const int group = 2 * j + g;
        const Ints first = SHIFTED(byte_of(words + 24, group % 8), group / 8 * 4) & 15;
        const Ints rest = SHIFTED(byte_of(words + 26, group % 4), group / 4 * 2) & 3;
        out->scales[g] = run->scales[0] * floats_of((first | rest << 4) - 32);
      }
      return;
    }
  }
}

/* The numbers of NF4 times 32512, which are 256 * high + low: rounded to 16 bits, as close as a scale of float16 is. */
static const int8_t NF4_HIGH[16] = {AS(-127), AS(-88), AS(-67), AS(-50), AS(-36), AS(-23), AS(-12), AS(0), AS(10), AS(20), AS(31), AS(43), AS(56), AS(71), AS(92), AS(127)};
static const int8_t NF4_LOW[16] = {AS(0), AS(-107), AS(81), AS(-40), AS(-32), AS(-119), AS(112), AS(0), AS(27), AS(112), AS(66), AS(-22), AS(-8), AS(116), AS(-47), AS(0)};

/* Add `num_blocks` blocks, the first of which is that of column 32 * at, times TILE rows of x from `row` on to their sums. */
INLINE void accumulate(
    int type, int tile, const Block *blocks, int64_t at, int64_t num_blocks, const Activations *x, int64_t row, Floats *sums) {
  const Format format = format_of(type);
  const int64_t all = x->num_columns / BLOCK;
  const int32_t *quants = (const int32_t *)((are_pairs(type) ? x->pairs : shares_bytes(type) ? x->turned : x->quants) + row * x->num_columns + BLOCK * at);
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
      Ints exact[4], high[4]; /* of NF4 */
      UNROLLED
      for (int i = 0; i < tile; i++) {
        const int32_t *two = totals + 2 * (i * all + b);
        const int32_t sum = format.groups == 1 ? two[0] + two[1] : two[g];
        exact[i] = format.has_zeros ? (Ints)block->minima[0] * all_ints(-sum) : all_ints(-format.offset * sum);
        high[i] = exact[i];
      }
      UNROLLED
      for (int k = begin; k < end; k++) {
        const Ints weights = type == NF4 ? looked_up(NF4_LOW, block->weights[k]) : block->weights[k];
        const Ints more = type == NF4 ? looked_up(NF4_HIGH, block->weights[k]) : weights;
        UNROLLED
        for (int i = 0; i < tile; i++) {
          Ints four = all_ints(quants[i * all * 8 + 8 * b + k]);
          exact[i] = type == CODES8     ? dot_bytes(exact[i], weights, four)
                     : format.is_signed ? dot_signed(exact[i], weights, four)
                                        : dot(exact[i], weights, four);
          if (type == NF4) high[i] = dot_signed(high[i], more, four);
        }
      }
      UNROLLED
      for (int i = 0; type == NF4 && i < tile; i++) exact[i] += high[i] << 8;
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

INLINE void write_lanes(const Output *output, int64_t row, int64_t column, int skipped, Floats values) {
  float *to = output->data + row * output->stride;
  if (output->places == NULL && skipped == 0) {
    __builtin_memcpy(to + column, &values, sizeof values);
    return;
  }
  for (int lane = skipped; lane < LANES; lane++) to[output->places == NULL ? column + lane : output->places[column + lane]] = values[lane];
}

/* Where a run is read from. */
typedef struct {
  const uint8_t *data;
  Stride stride;
} Source;

/* What is beside the codes of LANES rows: of the groups of columns from `begin` to `end`. */
#define GROUPS 16
typedef struct {
  Floats scales[GROUPS];
  Ints zeros[GROUPS];
  int64_t begin, end, next, next_column; /* of the group that comes next: its number, and the column with which it begins */
  Floats scale; /* of the group that is here */
  Ints zero;
} Groups;

/* Scales in the lowest bits of lanes. */
INLINE Floats scales_of(int type, Ints lowest) {
  if (type == EXPONENT8) {
    const Ints exponent = lowest & all_ints(255), is_other = (exponent == all_ints(0)) | (exponent == all_ints(255)); /* subnormal; no number */
    return (Floats)(exponent << 23 | (is_other & all_ints(0x00400000)));
  }
  return type == F32 ? (Floats)lowest : type == F16 ? from_halves(lowest & all_ints(0xFFFF)) : (Floats)(lowest << 16);
}

/* Numbers of `size` bytes that lie beside rows, of some groups, in the lowest bits of lanes; those of a row may be apart, or the same for all. */
static void read_beside(const uint8_t *p, int64_t row_bytes, int64_t step, int64_t num_groups, int size, int64_t begin, int64_t end, Ints *out) {
  const Stride stride = stride_of(row_bytes);
  if (step != size || row_bytes < num_groups * size || num_groups * size < 16) {
    for (int64_t i = begin; i < end; i++) {
      const uint8_t *at = p + i * step;
      out[i - begin] = size == 4 ? words(at, stride) : size == 2 ? shorts(at, stride) : bytes(at, stride);
    }
    return;
  }
  Ints some[4];
  for (int64_t i = begin, last = 0, first = 0; i < end; i++) {
    if (i >= last) {
      first = i < num_groups - 16 / size ? i : num_groups - 16 / size, last = first + 16 / size;
      columns(p + first * size, stride, some);
    }
    const int byte = (int)(i - first) * size;
    out[i - begin] = SHIFTED(some[byte / 4], byte % 4 * 8);
  }
}

/* What codes count from where no zero point is stored, as they are multiplied. */
INLINE int middle_of(int type) { return type == CODES8 ? 0 : format_of(type).is_signed ? SIGNED_OFFSET : 1 << (bits_of(type) - 1); }

static __attribute__((noinline)) void read_groups(int type, const Matrix *matrix, int64_t first, Groups *groups) {
  const int64_t count = (matrix->num_columns + matrix->group - 1) / matrix->group, begin = groups->next;
  const int64_t end = begin + GROUPS < count ? begin + GROUPS : count;
  const int scale_type = matrix->scale_type, size = scale_type == F32 ? 4 : scale_type == EXPONENT8 ? 1 : 2;
  const float factor = type == FLOAT4 ? 0.5f : type == NF4 ? 1.0f / 32512.0f : 1.0f; /* of what tables hold */
  Ints lowest[GROUPS];
  groups->begin = begin, groups->end = end;
  for (int64_t row = first + LANES; row < first + 2 * LANES; row++) { /* of the rows that come next */
    __builtin_prefetch(matrix->scales + row * matrix->scale_row + begin * matrix->scale_group, 0, 3);
    if (matrix->zeros != NULL) __builtin_prefetch(matrix->zeros + row * matrix->zero_row + begin * matrix->zero_group, 0, 3);
  }
  read_beside(matrix->scales + first * matrix->scale_row, matrix->scale_row, matrix->scale_group, count, size, begin, end, lowest);
  for (int64_t i = 0; i < end - begin; i++) groups->scales[i] = scales_of(scale_type, lowest[i]) * all_floats(factor);
  if (matrix->zeros != NULL) {
    read_beside(matrix->zeros + first * matrix->zero_row, matrix->zero_row, matrix->zero_group, count, 1, begin, end, lowest);
  }
  for (int64_t i = 0; i < end - begin; i++) {
    Ints zero = matrix->zeros == NULL ? all_ints(middle_of(type)) : lowest[i] & all_ints(255);
    if (type == CODES8 && matrix->zeros != NULL) zero = ((zero ^ all_ints(matrix->is_unsigned ? 128 : 0)) << 24) >> 24;
    groups->zeros[i] = type == CODES8 ? zero + SIGNED_OFFSET : zero;
  }
}

INLINE void next_group(int type, const Matrix *matrix, int64_t first, Groups *groups) {
  if (groups->next == groups->end) read_groups(type, matrix, first, groups);
  groups->scale = groups->scales[groups->next - groups->begin];
  groups->zero = groups->zeros[groups->next - groups->begin];
  groups->next++, groups->next_column += matrix->group;
}

/* Codes lie one behind another, the first in the lowest bits. So those of columns that are eight apart begin at the same bit of a byte, as many bytes
   apart as codes have bits: bytes are put in the order in which lanes have four such, column t + 8m in byte m. Orders are of the 16 bytes from
   `begin` on of a block, from the lane `first` on. */
#define PLACE(bits, begin, t, m) \
  ((t) < (bits) && (t) + (bits) * (m) >= (begin) && (t) + (bits) * (m) < (begin) + 16 ? (uint8_t)((t) + (bits) * (m) - (begin)) : 128)
#define FOUR(bits, begin, t) PLACE(bits, begin, t, 0), PLACE(bits, begin, t, 1), PLACE(bits, begin, t, 2), PLACE(bits, begin, t, 3)
#define ORDER(bits, begin, first) {FOUR(bits, begin, (first)), FOUR(bits, begin, (first) + 1), FOUR(bits, begin, (first) + 2), FOUR(bits, begin, (first) + 3)}
#define ORDERS(bits) {{ORDER(bits, 0, 0), ORDER(bits, 0, 4)}, {ORDER(bits, 4 * (bits) - 16, 0), ORDER(bits, 4 * (bits) - 16, 4)}}

/* What a block of codes has, in these orders: `out` [bits]. Of 2 and 3 bits a block has fewer than 16 bytes; behind the last of a row nothing is read. */
INLINE void ordered_block(int bits, const uint8_t *p, Stride stride, int is_last, Ints *out) {
  static const uint8_t orders[8][2][2][16] = {[2] = ORDERS(2), [3] = ORDERS(3), [5] = ORDERS(5), [6] = ORDERS(6), [7] = ORDERS(7)};
  const int end = 4 * bits - 16;
  if (bits == 4) { /* as they lie: pairs share a byte, and activations have an order of their own */
    columns(p, stride, out);
    return;
  }
  if (bits < 4) {
    const int place = is_last;
    ordered_columns(p + place * end, stride, orders[bits][place][0], out);
    return;
  }
  UNROLLED
  for (int half = 0; half < 2; half++) {
    Ints rest[4];
    ordered_columns(p, stride, orders[bits][0][half], out + 4 * half);
    ordered_columns(p + end, stride, orders[bits][1][half], rest);
    UNROLLED
    for (int i = 0; i < 4; i++) out[4 * half + i] |= rest[i];
  }
}

/* Codes at a bit of each byte; those that do not end in it end in the bytes of the next lane. */
INLINE Ints codes_at(int bits, const Ints *ordered, int bit) {
  const int shift = bit % 8, here = 8 - shift < bits ? 8 - shift : bits, all = (1 << bits) - 1, some = (1 << here) - 1;
  const Ints low = SHIFTED(ordered[bit / 8], shift) & EVERY(some);
  return here == bits ? low : low | (ordered[bit / 8 + 1] << here & EVERY(all ^ some));
}

INLINE void unpack_codes(int type, const Matrix *matrix, const Source *source, int64_t first, int64_t b, Groups *groups, Block *out) {
  const uint8_t *p = source->data;
  const Stride stride = source->stride;
  if (BLOCK * b == groups->next_column) next_group(type, matrix, first, groups);
  out->scales[0] = groups->scale;
  out->minima[0] = (Floats)groups->zero;
  if (shares_bytes(type)) {
    const int bits = bits_of(type);
    Ints ordered[8];
    ordered_block(bits, p, stride, BLOCK * (b + 1) == matrix->num_columns, ordered);
    UNROLLED
    for (int i = 0; i < 8; i++) {
      out->weights[i] = codes_at(bits, ordered, bits * i);
      if (type == FLOAT4) out->weights[i] = looked_up(MXFP4_TABLE, out->weights[i]);
    }
  } else {
    const Ints turned = all_ints((int32_t)(matrix->is_unsigned ? SIGNED_AS ^ 0x80808080u : SIGNED_AS));
    columns(p, stride, out->weights);
    columns(p + 16, stride, out->weights + 4);
    for (int i = 0; i < 8; i++) out->weights[i] ^= turned;
  }
}

/* The run of LANES rows that begins with block `b`. Where a row ends within a vector of 16 bytes the next row is read, too; behind the last
   one there may be no memory, so that its rest is copied to `spare`. */
INLINE Source source_of(int type, const Matrix *matrix, Stride stride, int64_t first, int64_t b, uint8_t (*spare)[4 * RUN_WORDS]) {
  const Format format = format_of(type);
  const int64_t num_blocks = matrix->num_columns / BLOCK, rest = (num_blocks - b) / format.num_blocks * format.num_bytes;
  const uint8_t *data = matrix->data + first * matrix->row_bytes + b / format.num_blocks * format.num_bytes;
  Source source = {data, stride};
  if (run_length(type) > format.num_blocks && num_blocks - b < run_length(type) && first + LANES >= matrix->num_rows) {
    for (int row = 0; row < LANES; row++) __builtin_memcpy(spare[row], data + row * matrix->row_bytes, (size_t)rest);
    source.data = spare[0], source.stride = stride_of(sizeof *spare);
  }
  return source;
}

/* Unpack the `j`-th block of the run that begins with block `b`, and ask for the same of the rows behind these: they are far apart, so
   that the processor does not guess that they come next, and the product would wait for memory in every block. */
INLINE void unpack_ahead(
    int type, const Matrix *matrix, const Source *source, int64_t first, int64_t b, int j, Groups *groups, Fetched *fetched, Block *out) {
  const Format format = format_of(type);
  const int64_t at = b / format.num_blocks * format.num_bytes, begin = LANES * format.num_bytes * j / format.num_blocks;
  const uint8_t *next = matrix->data + (first + LANES) * matrix->row_bytes + LANES * at;
  for (int64_t i = (begin + 63) / 64 * 64; i < begin + LANES * format.num_bytes / format.num_blocks; i += 64) __builtin_prefetch(next + i, 0, 3);
  if (format.has_zeros) {
    unpack_codes(type, matrix, source, first, b, groups, out);
  } else {
    unpack(type, source->data, source->stride, j, fetched, out);
  }
}

INLINE void unpack_all(int type, const Matrix *matrix, Stride stride, int64_t first, int64_t at, int64_t count, Groups *groups, Block *out) {
  const int64_t num_blocks = matrix->num_columns / BLOCK;
  uint8_t spare[LANES][4 * RUN_WORDS];
  Fetched fetched;
  for (int64_t b = at; b < at + count; b += run_length(type)) {
    const Source source = source_of(type, matrix, stride, first, b, spare);
    UNROLLED
    for (int j = 0; j < run_length(type); j++) {
      if (b + j >= num_blocks) break;
      unpack_ahead(type, matrix, &source, first, b, j, groups, &fetched, out++);
    }
  }
}

/* Unpack `count` blocks, the first of which is that of column 32 * at and begins a run. */
static __attribute__((noinline)) void unpack_blocks(
    const Matrix *matrix, Stride stride, int64_t first, int64_t at, int64_t count, Groups *groups, Block *out) {
  switch (matrix->type) {
#define CASE(type) case type: unpack_all(type, matrix, stride, first, at, count, groups, out); return;
    INTEGER_TYPES
#undef CASE
  }
}

/* See InstructionSet.multiply. */
INLINE void multiply_type(
    int type, const Matrix *matrix, int64_t first, int64_t fresh, const Activations *given, const Output *output, float *scratch) {
  const Activations rows = *given, *x = &rows; /* in registers: nothing that is written can be part of it */
  const int64_t num_blocks = matrix->num_columns / BLOCK, column = matrix->first_column + first;
  const int skipped = (int)(fresh - first), length = run_length(type);
  const Stride stride = stride_of(matrix->row_bytes);
  Groups groups;
  groups.next = groups.end = groups.next_column = 0;
  if (x->num_rows == 1) { /* blocks stay in registers */
    Floats sum = all_floats(0.0f);
    uint8_t spare[LANES][4 * RUN_WORDS];
    Fetched fetched;
    for (int64_t b = 0; b < num_blocks; b += length) {
      const Source source = source_of(type, matrix, stride, first, b, spare);
      UNROLLED
      for (int j = 0; j < length; j++) {
        Block block;
        if (b + j >= num_blocks) break;
        unpack_ahead(type, matrix, &source, first, b, j, &groups, &fetched, &block);
        accumulate(type, 1, &block, b + j, 1, x, 0, &sum);
      }
    }
    write_lanes(output, 0, column, skipped, sum);
    return;
  }
  Floats *sums = (Floats *)scratch;
  Block blocks[BLOCKS_AT_ONCE];
  for (int64_t row = 0; row < x->num_rows; row++) sums[row] = all_floats(0.0f);
  for (int64_t at = 0; at < num_blocks; at += BLOCKS_AT_ONCE) {
    int64_t count = num_blocks - at < BLOCKS_AT_ONCE ? num_blocks - at : BLOCKS_AT_ONCE, row = 0;
    unpack_blocks(matrix, stride, first, at, count, &groups, blocks);
    for (; row + 4 <= x->num_rows; row += 4) accumulate(type, 4, blocks, at, count, x, row, sums + row);
    for (; row < x->num_rows; row++) accumulate(type, 1, blocks, at, count, x, row, sums + row);
  }
  for (int64_t row = 0; row < x->num_rows; row++) write_lanes(output, row, column, skipped, sums[row]);
}

static void multiply(const Matrix *matrix, int64_t first, int64_t fresh, const Activations *x, const Output *output, float *scratch) {
  switch (matrix->type) {
#define CASE(type) case type: multiply_type(type, matrix, first, fresh, x, output, scratch); return;
    INTEGER_TYPES
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

INLINE Floats some_floats(int type, const uint8_t *p) {
  if (type == F32) {
    Floats values;
    __builtin_memcpy(&values, p, sizeof values);
    return values;
  }
  return type == F16 ? converted_halves(p) : type == BF16 ? (Floats)(extended(p) << 16) : float8(p);
}

INLINE float one_float(int type, const uint8_t *p) {
  uint8_t bytes[64] = {0};
  __builtin_memcpy(bytes, p, type == F32 ? 4 : 2);
  return some_floats(type, bytes)[0];
}

INLINE int width_of(int type) { return type == F32 ? 4 : type == FLOAT8 ? 1 : 2; }

/* Of small floats: the scale of a group of a row, times what `float8` leaves out. */
INLINE Floats scale_of_row(const Matrix *matrix, int64_t row, int64_t column) {
  const uint8_t *p = matrix->scales + row * matrix->scale_row + column / matrix->group * matrix->scale_group;
  const Stride same = stride_of(0);
  const Ints lowest = matrix->scale_type == F32 ? words(p, same) : matrix->scale_type == EXPONENT8 ? bytes(p, same) : shorts(p, same);
  return all_floats(scales_of(matrix->scale_type, lowest)[0] * 256.0f);
}

INLINE float total(const Floats *partial) {
  Floats sums[PARTIAL];
  for (int p = 0; p < PARTIAL; p++) sums[p] = partial[p];
  for (int half = PARTIAL / 2; half > 0; half /= 2) {
    for (int p = 0; p < half; p++) sums[p] += sums[p + half];
  }
  return lanes_added(sums[0]);
}

/* Returns the column with which the next group begins. */
INLINE int64_t read_scales(const Matrix *matrix, int64_t first, int rows, int64_t column, Floats *scales) {
  for (int r = 0; r < rows; r++) scales[r] = scale_of_row(matrix, first + r, column);
  return column + matrix->group;
}

/* `rows` rows of the matrix from `first` on, which lie at `data`, times `tile` rows of x. */
INLINE void multiply_tile(
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
#if defined(HAS_TABLES) /* the same sums, of 64 columns at a time */
  for (; type == FLOAT8 && matrix->group % 64 == 0 && column + 64 <= matrix->num_columns; column += 64) {
    if (column == next) next = read_scales(matrix, first, rows, column, scales);
    UNROLLED
    for (int r = 0; r < rows; r++) {
      Floats weights[4];
      __builtin_prefetch(data + AHEAD * rows * matrix->row_bytes + rows * column + 64 * r, 0, 3);
      float8_looked_up(data + r * matrix->row_bytes + column, weights);
      UNROLLED
      for (int part = 0; part < 4; part++) {
        UNROLLED
        for (int i = 0; i < tile; i++) {
          sums[r][i][0] = fused(weights[part] * scales[r], some_floats(F32, (const uint8_t *)(x + i * stride + column + 16 * part)), sums[r][i][0]);
        }
      }
    }
  }
#endif
  for (; column + 16 <= matrix->num_columns; column += 16) {
    if (type == FLOAT8 && column == next) next = read_scales(matrix, first, rows, column, scales);
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

INLINE void multiply_float_type(
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

/* A row as the last of a matrix of one row, the same in all lanes. */
static void read_blocks(const Matrix *matrix, int64_t row, float factor, float *out) {
  const Format format = format_of(matrix->type);
  const int64_t num_blocks = matrix->num_columns / BLOCK;
  Matrix one = *matrix;
  one.data += row * matrix->row_bytes, one.num_rows = 1, one.row_bytes = 0;
  for (int64_t at = 0; at < num_blocks; at += BLOCKS_AT_ONCE) {
    const int64_t count = num_blocks - at < BLOCKS_AT_ONCE ? num_blocks - at : BLOCKS_AT_ONCE;
    Block blocks[BLOCKS_AT_ONCE];
    unpack_blocks(&one, stride_of(0), 0, at, count, NULL, blocks);
    for (const Block *block = blocks; block < blocks + count; block++) {
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
#define CASE(type) case type: for (int64_t i = 0; i < matrix->num_columns; i++) out[i] = one_float(type, data + i * width_of(type)) * factor; return;
    CASE(F32) CASE(F16) CASE(BF16)
#undef CASE
    default: read_blocks(matrix, row, factor, out);
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
