/* What lies between the products of a decoder layer, for one instruction set: included behind kernel.h. All numbers are float32. */

INLINE Floats loaded(const float *p) {
  Floats values;
  __builtin_memcpy(&values, p, sizeof values);
  return values;
}

INLINE void stored(float *p, Floats values) { __builtin_memcpy(p, &values, sizeof values); }

/* e to the power of x, to 2 units of the last place; 0 for x below -87. */
INLINE Floats exponential(Floats x) {
  const Floats low = all_floats(-87.0f), high = all_floats(88.0f), magic = all_floats(12582912.0f);
  Ints is_low = x < low;
  x = (Floats)((~is_low & (Ints)x) | (is_low & (Ints)low));
  Ints is_high = x > high;
  x = (Floats)((~is_high & (Ints)x) | (is_high & (Ints)high));
  Floats power = fused(x, all_floats(1.44269504f), magic) - magic;
  Floats rest = fused(power, all_floats(-0.693359375f), x);
  rest = fused(power, all_floats(2.12194440e-4f), rest);
  Floats y = all_floats(1.9875691500e-4f);
  y = fused(y, rest, all_floats(1.3981999507e-3f));
  y = fused(y, rest, all_floats(8.3334519073e-3f));
  y = fused(y, rest, all_floats(4.1665795894e-2f));
  y = fused(y, rest, all_floats(1.6666665459e-1f));
  y = fused(y, rest, all_floats(5.0000001201e-1f));
  y = fused(y, rest * rest, rest + all_floats(1.0f));
  Ints scale = __builtin_convertvector(power, Ints) + 127;
  return (Floats)(~is_low & (Ints)(y * (Floats)(scale << 23)));
}

/* x / sqrt(mean of squares + eps) * weight; `width` is a multiple of 16. */
INLINE void normalize(const float *x, const float *weight, float eps, int64_t width, float *out) {
  Floats squares[PARTIAL];
  for (int p = 0; p < PARTIAL; p++) squares[p] = all_floats(0.0f);
  for (int64_t i = 0; i < width; i += 16) {
    for (int p = 0; p < PARTIAL; p++) {
      Floats values = loaded(x + i + p * LANES);
      squares[p] = fused(values, values, squares[p]);
    }
  }
  Floats factor = all_floats(1.0f / __builtin_sqrtf(total(squares) / (float)width + eps));
  for (int64_t i = 0; i < width; i += LANES) stored(out + i, loaded(x + i) * factor * loaded(weight + i));
}

static void add_and_normalize(const float *hidden, const float *delta, const float *weight, float eps, int64_t width, float *sum, float *out) {
  if (delta != NULL) {
    for (int64_t i = 0; i < width; i += LANES) stored(sum + i, loaded(hidden + i) + loaded(delta + i));
    hidden = sum;
  }
  normalize(hidden, weight, eps, width, out);
}

INLINE Floats reciprocal_of_one_plus(Floats x) { return all_floats(1.0f) / (all_floats(1.0f) + x); }

INLINE Floats silu(Floats x) { return x * reciprocal_of_one_plus(exponential(-x)); }

/* x * (1 + tanh(y)) / 2, where y is sqrt(2 / pi) * (x + 0.044715 x^3). */
INLINE Floats gelu_tanh(Floats x) {
  Floats twice = x * fused(x * x, all_floats(1.5957691216f * 0.044715f), all_floats(1.5957691216f));
  return x * reciprocal_of_one_plus(exponential(-twice));
}

/* x * (1 + erf(x / sqrt(2))) / 2; erf to 1.5e-7, by 7.1.26 of Abramowitz and Stegun. */
INLINE Floats gelu(Floats x) {
  Floats size = (Floats)((Ints)x & all_ints(0x7FFFFFFF)) * all_floats(0.70710678f);
  Floats t = all_floats(1.0f) / fused(size, all_floats(0.3275911f), all_floats(1.0f));
  Floats y = all_floats(1.061405429f);
  y = fused(y, t, all_floats(-1.453152027f));
  y = fused(y, t, all_floats(1.421413741f));
  y = fused(y, t, all_floats(-0.284496736f));
  y = fused(y, t, all_floats(0.254829592f));
  Floats rest = y * t * exponential(-size * size); /* 1 - erf(size) */
  Ints is_negative = x < all_floats(0.0f);
  Floats twice = (Floats)((is_negative & (Ints)rest) | (~is_negative & (Ints)(all_floats(2.0f) - rest)));
  return x * all_floats(0.5f) * twice;
}

