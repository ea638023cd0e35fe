#include "plenum/kernels/cpu/dropout.h"

#include <array>
#include <cstring>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace plenum::kernels::cpu {
namespace {

constexpr std::uint32_t kCounters = 16;

using Words = std::uint32_t __attribute__((vector_size(64)));      // one word of 16 counters
using LongWords = std::uint64_t __attribute__((vector_size(64)));  // pairs of words

// The products of the lower halves. The compiler would take three multiplications instead of one, because it
// does not see that the upper halves do not count.
inline LongWords multiply_lower(LongWords a, LongWords b) {
#ifdef __AVX512F__
  return reinterpret_cast<LongWords>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#else
  return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
#endif
}

struct Product {
  Words low;
  Words high;
};

inline Product multiply(Words words, std::uint32_t multiplier) {
  const LongWords pairs = reinterpret_cast<LongWords>(words);
  const LongWords factor = LongWords{} + multiplier;
  const LongWords even = multiply_lower(pairs, factor);
  const LongWords odd = multiply_lower(pairs >> 32, factor);
  return {.low = reinterpret_cast<Words>((even & 0xFFFFFFFF) | (odd << 32)),
          .high = reinterpret_cast<Words>((even >> 32) | (odd & ~std::uint64_t{0xFFFFFFFF}))};
}

struct Counters {
  std::array<Words, 4> words;
};

// base::philox of 16 counters at once.
inline Counters philox(Counters counters, base::PhiloxKey key) {
  auto& [a, b, c, d] = counters.words;
  for (int round = 0; round < 10; ++round) {
    const Product p = multiply(a, 0xD2511F53);
    const Product q = multiply(c, 0xCD9E8D57);
    a = q.high ^ b ^ key[0];
    b = q.low;
    c = p.high ^ d ^ key[1];
    d = p.low;
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counters;
}

// Writes the words of each counter one after another.
inline void store(const Counters& counters, std::uint8_t* bytes) {
  const auto& [a, b, c, d] = counters.words;
  const auto low = [](Words x, Words y) {
    return __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  };
  const auto high = [](Words x, Words y) {
    return __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  };
  // Interleaving (a, c) and (b, d), and then the two, puts the words into the order a b c d.
  const std::array<Words, 4> ordered = {low(low(a, c), low(b, d)), high(low(a, c), low(b, d)),
                                        low(high(a, c), high(b, d)), high(high(a, c), high(b, d))};
  std::memcpy(bytes, ordered.data(), sizeof ordered);
}

}  // namespace

void draw_dropout_bytes(const Dropout& dropout, const DropoutBox& box, std::uint8_t* bytes) {
  const Words sample_low = Words{} + static_cast<std::uint32_t>(box.sample);
  const Words sample_high =
      Words{} + (static_cast<std::uint32_t>(box.sample >> 32) | (dropout.layer_and_site() << 16));
  // Lane i holds group i of the box, counted row by row; then group i + 16, and so on.
  Words row = {};
  Words group = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const auto carry = [&] {
    const Words is_beyond = reinterpret_cast<Words>(group >= box.num_groups);  // -1 or 0
    group -= is_beyond & box.num_groups;
    row -= is_beyond;
  };
  for (std::uint32_t begin = box.num_groups; begin < kCounters; begin += box.num_groups) carry();
  const std::uint32_t row_step = kCounters / box.num_groups;
  const std::uint32_t group_step = kCounters % box.num_groups;
  const std::uint64_t num_groups = std::uint64_t{box.num_positions} * box.num_groups;
  for (std::uint64_t done = 0; done < num_groups; done += kCounters) {
    store(philox({{sample_low, sample_high, row + box.first_position, group + box.first_group}}, dropout.key),
          bytes + done * kDropoutGroup);
    row += row_step;
    group += group_step;
    carry();
  }
}

}  // namespace plenum::kernels::cpu
