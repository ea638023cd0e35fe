#include "plenum/data/batches/masking.h"

#include <algorithm>
#include <cmath>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::data {
namespace {

/// The tokens that every sequence of this length has besides the special ones: a pair has three of those and
/// at least four tokens, other sequences two.
std::int64_t fewest_maskable(std::int64_t length) {
  return length >= 4 ? length - 3 : std::max<std::int64_t>(length - 2, 0);
}

bool is_special(std::span<const std::uint8_t> segments, std::size_t position) {
  return position == 0 || position + 1 == segments.size() || segments[position] != segments[position + 1];
}

}  // namespace

MaskSplit parse_mask_split(std::string_view text, std::string_view what) {
  const auto fail_split = [&]() {
    base::fail("{} must be three percentages that make 100, such as 80/10/10: '{}'", what, text);
  };
  const std::size_t first = text.find('/');
  const std::size_t second = first == std::string_view::npos ? first : text.find('/', first + 1);
  if (second == std::string_view::npos) fail_split();
  const auto percentage = [&](std::string_view part) {
    if (part.empty() || part.size() > 3 || part.find_first_not_of("0123456789") != std::string_view::npos)
      fail_split();
    return static_cast<std::uint32_t>(base::parse_integer(part, what));
  };
  const MaskSplit split{.mask = percentage(text.substr(0, first)),
                        .random = percentage(text.substr(first + 1, second - first - 1)),
                        .keep = percentage(text.substr(second + 1))};
  if (split.mask + split.random + split.keep != 100) fail_split();
  return split;
}

std::int64_t masked_count(std::int64_t length, double rate) {
  const std::int64_t asked = std::llround(rate * static_cast<double>(length));
  return std::min(std::max<std::int64_t>(asked, 1), fewest_maskable(length));
}

MaskingVocabulary::MaskingVocabulary(const Vocabulary& vocabulary)
    : size(static_cast<std::int64_t>(vocabulary.size())), special(vocabulary.special()) {
  for (const std::string& token : vocabulary.tokens())
    continues.push_back(token.starts_with(kContinuingPrefix));
}

Masking::Masking(const MaskingOptions& options, const MaskingVocabulary& vocabulary, std::uint64_t seed,
                 std::uint64_t epoch)
    : options_(options),
      vocabulary_(vocabulary),
      special_{vocabulary.special.pad, vocabulary.special.unknown, vocabulary.special.cls,
               vocabulary.special.sep, vocabulary.special.mask},
      ranking_(seed, base::Purpose::MaskPositions, epoch),
      replacing_(seed, base::Purpose::MaskReplacement, epoch) {
  base::require(options.rate > 0 && options.rate <= 1, "the mask rate must be above 0 and at most 1: {}",
                options.rate);
  base::require(vocabulary.size > static_cast<std::int64_t>(special_.size()),
                "the vocabulary has no words, only special tokens");
  std::sort(special_.begin(), special_.end());
}

std::vector<Masking::Candidate> Masking::candidates(std::uint64_t sample, std::span<const TokenId> ids,
                                                    std::span<const std::uint8_t> segments) const {
  std::vector<Candidate> candidates;
  candidates.reserve(ids.size());
  bool inside_word = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (is_special(segments, i)) {
      inside_word = false;
      continue;
    }
    if (inside_word && vocabulary_.continues[static_cast<std::size_t>(ids[i])]) {
      ++candidates.back().length;
      continue;
    }
    const std::uint64_t hash = base::to_uint64(ranking_(sample, static_cast<std::uint32_t>(i)));
    candidates.push_back({.hash = hash, .position = static_cast<std::int32_t>(i), .length = 1});
    inside_word = options_.unit == MaskUnit::Word;
  }
  return candidates;
}

void Masking::mask(std::uint64_t sample, std::span<TokenId> ids, std::span<const std::uint8_t> segments,
                   std::vector<std::int32_t>& positions, std::vector<TokenId>& labels) const {
  base::check(ids.size() == segments.size(), "every token must have a segment: tokens={} segments={}",
              ids.size(), segments.size());
  std::int64_t left = masked_count(static_cast<std::int64_t>(ids.size()), options_.rate);
  const auto first_new = static_cast<std::ptrdiff_t>(positions.size());
  std::vector<Candidate> ranked = candidates(sample, ids, segments);
  std::sort(ranked.begin(), ranked.end());
  for (const Candidate& candidate : ranked) {
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(candidate.length, left));
    for (std::int32_t i = 0; i < taken; ++i) positions.push_back(candidate.position + i);
    left -= taken;
  }
  base::check(left == 0, "a sequence must have as many tokens to mask as its length asks for: length={}",
              ids.size());

  std::sort(positions.begin() + first_new, positions.end());
  for (auto i = positions.begin() + first_new; i != positions.end(); ++i) {
    TokenId& id = ids[static_cast<std::size_t>(*i)];
    labels.push_back(id);
    id = replacement(sample, *i, id);
  }
}

TokenId Masking::replacement(std::uint64_t sample, std::int32_t position, TokenId id) const {
  const base::PhiloxCounter bits = replacing_(sample, static_cast<std::uint32_t>(position));
  const std::uint64_t percent = base::to_range(bits, 100);
  if (percent < options_.split.mask) return vocabulary_.special.mask;
  if (percent < options_.split.mask + options_.split.random) return random_token(bits);
  return id;
}

TokenId Masking::random_token(const base::PhiloxCounter& bits) const {
  // The first half of the bits has decided that the token is a random one.
  const std::int64_t num_words = vocabulary_.size - static_cast<std::int64_t>(special_.size());
  auto id = static_cast<TokenId>(base::to_range({bits[2], bits[3]}, static_cast<std::uint64_t>(num_words)));
  for (const TokenId special : special_) {
    if (id >= special) ++id;
  }
  return id;
}

}  // namespace plenum::data
