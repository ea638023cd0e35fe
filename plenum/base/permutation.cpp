#include "plenum/base/permutation.h"

#include <cmath>

#include "plenum/base/check.h"

namespace plenum::base {
namespace {

/// The round function: a 64-bit finaliser (the constants of splitmix64), reduced to [0, radix) by
/// multiplication.
std::uint64_t round_function(std::uint64_t value, std::uint64_t key, std::uint64_t radix) {
  value += key;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  value ^= value >> 31;
  __extension__ using uint128 = unsigned __int128;
  return static_cast<std::uint64_t>((uint128{value} * radix) >> 64);
}

std::uint64_t add_modulo(std::uint64_t a, std::uint64_t b, std::uint64_t radix) {
  const std::uint64_t sum = a + b;
  return sum >= radix ? sum - radix : sum;
}

}  // namespace

KeyedPermutation::KeyedPermutation(const RandomFunction& random, std::uint64_t sample, std::uint64_t size)
    : size_(size) {
  check(size <= (std::uint64_t{1} << 62), "permutation is too large: size={}", size);
  left_radix_ = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(size))));
  if (left_radix_ == 0) left_radix_ = 1;
  right_radix_ = (size + left_radix_ - 1) / left_radix_;
  if (right_radix_ == 0) right_radix_ = 1;
  for (int pair = 0; pair < kRounds / 2; ++pair) {
    const PhiloxCounter bits = random(sample, static_cast<std::uint32_t>(pair));
    round_keys_[2 * pair] = bits[0] | (std::uint64_t{bits[1]} << 32);
    round_keys_[2 * pair + 1] = bits[2] | (std::uint64_t{bits[3]} << 32);
  }
}

std::uint64_t KeyedPermutation::encrypt(std::uint64_t value) const {
  std::uint64_t left = value / right_radix_;
  std::uint64_t right = value % right_radix_;
  for (int round = 0; round < kRounds; round += 2) {
    left = add_modulo(left, round_function(right, round_keys_[round], left_radix_), left_radix_);
    right = add_modulo(right, round_function(left, round_keys_[round + 1], right_radix_), right_radix_);
  }
  return left * right_radix_ + right;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t index) const {
  check(index < size_, "permutation index is out of range: index={} size={}", index, size_);
  do {
    index = encrypt(index);
  } while (index >= size_);
  return index;
}

}  // namespace plenum::base
