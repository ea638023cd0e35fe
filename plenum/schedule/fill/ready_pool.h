#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace plenum::schedule {

/// An item of a refresh, or the next piece of one, whose inputs exist.
struct ReadyItem {
  std::uint64_t priority = 0;  ///< least first
  std::uint32_t item = 0;      ///< in Refresh::items()
  std::uint32_t refresh = 0;
  std::uint8_t piece = 0;
  std::uint8_t num_pieces = 1;
};

/// What a rank could run now, and the choice of what to run next so that the gap ends up full.
///
/// Items of one length are alike, so a gap is filled from few lengths: a search over how many of each, from
/// the longest on, finds what is left over at least.
class ReadyPool {
 public:
  struct Length {
    double seconds = 0;
    std::vector<ReadyItem> items;  ///< a heap, first by priority on top
  };
  struct Choice {
    std::size_t length = 0;  ///< in lengths()
    double waste = 0;        ///< what of the gap no known item can fill after it
  };

  void add(double seconds, const ReadyItem& item);
  /// Removes the first item of a length, and with the last one the length.
  ReadyItem take(std::size_t length);

  /// Longest first.
  const std::vector<Length>& lengths() const { return lengths_; }

  /// The first item by priority after which at most `enough` of `seconds` stays empty, or, where there is
  /// none, the one that leaves least. Nothing if no item fits.
  std::optional<Choice> choose(double seconds, double enough) const;

  /// The least that stays empty of `seconds`, or something less than `enough`, if the first item of length
  /// `without` is not used.
  double least_waste(double seconds, double enough, std::size_t without) const;

 private:
  std::vector<Length> lengths_;
  double total_seconds_ = 0;
};

}  // namespace plenum::schedule
