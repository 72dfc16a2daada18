/* What is faster with numbers of 8 bits where a processor looks bytes up in tables of 128 (AVX512-VBMI) and multiplies bfloat16 (AVX512-BF16). Products with
   matrices of such numbers have the same bits as elsewhere.

   Attention to keys and values of 8 bits is computed by products of pairs of bfloat16. Numbers of e4m3 are numbers of bfloat16, too, and are looked up as
   such: five instructions for sixty-four of them, in place of the thirty-two that make them float32.

   Queries and weights are rounded to bfloat16 for it, each by 2^-9 of its size at most, an eighth of what keys and values were rounded by. Weights are summed
   as they are then, so that what comes out is a mean of values still. Its distance from that of float32 is bounded in tests/kernels/test_cpu_between.py. */
#include "products.h"

#if defined(HAS_PAIRS)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx512bf16,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx512bf16,fma,f16c")
#endif

#include "simd_avx512.h"

/* The upper two bytes of e4m3, divided by 256, as float32, whose lower ones are 0: bfloat16. */
static const uint8_t UPPER[128] = {
  0, 55, 55, 55, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 57, 57, 57, 57, 57, 57, 57, 57, 57, 57, 57, 57, 57, 57, 57, 57,
  58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 58, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59,
  60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61,
  62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 127,
};
static const uint8_t LOWER[128] = {
  0, 0, 128, 192, 0, 32, 64, 96, 128, 144, 160, 176, 192, 208, 224, 240, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240,
  0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240,
  0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240,
  0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 192,
};

INLINE __m512i upto_128(const uint8_t *table, __m512i codes) {
  return _mm512_permutex2var_epi8(_mm512_loadu_si512(table), codes, _mm512_loadu_si512(table + 64));
}

/* Sixty-four codes as bfloat16: of each sixteen the first eight, and the second. */
INLINE void looked_up_pairs(__m512i codes, Ints *out) {
  const __m512i lower = upto_128(LOWER, codes), upper = _mm512_ternarylogic_epi32(upto_128(UPPER, codes), codes, _mm512_set1_epi8(-128), 0xF8); /* a | b & c */
  out[0] = (Ints)_mm512_unpacklo_epi8(lower, upper);
  out[1] = (Ints)_mm512_unpackhi_epi8(lower, upper);
}

/* The same as float32, in their order. */
#define HAS_TABLES
INLINE void float8_looked_up(const uint8_t *p, Floats *out) {
#define OF_LANE(i) i, i + 16, i + 1, i + 17, i + 2, i + 18, i + 3, i + 19, i + 32, i + 48, i + 33, i + 49, i + 34, i + 50, i + 35, i + 51
  static const uint8_t order[64] = {OF_LANE(0), OF_LANE(4), OF_LANE(8), OF_LANE(12)}; /* from which pairs, and then even and odd numbers, are taken */
#undef OF_LANE
  const __m512i odd = _mm512_set1_epi32((int32_t)0xFFFF0000);
  Ints pairs[2];
  looked_up_pairs(_mm512_permutexvar_epi8(_mm512_loadu_si512(order), _mm512_loadu_si512(p)), pairs);
  UNROLLED
  for (int i = 0; i < 2; i++) {
    out[2 * i] = (Floats)_mm512_slli_epi32((__m512i)pairs[i], 16);
    out[2 * i + 1] = (Floats)_mm512_and_si512((__m512i)pairs[i], odd);
  }
}

#include "kernel.h"
#include "between.h"
#include "attention.h"

#define CHUNK 64  /* numbers of a key or a value that are read at once */
#define VECTORS 8 /* of sums of values that stay in registers, for two heads; half as many for more */
#define NEAR 4    /* tokens whose keys are read side by side: memory is read almost in the order in which it lies */

/* Add products of pairs: both of a lane, the upper one first. */
INLINE Floats dot_pairs(Floats sum, Ints a, Ints b) { return (Floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b); }

