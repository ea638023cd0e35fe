#pragma once

#include <array>
#include <cstdint>

namespace plenum::base {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline constexpr int kPhiloxRounds = 10;

/// One round of Philox4x32.
constexpr PhiloxCounter philox_round(const PhiloxCounter& counter, const PhiloxKey& key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
  const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
  const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
  return {
      static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
      static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
}

/// The key of the next round.
constexpr PhiloxKey philox_next_key(const PhiloxKey& key) {
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  return {key[0] + kWeyl0, key[1] + kWeyl1};
}

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011): 128
/// random bits as a pure function of counter and key. The same numbers on every device.
constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    counter = philox_round(counter, key);
    key = philox_next_key(key);
  }
  return counter;
}

/// The keys of all rounds, for devices where a constant is cheaper than a sum.
using PhiloxRoundKeys = std::array<PhiloxKey, kPhiloxRounds>;
constexpr PhiloxRoundKeys philox_round_keys(PhiloxKey key) {
  PhiloxRoundKeys keys{};
  for (PhiloxKey& of_round : keys) {
    of_round = key;
    key = philox_next_key(key);
  }
  return keys;
}
constexpr PhiloxCounter philox_by_round_keys(PhiloxCounter counter, const PhiloxRoundKeys& keys) {
  for (const PhiloxKey& key : keys) counter = philox_round(counter, key);
  return counter;
}

/// What a random number is drawn for. Two purposes never share a number. Values are part of every run's
/// identity: never reuse or renumber one.
enum class Purpose : std::uint32_t {
  Order = 1,            ///< which sequences a step trains on
  PackSlots = 2,        ///< which sequence fills which slot of a pack
  Holdout = 3,          ///< which documents are set aside for evaluation
  SentencePairs = 4,    ///< next-sentence pairs: lengths, split points, random partners, truncation
  MaskPositions = 5,    ///< which tokens are masked
  MaskReplacement = 6,  ///< what a masked token becomes
  Initialisation = 7,   ///< initial weights
  Dropout = 8,          ///< which activations are dropped
  SyntheticText = 9,    ///< tokens and labels of made-up sequences
  Repacking = 10,       ///< which packs of a plan are packed anew, and how
};

/// Random numbers by identity: a family of independent functions, one per (seed, purpose, epoch), each
/// mapping (sample, position, layer, channel) to 128 random bits. Nothing is consumed and no order is
/// implied.
class RandomFunction {
 public:
  constexpr RandomFunction(std::uint64_t seed, Purpose purpose, std::uint64_t epoch = 0) {
    const PhiloxCounter bits =
        philox({static_cast<std::uint32_t>(purpose), 0, static_cast<std::uint32_t>(epoch),
                static_cast<std::uint32_t>(epoch >> 32)},
               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    key_ = {bits[0], bits[1]};
  }

  /// `sample` below 2^48, `layer` below 2^16.
  constexpr PhiloxCounter operator()(std::uint64_t sample, std::uint32_t position = 0,
                                     std::uint32_t layer = 0, std::uint32_t channel = 0) const {
    return philox({static_cast<std::uint32_t>(sample),
                   static_cast<std::uint32_t>(sample >> 32) | (layer << 16), position, channel},
                  key_);
  }

  constexpr PhiloxKey key() const { return key_; }

 private:
  PhiloxKey key_{};
};

/// The first 64 of 128 random bits.
constexpr std::uint64_t to_uint64(const PhiloxCounter& bits) {
  return bits[0] | (std::uint64_t{bits[1]} << 32);
}

/// Uniform in [0, 1) with 53 bits.
constexpr double to_unit_interval(const PhiloxCounter& bits) {
  return static_cast<double>(to_uint64(bits) >> 11) * 0x1.0p-53;
}

/// Uniform in [0, bound), by multiplication; the bias is below bound / 2^64.
constexpr std::uint64_t to_range(const PhiloxCounter& bits, std::uint64_t bound) {
  __extension__ using uint128 = unsigned __int128;
  return static_cast<std::uint64_t>((uint128{to_uint64(bits)} * bound) >> 64);
}

}  // namespace plenum::base
