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