INLINE Floats activated(int activation, Floats x) {
  return activation == SILU ? silu(x) : activation == GELU_TANH ? gelu_tanh(x) : gelu(x);
}

/* activation(gate) * up, of `width` numbers each. */
static void gated(int activation, const float *gate, const float *up, int64_t width, float *out) {
  switch (activation) {
#define CASE(kind) case kind: for (int64_t i = 0; i < width; i += LANES) stored(out + i, activated(kind, loaded(gate + i)) * loaded(up + i)); return;
    CASE(SILU) CASE(GELU_TANH) CASE(GELU)
#undef CASE
  }
}

/* Dimension i of a head turns with dimension i + half; those behind 2 * half stay as they are. */
static void turn_head(const float *head, const float *norm, float eps, const float *cosine, const float *sine, int64_t half, int64_t width, float *out) {
  float normed[512];
  if (norm != NULL) {
    normalize(head, norm, eps, width, normed);
    head = normed;
  }
  for (int64_t i = 0; i < half; i++) {
    float first = head[i], second = head[i + half];
    out[i] = first * cosine[i] - second * sine[i];
    out[i + half] = second * cosine[i] + first * sine[i];
  }
  for (int64_t i = 2 * half; i < width; i++) out[i] = head[i];
}

/* ---- attention */

#define HEADS 4                       /* of queries that go through keys and values together */
#define PARTS (LANES == 16 ? 4 : 2)   /* vectors of a value that do */
#define TOKENS (LANES == 16 ? 4 : 2)  /* whose keys are read side by side */

/* Where the numbers of tokens are, and those of the tokens that come behind them, which are asked for meanwhile: one line at a time, since the
   processor does not guess where they are. */
typedef struct {
  const uint8_t *here, *next;
  const int64_t *offsets, *next_offsets; /* in numbers, of each token */
} Tokens;

enum { FLOAT8_LOOKED_UP = -1 }; /* FLOAT8, where a processor has tables for it */

INLINE int stored_as(int type) { return type == FLOAT8_LOOKED_UP ? FLOAT8 : type; }

/* What numbers are multiplied by when they are read. */
INLINE float left_out(int type) { return stored_as(type) == FLOAT8 ? 256.0f : 1.0f; }

/* `parts` vectors of numbers one behind another, 1 or PARTS; the same of the tokens that come next is asked for. */
INLINE void read_parts(int type, int parts, const uint8_t *here, const uint8_t *next, Floats *out) {
  const int size = width_of(stored_as(type)) * LANES;
  UNROLLED
  for (int line = 0; line < parts * size; line += 64) __builtin_prefetch(next + line, 0, 2);
#if defined(HAS_TABLES)
  if (type == FLOAT8_LOOKED_UP && parts == PARTS) {
    float8_looked_up(here, out);
    return;
  }
#endif
  UNROLLED
  for (int p = 0; p < parts; p++) out[p] = some_floats(stored_as(type), here + p * size);
}

/* Add `parts` vectors of the keys of TOKENS tokens, from dimension `i` on, times queries. */
INLINE void add_products(
    int type, int heads, int parts, const float *query, const uint8_t *const *here, const uint8_t *const *next, int64_t i, int64_t width, Floats (*sums)[TOKENS]) {
  UNROLLED
  for (int t = 0; t < TOKENS; t++) {
    Floats key[PARTS];
    read_parts(type, parts, here[t] + width_of(stored_as(type)) * i, next[t] + width_of(stored_as(type)) * i, key);
    UNROLLED
    for (int p = 0; p < parts; p++) {
      UNROLLED
      for (int h = 0; h < heads; h++) sums[h][t] = fused(loaded(query + h * width + i + p * LANES), key[p], sums[h][t]);
    }
  }
}