/* Thirty-two numbers as bfloat16, the first two in lane 0. */
INLINE Ints rounded_pairs(Floats first, Floats second) { return (Ints)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first); }

INLINE Floats eights(const float *low, const float *high) {
  return (Floats)_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low)), _mm256_loadu_ps(high), 1);
}

/* A chunk of the values of two tokens, side by side in each lane; for the order see `finish_values`. */
INLINE void read_values(const uint8_t *a, const uint8_t *b, Ints *out) {
  const __m512i first = _mm512_loadu_si512(a), second = _mm512_loadu_si512(b);
  looked_up_pairs(_mm512_unpacklo_epi8(first, second), out);
  looked_up_pairs(_mm512_unpackhi_epi8(first, second), out + 2);
}

/* Put sums of values, which are in the order of `read_values`, into their own: four of the vector v, in its quarter q, are the numbers from 4 * (4q + v)
   on. What tables leave out is multiplied in. */
INLINE void finish_values(int64_t width, float *values) {
  for (int64_t at = 0; at < width; at += CHUNK) {
    float some[CHUNK];
    UNROLLED
    for (int place = 0; place < 16; place++) __builtin_memcpy(some + 4 * (place % 4 * 4 + place / 4), values + at + 4 * place, 4 * sizeof *some);
    for (int i = 0; i < CHUNK; i += LANES) stored(values + at + i, loaded(some + i) * all_floats(left_out(FLOAT8)));
  }
}

/* A query in the order in which `looked_up_pairs` has keys: [width / 32] vectors. */
INLINE void round_query(const float *query, int64_t width, Ints *out) {
  for (const float *p = query; p < query + width; p += CHUNK) {
    for (int begin = 0; begin < 16; begin += 8) *out++ = rounded_pairs(eights(p + begin, p + 16 + begin), eights(p + 32 + begin, p + 48 + begin));
  }
}

/* Products of the keys of NEAR tokens, each of which is read once for all heads, with queries [heads] as `round_query` has them: scores, but for the sum of
   their lanes. `out` [heads][LANES], of which these are the next ones. */
INLINE void multiply_keys(int heads, const Ints *query, Tokens tokens, int64_t width, Floats *out) {
  Floats sums[HEADS][NEAR];
  const uint8_t *here[NEAR], *next[NEAR];
  UNROLLED
  for (int t = 0; t < NEAR; t++) {
    here[t] = tokens.here + tokens.offsets[t], next[t] = tokens.next + tokens.next_offsets[t];
    UNROLLED
    for (int h = 0; h < heads; h++) sums[h][t] = all_floats(0.0f);
  }
  for (int64_t at = 0; at < width; at += CHUNK, query += 2) {
    UNROLLED
    for (int t = 0; t < NEAR; t++) {
      Ints key[2];
      __builtin_prefetch(next[t] + at, 0, 2);
      looked_up_pairs(_mm512_loadu_si512(here[t] + at), key);
      UNROLLED
      for (int h = 0; h < heads; h++) {
        UNROLLED
        for (int v = 0; v < 2; v++) sums[h][t] = dot_pairs(sums[h][t], query[h * (width / 32) + v], key[v]);
      }
    }
  }
  UNROLLED
  for (int h = 0; h < heads; h++) {
    UNROLLED
    for (int t = 0; t < NEAR; t++) out[h * LANES + t] = sums[h][t];
  }
}

/* Scores become weights, of each LANES tokens in pairs. Returns their sum; *most is the largest score. */
INLINE float weigh_pairs(float *scores, int64_t num_tokens, float *most) {
  for (int64_t i = num_tokens; i % 32; i++) scores[i] = -__builtin_inff();
  const float found = *most = largest_score(scores, num_tokens);
  Floats sum = all_floats(0.0f);
  for (int64_t i = 0; i < num_tokens; i += 32) {
    const Ints pairs = rounded_pairs(exponential(loaded(scores + i) - all_floats(found)), exponential(loaded(scores + i + 16) - all_floats(found)));
    __builtin_memcpy(scores + i, &pairs, sizeof pairs / 2);
    __builtin_memcpy(scores + i + 16, (const char *)&pairs + sizeof pairs / 2, sizeof pairs / 2);
    sum = dot_pairs(sum, pairs, all_ints(0x3F803F80)); /* times 1 */
  }
  return lanes_added(sum);
}

