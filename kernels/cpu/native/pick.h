/* What draws do with all tokens of a row, for one instruction set: included behind between.h. See `maskwright_pick`. */

typedef double Doubles __attribute__((vector_size(8 * LANES)));
typedef int64_t Longs __attribute__((vector_size(8 * LANES)));

#define MOST 3.402823466e38f
#define NEGLIGIBLE -60.0f /* exp of this is 0 in every fixed point used here */

static inline float bounded(float x) { return x != x || x < -MOST ? -MOST : x > MOST ? MOST : x; }

static inline Floats all_bounded(Floats x) {
  const Floats low = all_floats(-MOST), high = all_floats(MOST);
  Ints is_high = x > high, is_fine = x >= low; /* false for NaN */
  x = (Floats)((is_high & (Ints)high) | (~is_high & (Ints)x));
  return (Floats)((is_fine & (Ints)x) | (~is_fine & (Ints)low));
}

/* `x` where the bits from `place` on are set, -infinity elsewhere. */
static inline Floats allowed_only(Floats x, const uint32_t *bits, int64_t place) {
  static const int32_t lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Words shifts;
  __builtin_memcpy(&shifts, lanes, sizeof shifts);
  Ints is_in = -(Ints)(((Words)all_ints((int32_t)(bits[place / 32] >> place % 32)) >> shifts) & 1);
  return (Floats)((is_in & (Ints)x) | (~is_in & (Ints)all_floats(-__builtin_inff())));
}

static inline int is_set(const uint32_t *bits, int64_t place) { return bits[place / 32] >> place % 32 & 1; }

static float most_of(const float *logits, const uint32_t *bits, int64_t count) {
  Floats most = all_floats(-__builtin_inff());
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    Floats x = allowed_only(all_bounded(loaded(logits + i)), bits, i);
    Ints is_more = x > most;
    most = (Floats)((is_more & (Ints)x) | (~is_more & (Ints)most));
  }
  float result = most[0];
  for (int lane = 1; lane < LANES; lane++) result = most[lane] > result ? most[lane] : result;
  for (; i < count; i++) result = is_set(bits, i) && bounded(logits[i]) > result ? bounded(logits[i]) : result;
  return result;
}

/* The sum of exp(logit - most), sixteen partial sums of every sixteenth token each, added in their order. */
static double sum_of(const float *logits, const uint32_t *bits, int64_t count, float most) {
  Doubles partial[PARTIAL];
  double sums[16], total = 0.0;
  for (int p = 0; p < PARTIAL; p++) partial[p] = (Doubles){0};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int p = 0; p < PARTIAL; p++) {
      Floats x = allowed_only(all_bounded(loaded(logits + i + p * LANES)), bits, i + p * LANES);
      partial[p] += __builtin_convertvector(exponential(x - all_floats(most)), Doubles);
    }
  }
  __builtin_memcpy(sums, partial, sizeof sums);
  for (; i < count; i++) sums[i % 16] += is_set(bits, i) ? (double)exponential(all_floats(bounded(logits[i]) - most))[0] : 0.0;
  for (int lane = 0; lane < 16; lane++) total += sums[lane];
  return total;
}

/* Logits as scores: -infinity where the bit is not set. */
static void mask_scores(const float *logits, const uint32_t *bits, int64_t count, float *scores) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) stored(scores + i, allowed_only(all_bounded(loaded(logits + i)), bits, i));
  for (; i < count; i++) scores[i] = is_set(bits, i) ? bounded(logits[i]) : -__builtin_inff();
}

/* -infinity of none. */
static float largest(const float *scores, int64_t count) {
  Floats most = all_floats(-__builtin_inff());
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    Floats x = loaded(scores + i);
    Ints is_more = x > most;
    most = (Floats)((is_more & (Ints)x) | (~is_more & (Ints)most));
  }
  float result = most[0];
  for (int lane = 1; lane < LANES; lane++) result = most[lane] > result ? most[lane] : result;
  for (; i < count; i++) result = scores[i] > result ? scores[i] : result;
  return result;
}

static inline Floats weight_of(Floats score, float best, float temperature) {
  Floats scaled = (score - all_floats(best)) / all_floats(temperature), least = all_floats(NEGLIGIBLE);
  Ints is_less = scaled < least;
  return exponential((Floats)((is_less & (Ints)least) | (~is_less & (Ints)scaled)));
}

/* exp((score - best) / temperature), of which the best one has 1. */
static void weights_of(const float *scores, int64_t count, float best, float temperature, float *weights) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) stored(weights + i, weight_of(loaded(scores + i), best, temperature));
  for (; i < count; i++) weights[i] = weight_of(all_floats(scores[i]), best, temperature)[0];
}

/* The sum of floor(weight * unit). */
static int64_t fixed_sum(const float *weights, int64_t count, float unit) {
  Longs sums = {0};
  int64_t i = 0, total = 0;
  for (; i + LANES <= count; i += LANES) sums += __builtin_convertvector(loaded(weights + i) * all_floats(unit), Longs);
  for (int lane = 0; lane < LANES; lane++) total += sums[lane];
  for (; i < count; i++) total += (int64_t)(weights[i] * unit);
  return total;
}

static int has_nan(const float *x, int64_t count) {
  Ints found = all_ints(0);
  int64_t i = 0;
  for (; i + 4 * LANES <= count; i += 4 * LANES) {
    for (int p = 0; p < 4; p++) {
      Floats some = loaded(x + i + p * LANES);
      found |= some != some;
    }
  }
  int any = 0;
  for (int lane = 0; lane < LANES; lane++) any |= found[lane];
  for (; i < count; i++) any |= x[i] != x[i];
  return any != 0;
}
