/* What lies between the products of a decoder layer, for one instruction set: included behind kernel.h. All numbers are float32. */

static inline Floats loaded(const float *p) {
  Floats values;
  __builtin_memcpy(&values, p, sizeof values);
  return values;
}

static inline void stored(float *p, Floats values) { __builtin_memcpy(p, &values, sizeof values); }

/* e to the power of x, to 2 units of the last place; 0 for x below -87. */
static inline Floats exponential(Floats x) {
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
static inline void normalize(const float *x, const float *weight, float eps, int64_t width, float *out) {
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

/* gate * sigmoid(gate) * up, of `width` numbers each. */
static void gated_silu(const float *gate, const float *up, int64_t width, float *out) {
  for (int64_t i = 0; i < width; i += LANES) {
    Floats x = loaded(gate + i);
    stored(out + i, x / (all_floats(1.0f) + exponential(-x)) * loaded(up + i));
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

/* One query head group over the tokens [first, last) of a sequence: see `Attention` in products.h. */
static void attend(const Attention *call, const float *query, const int64_t *table, int64_t first, int64_t last, int64_t kv_head, float *scores, float *out) {
  const int64_t width = call->head_dim, size = call->block_size, stride = call->num_kv_heads * width, heads = call->heads_per_kv_head;
  const int64_t num_tokens = last - first;
  for (int64_t token = first; token < last; token++) {
    const float *key = call->keys + (table[token / size] * size + token % size) * stride + kv_head * width;
    for (int64_t head = 0; head < heads; head++) {
      Floats sum = all_floats(0.0f);
      for (int64_t i = 0; i < width; i += LANES) sum = fused(loaded(query + head * width + i), loaded(key + i), sum);
      scores[head * call->max_tokens + token - first] = lanes_added(sum) * call->scale;
    }
  }
  for (int64_t head = 0; head < heads; head++) {
    float *mine = scores + head * call->max_tokens, most = mine[0], sum = 0.0f;
    int64_t i = 0;
    for (int64_t j = 1; j < num_tokens; j++) most = mine[j] > most ? mine[j] : most;
    Floats partial = all_floats(0.0f);
    for (; i + LANES <= num_tokens; i += LANES) {
      Floats weights = exponential(loaded(mine + i) - all_floats(most));
      stored(mine + i, weights);
      partial += weights;
    }
    for (sum = lanes_added(partial); i < num_tokens; i++) sum += mine[i] = exponential(all_floats(mine[i] - most))[0];
    for (int64_t d = 0; d < width; d += 4 * LANES) {
      const int parts = (int)(width - d < 4 * LANES ? (width - d) / LANES : 4);
      Floats values[4];
      for (int p = 0; p < parts; p++) values[p] = all_floats(0.0f);
      for (int64_t token = first; token < last; token++) {
        const float *value = call->values + (table[token / size] * size + token % size) * stride + kv_head * width + d;
        Floats weight = all_floats(mine[token - first]);
        if (parts == 4) {
          UNROLLED for (int p = 0; p < 4; p++) values[p] = fused(weight, loaded(value + p * LANES), values[p]);
        } else {
          for (int p = 0; p < parts; p++) values[p] = fused(weight, loaded(value + p * LANES), values[p]);
        }
      }
      for (int p = 0; p < parts; p++) stored(out + head * width + d + p * LANES, values[p] / all_floats(sum));
    }
  }
}
