/* Attention of one query to the tokens in a paged cache, for one instruction set: included behind between.h. */

#define HEADS 4                       /* of queries that go through keys and values together */
#define PARTS (LANES == 16 ? 4 : 2)   /* vectors of a value that do */
#define TOKENS (LANES == 16 ? 4 : 2)  /* whose keys are read side by side */
#define NEAR_VALUES 8                 /* tokens whose values are added before the next head's: the fewer, the more in order memory is read */
#define AHEAD_BYTES 16384             /* that are asked for before they are read, at least; they go into the second cache */

/* Where the numbers of tokens are, and those of the tokens that come behind them, which are asked for meanwhile. */
typedef struct {
  const uint8_t *here, *next;
  const int64_t *offsets, *next_offsets; /* in numbers, of each token */
} Tokens;

/* What numbers are multiplied by when they are read. */
INLINE float left_out(int type) { return type == FLOAT8 ? 256.0f : 1.0f; }

/* `parts` vectors of numbers one behind another, 1 or PARTS; the same of the tokens that come next is asked for. */
INLINE void read_parts(int type, int parts, const uint8_t *here, const uint8_t *next, Floats *out) {
  const int size = width_of(type) * LANES;
  UNROLLED
  for (int line = 0; line < parts * size; line += 64) __builtin_prefetch(next + line, 0, 2);
  UNROLLED
  for (int p = 0; p < parts; p++) out[p] = some_floats(type, here + p * size);
}

/* Add `parts` vectors of the keys of TOKENS tokens, from dimension `i` on, times queries. */
INLINE void add_products(
    int type, int heads, int parts, const float *query, const uint8_t *const *here, const uint8_t *const *next, int64_t i, int64_t width, Floats (*sums)[TOKENS]) {
  UNROLLED
  for (int t = 0; t < TOKENS; t++) {
    Floats key[PARTS];
    read_parts(type, parts, here[t] + width_of(type) * i, next[t] + width_of(type) * i, key);
    UNROLLED
    for (int p = 0; p < parts; p++) {
      UNROLLED
      for (int h = 0; h < heads; h++) sums[h][t] = fused(loaded(query + h * width + i + p * LANES), key[p], sums[h][t]);
    }
  }
}