/* Of a token at an even place and the one behind it. */
INLINE Ints two_weights(const float *weights, int64_t token) {
  int32_t both;
  __builtin_memcpy(&both, weights + token / LANES * LANES + token % LANES / 2, sizeof both);
  return all_ints(both);
}

static const uint8_t NO_VALUES[VECTORS / 4 * CHUNK]; /* beside the last token of an odd number */

/* Add values times weights of `num_tokens` tokens from `first` on, an even place, to `chunks` chunks of the sums of some heads. */
INLINE void add_value_pairs(
    int heads, int chunks, Tokens tokens, int64_t at, int64_t first, int64_t num_tokens, float (*weights)[PIECE], float *out, int64_t stride) {
  Floats sums[HEADS][VECTORS];
  UNROLLED
  for (int h = 0; h < heads; h++) {
    UNROLLED
    for (int v = 0; v < 4 * chunks; v++) sums[h][v] = loaded(out + h * stride + v * LANES);
  }
  for (int64_t token = 0; token < num_tokens; token += 2) {
    const uint8_t *one = tokens.here + tokens.offsets[token] + at;
    const uint8_t *other = token + 1 < num_tokens ? tokens.here + tokens.offsets[token + 1] + at : NO_VALUES;
    const uint8_t *next = tokens.next + tokens.next_offsets[token] + at;
    const uint8_t *behind = tokens.next + tokens.next_offsets[token + 1] + at;
    Ints values[VECTORS];
    UNROLLED
    for (int c = 0; c < chunks; c++) {
      __builtin_prefetch(next + c * CHUNK, 0, 2);
      __builtin_prefetch(behind + c * CHUNK, 0, 2);
      read_values(one + c * CHUNK, other + c * CHUNK, values + 4 * c);
    }
    UNROLLED
    for (int h = 0; h < heads; h++) {
      const Ints both = two_weights(weights[h], first + token);
      UNROLLED
      for (int v = 0; v < 4 * chunks; v++) sums[h][v] = dot_pairs(sums[h][v], both, values[v]);
    }
  }
  UNROLLED
  for (int h = 0; h < heads; h++) {
    UNROLLED
    for (int v = 0; v < 4 * chunks; v++) stored(out + h * stride + v * LANES, sums[h][v]);
  }
}

INLINE void add_all_value_pairs(
    int heads, Tokens tokens, int64_t first, int64_t num_tokens, int64_t width, float (*weights)[PIECE], float *out) {
  const int wide = (heads <= 2 ? VECTORS : VECTORS / 2) / 4; /* chunks whose sums stay in registers */
  int64_t d = 0;
  for (; d + wide * CHUNK <= width; d += wide * CHUNK) {
    add_value_pairs(heads, wide, tokens, d, first, num_tokens, weights, out + 2 + d, 2 + width);
  }
  for (; d < width; d += CHUNK) add_value_pairs(heads, 1, tokens, d, first, num_tokens, weights, out + 2 + d, 2 + width);
}

/* What all heads of a row need while a piece is attended to. */
typedef struct {
  const Attention *call;
  const int64_t *offsets; /* of its tokens, and of `ahead` more */
  const Ints *queries;    /* [heads] as `round_query` has them */
  Floats *products;       /* [heads][LANES]: see `multiply_keys` */
  int64_t num_tokens, ahead;
} Reading;

