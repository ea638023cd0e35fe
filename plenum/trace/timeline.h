#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::trace {

/// What a span is drawn as.
enum class Category : std::uint8_t {
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  Recompute,
  Curvature,
  Inversion,
  Precondition,
  Update,
  Message,
  Collective,
  Other,
};
inline constexpr std::size_t kNumCategories = static_cast<std::size_t>(Category::Other) + 1;
/// As a legend calls it: "weight gradient".
std::string_view category_name(Category category);

inline constexpr std::uint16_t kNoStage = std::numeric_limits<std::uint16_t>::max();

/// Something that took time on a track.
struct Span {
  double start_seconds = 0;
  double end_seconds = 0;
  std::uint32_t track = 0;  ///< in Timeline::tracks
  std::uint32_t label = 0;  ///< in Timeline::labels
  Category category = Category::Other;
  std::uint16_t stage = kNoStage;
  std::int32_t micro_batch = -1;  ///< -1: belongs to none
  std::uint32_t step = 0;
};

/// A row of spans that do not overlap.
struct Track {
  std::uint32_t process = 0;  ///< the rank
  std::string name;           ///< the lane
};

/// That one span led to another on another track, as a send to its receive.
struct Flow {
  std::uint32_t from = 0;  ///< in Timeline::spans
  std::uint32_t to = 0;
};

/// What happened when, simulated or measured. Spans lie sorted by track, then by start.
struct Timeline {
  std::string title;
  double begin_seconds = 0;
  double end_seconds = 0;
  std::vector<Track> tracks;
  std::vector<std::string> labels;
  std::vector<std::string> explanations;  ///< of each label, in other words; may be empty
  std::vector<Span> spans;
  std::vector<Flow> flows;
  std::vector<double> step_begin_seconds;  ///< of each step that the timeline shows
  std::optional<double> step_seconds;      ///< of a step among others like it, where that is known
};

/// What a step takes: what the timeline knows, else the mean time between the beginnings of its steps, since
/// the next begins while the last drains; of a single one its length.
double mean_step_seconds(const Timeline& timeline);

}  // namespace plenum::trace