/* Scores of LANES tokens, each of which is read once for all heads. */
INLINE void score(int type, int heads, const float *query, Tokens tokens, int64_t width, float scale, float (*out)[PIECE]) {
  const int size = width_of(type);
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

/* Of as many scores; those up to the next multiple of LANES count, too. */
INLINE float largest_score(const float *scores, int64_t num_tokens) {
  Floats largest = all_floats(-__builtin_inff());
  for (int64_t i = 0; i < num_tokens; i += LANES) {
    const Floats some = loaded(scores + i);
    const Ints is_more = some > largest;
    largest = (Floats)((is_more & (Ints)some) | (~is_more & (Ints)largest));
  }
  float found = largest[0]; /* no memory that scores might be in */
  for (int lane = 1; lane < LANES; lane++) found = largest[lane] > found ? largest[lane] : found;
  return found;
}

/* Scores become weights. Returns their sum; *most is the largest score. */
INLINE float weigh(float *scores, int64_t num_tokens, float *most) {
  for (int64_t i = num_tokens; i % LANES; i++) scores[i] = -__builtin_inff();
  const float found = *most = largest_score(scores, num_tokens);
  Floats sum = all_floats(0.0f);
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
  const int size = width_of(type);
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

/* Where the tokens [first, last) of a sequence are, in numbers, and `ahead` tokens behind them as far as the sequence has such. Those that are missing
   are where the last one is: whole vectors are read, and memory is asked for ahead. */
INLINE void find_tokens(const Attention *call, const int64_t *table, int64_t first, int64_t last, int64_t end, int64_t ahead, int64_t *offsets) {
  const int64_t size = call->block_size, num_wanted = last - first + ahead, num_known = end - first < num_wanted ? end - first : num_wanted;
  int64_t count = 0;
  for (int64_t block = first / size, place = first % size; count < num_known; block++, place = 0) {
    for (; place < size && count < num_known; place++) offsets[count++] = (table[block] * size + place) * call->num_kv_heads * call->head_dim;
  }
  for (; count < num_wanted + LANES; count++) offsets[count] = offsets[num_known - 1];
}

/* Tokens whose memory is asked for before it is read. */
INLINE int64_t tokens_ahead(const Attention *call, int type) {
  const int64_t wanted = (AHEAD_BYTES / (width_of(type) * call->num_kv_heads * call->head_dim) + LANES) / LANES * LANES;
  return wanted > PIECE ? PIECE : wanted;
}

/* Of these heads of queries, which have keys and values of their own or share them, those from `head` on that go through them together. */
INLINE int64_t heads_from(const Attention *call, int64_t head) {
  const int64_t left = call->heads_per_kv_head - head % call->heads_per_kv_head;
  return left < HEADS ? left : HEADS;
}

INLINE int64_t bytes_before(const Attention *call, int type, int64_t head) { return width_of(type) * (head / call->heads_per_kv_head * call->head_dim); }

/* Memory is read in order: a few tokens with all their heads, then the next. */
INLINE void attend_type(
    int type, const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t end, float (*weights)[PIECE], float *out) {
  const int64_t width = call->head_dim, num_tokens = last - first, num_heads = call->num_kv_heads * call->heads_per_kv_head, stride = 2 + width;
  const int64_t ahead = tokens_ahead(call, type);
  int64_t offsets[2 * PIECE + LANES];
  find_tokens(call, table, first, last, end, ahead, offsets);
  for (int64_t token = 0; token < num_tokens; token += LANES) {
    const int64_t next = token + ahead, behind = next - num_tokens; /* values come behind the last key */
    for (int64_t head = 0, heads; head < num_heads; head += heads) {
      heads = heads_from(call, head);
      const int64_t at = bytes_before(call, type, head);
      const Tokens tokens = {call->keys + at, (behind >= 0 ? call->values : call->keys) + at, offsets + token, offsets + (behind >= 0 ? behind : next)};
      FOR_HEADS(heads, score(type, n, query + head * width, tokens, width, call->scale, (float (*)[PIECE])(weights[head] + token)))
    }
  }
  for (int64_t head = 0; head < num_heads; head++) {
    out[head * stride + 1] = weigh(weights[head], num_tokens, out + head * stride);
    for (int64_t d = 0; d < width; d += LANES) stored(out + head * stride + 2 + d, all_floats(0.0f));
  }
  for (int64_t token = 0; token < num_tokens; token += NEAR_VALUES) {
    const int64_t next = token + ahead, left = num_tokens - token, some = left < NEAR_VALUES ? left : NEAR_VALUES;
    for (int64_t head = 0, heads; head < num_heads; head += heads) {
      heads = heads_from(call, head);
      const int64_t at = bytes_before(call, type, head);
      const Tokens tokens = {call->values + at, (next >= num_tokens ? call->keys : call->values) + at, offsets + token, offsets + next};
      FOR_HEADS(heads, add_all_values(type, n, tokens, some, width, (float (*)[PIECE])(weights[head] + token), out + head * stride))
    }
  }
}

/* See InstructionSet.attend. */
static void attend(const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t end, float (*weights)[PIECE], float *out) {
  switch (call->kv_type) {
#define CASE(type) case type: attend_type(type, call, query, table, first, last, end, weights, out); return;
    CASE(F32) CASE(F16) CASE(BF16) CASE(FLOAT8)
#undef CASE
  }
}

/* Add `parts` vectors of all pieces, times their factors, which stand first in each. */
INLINE void add_pieces(int parts, const float *pieces, int64_t num_pieces, int64_t stride, int64_t at, Floats scale, float *out) {
  Floats sums[PARTS];
  UNROLLED
  for (int p = 0; p < parts; p++) sums[p] = all_floats(0.0f);
  for (int64_t i = 0; i < num_pieces; i++, pieces += stride) {
    UNROLLED
    for (int p = 0; p < parts; p++) sums[p] = fused(loaded(pieces + 2 + at + p * LANES), all_floats(pieces[0]), sums[p]);
  }
  UNROLLED
  for (int p = 0; p < parts; p++) stored(out + at + p * LANES, sums[p] * scale);
}

/* See InstructionSet.join. */
static void join(float *pieces, int64_t num_pieces, int64_t stride, int64_t head_dim, float *out) {
  float most = pieces[0], total = 0.0f;
  for (int64_t i = 1; i < num_pieces; i++) most = pieces[i * stride] > most ? pieces[i * stride] : most;
  for (int64_t first = 0; first < num_pieces; first += LANES) {
    const int64_t count = num_pieces - first < LANES ? num_pieces - first : LANES;
    Floats factors = all_floats(most);
    for (int64_t i = 0; i < count; i++) factors[i] = pieces[(first + i) * stride];
    factors = exponential(factors - all_floats(most));
    for (int64_t i = 0; i < count; i++) {
      float *piece = pieces + (first + i) * stride;
      piece[0] = factors[i];
      total += factors[i] * piece[1];
    }
  }
  const Floats scale = all_floats(1.0f / total);
  int64_t d = 0;
  for (; d + PARTS * LANES <= head_dim; d += PARTS * LANES) add_pieces(PARTS, pieces, num_pieces, stride, d, scale, out);
  for (; d < head_dim; d += LANES) add_pieces(1, pieces, num_pieces, stride, d, scale, out);
}