INLINE void score_all(const Reading *piece, float (*weights)[PIECE]) {
  const Attention *call = piece->call;
  const int64_t width = call->head_dim, num_heads = call->num_kv_heads * call->heads_per_kv_head;
  for (int64_t token = 0; token < piece->num_tokens; token += NEAR) {
    const int64_t next = token + piece->ahead, behind = next - piece->num_tokens; /* values come behind the last key */
    for (int64_t head = 0, heads; head < num_heads; head += heads) {
      heads = heads_from(call, head);
      const int64_t at = bytes_before(call, FLOAT8, head);
      const Tokens tokens = {call->keys + at, (behind >= 0 ? call->values : call->keys) + at, piece->offsets + token, piece->offsets + (behind >= 0 ? behind : next)};
      FOR_HEADS(heads, multiply_keys(n, piece->queries + head * (width / 32), tokens, width, piece->products + head * LANES + token % LANES))
    }
    if ((token + NEAR) % LANES != 0 && token + NEAR < piece->num_tokens) continue;
    for (int64_t head = 0; head < num_heads; head++) {
      const Floats scores = each_lanes_added(piece->products + head * LANES) * all_floats(call->scale * left_out(FLOAT8));
      stored(weights[head] + token / LANES * LANES, scores);
    }
  }
}

INLINE void add_all(const Reading *piece, float (*weights)[PIECE], float *out) {
  const Attention *call = piece->call;
  const int64_t width = call->head_dim, num_heads = call->num_kv_heads * call->heads_per_kv_head;
  for (int64_t token = 0; token < piece->num_tokens; token += LANES) {
    const int64_t next = token + piece->ahead, left = piece->num_tokens - token, some = left < LANES ? left : LANES;
    for (int64_t head = 0, heads; head < num_heads; head += heads) {
      heads = heads_from(call, head);
      const int64_t at = bytes_before(call, FLOAT8, head);
      const Tokens tokens = {call->values + at, (next >= piece->num_tokens ? call->keys : call->values) + at, piece->offsets + token, piece->offsets + next};
      FOR_HEADS(heads, add_all_value_pairs(n, tokens, token, some, width, weights + head, out + head * (2 + width)))
    }
  }
}

INLINE void attend_in_pairs(
    const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t end, float (*weights)[PIECE], float *out) {
  const int64_t width = call->head_dim, num_heads = call->num_kv_heads * call->heads_per_kv_head, stride = 2 + width;
  int64_t offsets[2 * PIECE + LANES];
  Ints *queries = (Ints *)(weights + num_heads);
  const Reading piece = {call, offsets, queries, (Floats *)(queries + num_heads * (width / 32)), last - first, tokens_ahead(call, FLOAT8)};
  find_tokens(call, table, first, last, end, piece.ahead, offsets);
  for (int64_t head = 0; head < num_heads; head++) round_query(query + head * width, width, queries + head * (width / 32));
  score_all(&piece, weights);
  for (int64_t head = 0; head < num_heads; head++) {
    out[head * stride + 1] = weigh_pairs(weights[head], piece.num_tokens, out + head * stride);
    for (int64_t d = 0; d < width; d += LANES) stored(out + head * stride + 2 + d, all_floats(0.0f));
  }
  add_all(&piece, weights, out);
  for (int64_t head = 0; head < num_heads; head++) finish_values(width, out + head * stride + 2);
}

/* See InstructionSet.multiply_floats. */
void maskwright_multiply_looked_up(const Matrix *matrix, int64_t first, int64_t count, const float *x, int64_t stride, int64_t num_rows, const Output *output) {
  if (matrix->type == FLOAT8 && num_rows <= TILE) {
    multiply_float_type(FLOAT8, matrix, first, count, x, stride, num_rows, output);
  } else {
    maskwright_avx512.multiply_floats(matrix, first, count, x, stride, num_rows, output);
  }
}

/* See InstructionSet.attend. */
void maskwright_attend_pairs(const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t end, float (*weights)[PIECE], float *out) {
  if (call->kv_type == FLOAT8 && call->head_dim % CHUNK == 0) {
    attend_in_pairs(call, query, table, first, last, end, weights, out);
  } else {
    maskwright_avx512.attend(call, query, table, first, last, end, weights, out);
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
