/* NEON with products of bytes (DotProd): four rows at a time. */
#define LANES 4
#define SIGNED_AS 0
#define SIGNED_OFFSET 0

typedef int32_t Ints __attribute__((vector_size(16)));
typedef float Floats __attribute__((vector_size(16)));

/* Unsigned weights below 128 only: they are signed bytes, too. */
INLINE Ints dot(Ints sum, Ints weights, Ints x) { return (Ints)vdotq_s32((int32x4_t)sum, (int8x16_t)weights, (int8x16_t)x); }
#define dot_signed dot
#define dot_bytes dot
INLINE Floats fused(Floats a, Floats b, Floats c) { return (Floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
INLINE Floats floats_of(Ints a) { return (Floats)vcvtq_f32_s32((int32x4_t)a); }
INLINE Ints all_ints(int32_t a) { return (Ints)vdupq_n_s32(a); }
INLINE Floats all_floats(float a) { return (Floats)vdupq_n_f32(a); }

/* The lowest four bits of each lane, one in each byte. */
INLINE Ints four_bits_apart(Ints bits) { return ((bits & all_ints(15)) * all_ints(0x00204081)) & all_ints(0x01010101); }

INLINE Ints looked_up(const int8_t *table, Ints nibbles) { return (Ints)vqtbl1q_s8(vld1q_s8(table), (uint8x16_t)nibbles); }

INLINE void transposed(uint8x16_t first, uint8x16_t second, uint8x16_t third, uint8x16_t fourth, Ints *out) {
  int32x4_t a = (int32x4_t)first, b = (int32x4_t)second, c = (int32x4_t)third, d = (int32x4_t)fourth;
  int64x2_t ab = (int64x2_t)vzip1q_s32(a, b), cd = (int64x2_t)vzip1q_s32(c, d);
  int64x2_t ab_high = (int64x2_t)vzip2q_s32(a, b), cd_high = (int64x2_t)vzip2q_s32(c, d);
  out[0] = (Ints)vzip1q_s64(ab, cd);
  out[1] = (Ints)vzip2q_s64(ab, cd);
  out[2] = (Ints)vzip1q_s64(ab_high, cd_high);
  out[3] = (Ints)vzip2q_s64(ab_high, cd_high);
}

/* Sixteen bytes of each row: out[i] has the i-th four of all. */
INLINE void columns(const uint8_t *p, Stride stride, Ints *out) { transposed(vld1q_u8(ROW(0)), vld1q_u8(ROW(1)), vld1q_u8(ROW(2)), vld1q_u8(ROW(3)), out); }

/* The same of bytes in another order, 0 where that is 128. */
INLINE void ordered_columns(const uint8_t *p, Stride stride, const uint8_t *order, Ints *out) {
  const uint8x16_t places = vld1q_u8(order);
  uint8x16_t rows[4];
  for (int i = 0; i < 4; i++) rows[i] = vqtbl1q_u8(vld1q_u8(ROW(i)), places);
  transposed(rows[0], rows[1], rows[2], rows[3], out);
}

INLINE Floats from_halves(Ints low_halves) { return (Floats)vcvt_f32_f16((float16x4_t)vmovn_u32((uint32x4_t)low_halves)); }

#define HALF(i) (*(const Unaligned16 *)ROW(i))
#define WORD(i) (int32_t)(*(const Unaligned32 *)ROW(i))

INLINE Floats halves(const uint8_t *p, Stride stride) { return from_halves((Ints){HALF(0), HALF(1), HALF(2), HALF(3)}); }
INLINE Ints shorts(const uint8_t *p, Stride stride) { return (Ints){HALF(0), HALF(1), HALF(2), HALF(3)}; }
INLINE Ints bytes(const uint8_t *p, Stride stride) { return (Ints){*ROW(0), *ROW(1), *ROW(2), *ROW(3)}; }
INLINE Ints words(const uint8_t *p, Stride stride) { return (Ints){WORD(0), WORD(1), WORD(2), WORD(3)}; }

/* Four numbers of 16 bits. */
INLINE Ints extended(const uint8_t *p) {
  uint16x4_t numbers;
  __builtin_memcpy(&numbers, p, sizeof numbers);
  return (Ints)vmovl_u16(numbers);
}
INLINE Floats converted_halves(const uint8_t *p) { return from_halves(extended(p)); }

/* Four numbers of e4m3, each divided by 256: as float16, whose exponents and fractions have the same places. */
INLINE Floats float8(const uint8_t *p) {
  Ints codes = {p[0], p[1], p[2], p[3]}, rest = codes & 127;
  return from_halves((codes & 128) << 8 | rest << 7 | ((rest == 127) & 0x7C00));
}

/* Lanes i and i + 2 are added, then 0 and 1. */
INLINE float lanes_added(Floats a) { return (a[0] + a[2]) + (a[1] + a[3]); }

/* Lane i has what `lanes_added` makes of a[i]. */
INLINE Floats each_lanes_added(const Floats *a) {
  Ints turned[4];
  columns((const uint8_t *)a, stride_of(sizeof *a), turned);
  return ((Floats)turned[0] + (Floats)turned[2]) + ((Floats)turned[1] + (Floats)turned[3]);
}