/* Scores of LANES tokens, each of which is read once for all heads. */
INLINE void score(int type, int heads, const float *query, Tokens tokens, int64_t width, float scale, float (*out)[PIECE]) {
  const int size = width_of(stored_as(type));
  Floats sums[HEADS][LANES];
  for (int first = 0; first < LANES; first += TOKENS) {
    Floats some[HEADS][TOKENS];
    const uint8_t *here[TOKENS], *next[TOKENS];
    UNROLLED
    for (int t = 0; t < TOKENS; t++) {
      here[t] = tokens.here + size * tokens.offsets[first + t], next[t] = tokens.next + size * tokens.next_offsets[first + t];
      UNROLLED
      for (int h = 0; h < heads; h++) some[h][t] = all_floats(0.0f);
    }
    int64_t i = 0;
    for (; i + PARTS * LANES <= width; i += PARTS * LANES) add_products(type, heads, PARTS, query, here, next, i, width, some);
    for (; i < width; i += LANES) add_products(type, heads, 1, query, here, next, i, width, some);
    UNROLLED
    for (int h = 0; h < heads; h++) {
      UNROLLED
      for (int t = 0; t < TOKENS; t++) sums[h][first + t] = some[h][t];
    }
  }
  for (int h = 0; h < heads; h++) stored(out[h], each_lanes_added(sums[h]) * all_floats(left_out(type) * scale));
}

/* Scores become weights. Returns their sum; *most is the largest score. */
INLINE float weigh(float *scores, int64_t num_tokens, float *most) {
  Floats largest = all_floats(-__builtin_inff()), sum = all_floats(0.0f);
  for (int64_t i = num_tokens; i % LANES; i++) scores[i] = -__builtin_inff();
  for (int64_t i = 0; i < num_tokens; i += LANES) {
    const Floats some = loaded(scores + i);
    const Ints is_more = some > largest;
    largest = (Floats)((is_more & (Ints)some) | (~is_more & (Ints)largest));
  }
  float found = largest[0]; /* no memory that scores might be in */
  for (int lane = 1; lane < LANES; lane++) found = largest[lane] > found ? largest[lane] : found;
  *most = found;
  for (int64_t i = 0; i < num_tokens; i += LANES) {
    Floats weights = exponential(loaded(scores + i) - all_floats(found));
    stored(scores + i, weights);
    sum += weights;
  }
  return lanes_added(sum);
}

/* Add values times weights of a few tokens to `parts` vectors of the sums of some heads. */
INLINE void add_values(
    int type, int heads, int parts, Tokens tokens, int64_t at, int64_t num_tokens, float (*weights)[PIECE], float *out, int64_t stride) {
  const int size = width_of(stored_as(type));
  Floats sums[HEADS][PARTS];
  UNROLLED
  for (int h = 0; h < heads; h++) {
    UNROLLED
    for (int p = 0; p < parts; p++) sums[h][p] = loaded(out + h * stride + p * LANES);
  }
  for (int64_t token = 0; token < num_tokens; token++) {
    Floats some[PARTS];
    const uint8_t *here = tokens.here + size * (tokens.offsets[token] + at), *next = tokens.next + size * (tokens.next_offsets[token] + at);
    read_parts(type, parts, here, next, some);
    UNROLLED
    for (int h = 0; h < heads; h++) {
      Floats weight = all_floats(left_out(type) * weights[h][token]);
      UNROLLED
      for (int p = 0; p < parts; p++) sums[h][p] = fused(weight, some[p], sums[h][p]);
    }
  }
  UNROLLED
  for (int h = 0; h < heads; h++) {
    UNROLLED
    for (int p = 0; p < parts; p++) stored(out + h * stride + p * LANES, sums[h][p]);
  }
}

INLINE void add_all_values(
    int type, int heads, Tokens tokens, int64_t num_tokens, int64_t width, float (*weights)[PIECE], float *out) {
  int64_t d = 0;
  for (; d + PARTS * LANES <= width; d += PARTS * LANES) add_values(type, heads, PARTS, tokens, d, num_tokens, weights, out + 2 + d, 2 + width);
  for (; d < width; d += LANES) add_values(type, heads, 1, tokens, d, num_tokens, weights, out + 2 + d, 2 + width);
}

