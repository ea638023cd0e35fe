#include "plenum/data/corpus/document_hash.h"

#include <array>

#include "plenum/io/checksum.h"

namespace plenum::data {
namespace {

constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // odd, hence invertible modulo 2^64

std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) result *= base;
  }
  return result;
}

}  // namespace

void DocumentHash::add_sentence(std::string_view text) {
  add_sentence_hash(io::checksum(text));
}

void DocumentHash::add_sentence_hash(std::uint64_t hash) {
  value_ = value_ * kMultiplier + hash;
  ++num_sentences_;
}

void DocumentHash::append(const DocumentHash& later) {
  value_ = value_ * power(kMultiplier, later.num_sentences_) + later.value_;
  num_sentences_ += later.num_sentences_;
}

std::uint64_t DocumentHash::identity() const {
  const std::array<std::uint64_t, 2> state{value_, num_sentences_};
  return io::checksum(std::string_view(reinterpret_cast<const char*>(state.data()), sizeof state));
}

Split HoldoutRule::split_of(std::uint64_t document_identity) const {
  if (!sets_aside()) return Split::Train;
  constexpr std::uint64_t kSampleMask = (std::uint64_t{1} << 48) - 1;
  const base::PhiloxCounter bits =
      random_(document_identity & kSampleMask, static_cast<std::uint32_t>(document_identity >> 48));
  return base::to_unit_interval(bits) < fraction_ ? Split::Holdout : Split::Train;
}

}  // namespace plenum::data
