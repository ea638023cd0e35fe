#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

/// Builds timelines by hand, track by track.
class SampleTimeline {
 public:
  SampleTimeline& track(std::uint32_t process, const std::string& name) {
    timeline_.tracks.push_back({process, name});
    return *this;
  }

  SampleTimeline& span(double start, double end, const std::string& label, Category category,
                       std::int32_t micro_batch = -1, std::uint32_t step = 0) {
    timeline_.labels.push_back(label);
    timeline_.spans.push_back({.start_seconds = start,
                               .end_seconds = end,
                               .track = static_cast<std::uint32_t>(timeline_.tracks.size() - 1),
                               .label = static_cast<std::uint32_t>(timeline_.labels.size() - 1),
                               .category = category,
                               .stage = static_cast<std::uint16_t>(timeline_.tracks.back().process),
                               .micro_batch = micro_batch,
                               .step = step});
    return *this;
  }

  SampleTimeline& flow(std::uint32_t from, std::uint32_t to) {
    timeline_.flows.push_back({from, to});
    return *this;
  }

  Timeline build(std::string title, double begin, double end, std::initializer_list<double> step_begins) {
    timeline_.title = std::move(title);
    timeline_.begin_seconds = begin;
    timeline_.end_seconds = end;
    timeline_.step_begin_seconds = step_begins;
    return timeline_;
  }

 private:
  Timeline timeline_;
};

/// Two ranks, ten milliseconds that begin at second 5: forwards, a message, a backward and fillers.
inline Timeline two_ranks(std::string title = "two ranks") {
  return SampleTimeline()
      .track(0, "compute")
      .span(5.000, 5.002, "F0.0", Category::Forward, 0)
      .span(5.002, 5.004, "F0.1", Category::Forward, 1)
      .span(5.005, 5.009, "KA0.0[0]/0", Category::Curvature, 0)
      .track(0, "pipe")
      .span(5.002, 5.003, "SF0.0", Category::Message, 0)
      .track(1, "compute")
      .span(5.003, 5.008, "B1.0", Category::Backward, 0)
      .span(5.008, 5.010, "KI1[1]/0", Category::Inversion)
      .track(1, "pipe")
      .span(5.003, 5.003, "RF1.0", Category::Message, 0)
      .flow(3, 6)
      .build(std::move(title), 5.0, 5.01, {5.0});
}

}  // namespace plenum::trace