#define FOR_HEADS(heads, statement) \
  switch (heads) { \
    case 1: { enum { n = 1 }; statement; break; } \
    case 2: { enum { n = 2 }; statement; break; } \
    case 3: { enum { n = 3 }; statement; break; } \
    case 4: { enum { n = 4 }; statement; break; } \
  }

/* Memory is read in order: a few tokens with all their heads, then the next. */
INLINE void attend_type(
    int type, const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t end, float (*weights)[PIECE], float *out) {
  const int64_t width = call->head_dim, size = call->block_size, num_tokens = last - first, group = call->heads_per_kv_head;
  const int64_t num_heads = call->num_kv_heads * group, stride = 2 + width, num_known = end - first < num_tokens + LANES ? end - first : num_tokens + LANES;
  int64_t offsets[PIECE + 2 * LANES], count = 0;
  for (int64_t block = first / size, place = first % size; count < num_known; block++, place = 0) {
    for (; place < size && count < num_known; place++) offsets[count++] = (table[block] * size + place) * call->num_kv_heads * width;
  }
  for (; count < num_tokens + 2 * LANES; count++) offsets[count] = offsets[num_known - 1]; /* whole vectors, and what is asked for ahead */
  for (int64_t token = 0; token < num_tokens; token += LANES) {
    for (int64_t head = 0, heads; head < num_heads; head += heads) {
      heads = group - head % group < HEADS ? group - head % group : HEADS;
      const int64_t at = width_of(stored_as(type)) * (head / group * width);
      const int is_last = token + LANES >= num_tokens; /* then values come next */
      const Tokens tokens = {call->keys + at, (is_last ? call->values : call->keys) + at, offsets + token, is_last ? offsets : offsets + token + LANES};
      FOR_HEADS(heads, score(type, n, query + head * width, tokens, width, call->scale, (float (*)[PIECE])(weights[head] + token)))
    }
  }
  for (int64_t head = 0; head < num_heads; head++) {
    out[head * stride + 1] = weigh(weights[head], num_tokens, out + head * stride);
    for (int64_t d = 0; d < width; d += LANES) stored(out + head * stride + 2 + d, all_floats(0.0f));
  }
  for (int64_t token = 0; token < num_tokens; token += LANES) {
    const int64_t some = num_tokens - token < LANES ? num_tokens - token : LANES;
    for (int64_t head = 0, heads; head < num_heads; head += heads) {
      heads = group - head % group < HEADS ? group - head % group : HEADS;
      const int64_t at = width_of(stored_as(type)) * (head / group * width);
      const Tokens tokens = {call->values + at, (token + LANES >= num_tokens ? call->keys : call->values) + at, offsets + token, offsets + token + LANES};
      FOR_HEADS(heads, add_all_values(type, n, tokens, some, width, (float (*)[PIECE])(weights[head] + token), out + head * stride))
    }
  }
}

/* See InstructionSet.attend. */
static void attend(const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t end, float (*weights)[PIECE], float *out) {
#if defined(HAS_TABLES)
  if (call->kv_type == FLOAT8 && can_look_up()) {
    attend_type(FLOAT8_LOOKED_UP, call, query, table, first, last, end, weights, out);
    return;
  }
#endif
  switch (call->kv_type) {
#define CASE(type) case type: attend_type(type, call, query, table, first, last, end, weights, out); return;
    CASE(F32) CASE(F16) CASE(BF16) CASE(FLOAT8)
#undef CASE
  }
}

/* See InstructionSet.join. */
static void join(const float *pieces, int64_t num_pieces, int64_t stride, int64_t head_dim, float *out) {
  float most = pieces[0], total = 0.0f;
  for (int64_t i = 1; i < num_pieces; i++) most = pieces[i * stride] > most ? pieces[i * stride] : most;
  for (int64_t i = 0; i < num_pieces; i++) total += exponential(all_floats(pieces[i * stride] - most))[0] * pieces[i * stride + 1];
  for (int64_t i = 0; i < num_pieces; i++) {
    Floats factor = exponential(all_floats(pieces[i * stride] - most)) / all_floats(total);
    for (int64_t d = 0; d < head_dim; d += LANES) {
      Floats part = loaded(pieces + i * stride + 2 + d) * factor;
      stored(out + d, i == 0 ? part : loaded(out + d) + part);
    }
  }
}
