#include "plenum/report/step_times.h"

#include <cmath>

namespace plenum::report {
namespace {

using nlohmann::json;

trace::Category category_of(std::string_view name) {
  for (std::size_t i = 0; i < trace::kNumCategories; ++i)
    if (trace::category_name(static_cast<trace::Category>(i)) == name) return static_cast<trace::Category>(i);
  return trace::Category::Other;
}

/// Throws json::exception where it is not what it should be, as those below.
StepTimeline parse_timeline(const json& object, std::size_t num_tracks) {
  StepTimeline timeline{.step_seconds = object.at("step_seconds").get<double>(),
                        .length_seconds = object.at("length_seconds").get<double>(),
                        .spans = {}};
  for (const json& span : object.at("spans")) {
    StepSpan parsed{.track = span.at(0).get<std::uint32_t>(),
                    .begin = span.at(1).get<double>(),
                    .end = span.at(2).get<double>(),
                    .category = category_of(span.at(3).get<std::string>()),
                    .label = span.at(4).get<std::string>(),
                    .micro_batch = span.at(5).get<std::int32_t>()};
    if (parsed.track < num_tracks) timeline.spans.push_back(std::move(parsed));
  }
  return timeline;
}

std::vector<std::pair<std::string, double>> mean_breakdown(const json& ranks) {
  std::vector<std::pair<std::string, double>> means;
  for (const json& rank : ranks) {
    std::size_t i = 0;
    for (const auto& [name, seconds] : rank.items()) {
      if (i == means.size()) means.emplace_back(name, 0);
      means[i++].second += seconds.get<double>() / static_cast<double>(ranks.size());
    }
  }
  return means;
}

StepTimes parse(const json& file) {
  StepTimes times{.step = file.at("step").get<std::uint64_t>(),
                  .schedule = file.at("schedule").get<std::string>(),
                  .prediction = file.at("prediction").get<std::string>(),
                  .num_ranks = file.at("ranks").get<std::size_t>(),
                  .waited_seconds = file.at("waited_seconds").get<double>(),
                  .tracks = {},
                  .predicted = {},
                  .measured = {},
                  .breakdown = mean_breakdown(file.at("breakdown"))};
  for (const json& track : file.at("tracks"))
    times.tracks.push_back({track.at("rank").get<std::uint32_t>(), track.at("lane").get<std::string>()});
  times.predicted = parse_timeline(file.at("predicted"), times.tracks.size());
  times.measured = parse_timeline(file.at("measured"), times.tracks.size());
  return times;
}

}  // namespace

std::optional<StepTimes> parse_step_times(const json& file) {
  try {
    return parse(file);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace plenum::report
