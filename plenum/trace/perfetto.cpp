#include "plenum/trace/perfetto.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plenum/trace/printable.h"

namespace plenum::trace {
namespace {

constexpr std::size_t kPieceBytes = 1 << 16;

/// When a span is drawn, in nanoseconds from the earliest on.
struct Slice {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

bool is_backward(Category category) {
  return category == Category::Backward || category == Category::InputGradient ||
         category == Category::WeightGradient;
}

class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, const std::function<void(std::string_view)>& write)
      : timeline_(timeline), write_(write) {
    origin_ = timeline.begin_seconds;
    for (const Span& span : timeline.spans) origin_ = std::min(origin_, span.start_seconds);
    find_slices();
    for (const std::string& label : timeline.labels) labels_.push_back(json_quoted(label));
    for (const std::string& text : timeline.explanations) explanations_.push_back(json_quoted(text));
    for (std::size_t i = 0; i < kNumCategories; ++i) {
      categories_.push_back(json_quoted(category_name(static_cast<Category>(i))));
    }
  }

  void run() {
    add("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"title\":{}}},\"traceEvents\":[",
        json_quoted(timeline_.title));
    for (std::size_t track = 0; track < timeline_.tracks.size(); ++track) add_track(track);
    for (std::size_t span = 0; span < timeline_.spans.size(); ++span) add_span(span);
    for (std::size_t flow = 0; flow < timeline_.flows.size(); ++flow) add_flow(flow);
    add_counters();
    add("\n]}}\n");
    write_(text_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    if (text_.size() < kPieceBytes) return;
    write_(text_);
    text_.clear();
  }

  void begin_event() {
    text_ += has_events_ ? ",\n" : "\n";
    has_events_ = true;
  }

  bool has_explanation(std::uint32_t label) const {
    return !timeline_.explanations.empty() && !timeline_.explanations[label].empty();
  }

  std::int64_t nanoseconds(double seconds) const { return std::llround((seconds - origin_) * 1e9); }

  /// Every slice has an extent and no other slice of its track in it: of two at the same time Perfetto draws
  /// one within the other, and an arrow binds to the slice that is under way at its time.
  void find_slices() {
    for (std::size_t i = 0; i < timeline_.spans.size(); ++i) {
      const Span& span = timeline_.spans[i];
      Slice slice{nanoseconds(span.start_seconds), nanoseconds(span.end_seconds)};
      if (i > 0 && timeline_.spans[i - 1].track == span.track) {
        slice.start = std::max(slice.start, slices_.back().end);
      }
      slice.end = std::max(slice.end, slice.start + 1);
      slices_.push_back(slice);
    }
  }

  void add_metadata(std::string_view what, std::uint32_t process, std::size_t thread,
                    std::string_view argument) {
    begin_event();
    add("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{{}}}}}", what, process, thread,
        argument);
  }

  void add_track(std::size_t track) {
    const std::uint32_t process = timeline_.tracks[track].process;
    if (track == 0 || timeline_.tracks[track - 1].process != process) {
      add_metadata("process_name", process, track, fmt::format("\"name\":\"rank {}\"", process));
      add_metadata("process_sort_index", process, track, fmt::format("\"sort_index\":{}", process));
    }
    add_metadata("thread_name", process, track,
                 fmt::format("\"name\":{}", json_quoted(timeline_.tracks[track].name)));
    add_metadata("thread_sort_index", process, track, fmt::format("\"sort_index\":{}", track));
  }

  void add_span(std::size_t index) {
    const Span& span = timeline_.spans[index];
    const std::int64_t start = slices_[index].start;
    const std::int64_t length = slices_[index].end - start;
    begin_event();
    add("{{\"ph\":\"X\",\"name\":{},\"cat\":{},\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}.{:03},"
        "\"args\":{{\"step\":{}",
        labels_[span.label], categories_[static_cast<std::size_t>(span.category)],
        timeline_.tracks[span.track].process, span.track, start / 1000, start % 1000, length / 1000,
        length % 1000, span.step);
    if (span.stage != kNoStage) add(",\"stage\":{}", span.stage);
    if (span.micro_batch >= 0) add(",\"micro_batch\":{}", span.micro_batch);
    if (has_explanation(span.label)) add(",\"action\":{}", explanations_[span.label]);
    add("}}}}");
  }

  void add_flow(std::size_t index) {
    const Flow& flow = timeline_.flows[index];
    add_flow_end("\"ph\":\"s\"", index, flow.from);
    add_flow_end("\"ph\":\"f\",\"bp\":\"e\"", index, flow.to);
  }

  void add_flow_end(std::string_view kind, std::size_t index, std::uint32_t end) {
    const Span& span = timeline_.spans[end];
    const std::int64_t start = slices_[end].start;
    begin_event();
    add("{{{},\"id\":{},\"name\":\"message\",\"cat\":\"flow\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03}}}", kind,
        index, timeline_.tracks[span.track].process, span.track, start / 1000, start % 1000);
  }

  /// Where a rank's micro-batches begin and end to be between forward and backward.
  void add_counters() {
    std::map<std::uint32_t, std::map<std::int64_t, int>> changes;  // by process and time
    for (const auto& [of, time] : alive_times()) {
      ++changes[of.process][time.start];
      --changes[of.process][time.end];
    }
    for (const auto& [process, at] : changes) {
      int count = 0;
      for (const auto& [time, change] : at) {
        count += change;
        begin_event();
        add("{{\"ph\":\"C\",\"name\":\"micro-batches\",\"pid\":{},\"ts\":{}.{:03},\"args\":{{\"held\":{}}}}}",
            process, time / 1000, time % 1000, count);
      }
    }
  }

  struct AliveKey {
    std::uint32_t process = 0;
    std::uint32_t step = 0;
    std::uint16_t stage = 0;
    std::int32_t micro_batch = 0;
    friend auto operator<=>(const AliveKey&, const AliveKey&) = default;
  };

  /// From the first forward of what a stage has of a micro-batch to its last backward, where it has both.
  std::map<AliveKey, Slice> alive_times() const {
    std::map<AliveKey, Slice> times;
    for (std::size_t i = 0; i < timeline_.spans.size(); ++i) {
      const Span& span = timeline_.spans[i];
      if (span.micro_batch < 0) continue;
      const AliveKey of{timeline_.tracks[span.track].process, span.step, span.stage, span.micro_batch};
      if (span.category == Category::Forward) times.try_emplace(of, slices_[i].start, slices_[i].start);
      if (!is_backward(span.category)) continue;
      const auto found = times.find(of);
      if (found != times.end()) found->second.end = std::max(found->second.end, slices_[i].end);
    }
    std::erase_if(times, [](const auto& time) { return time.second.end == time.second.start; });
    return times;
  }

  const Timeline& timeline_;
  const std::function<void(std::string_view)>& write_;
  double origin_ = 0;
  std::vector<Slice> slices_;  ///< of each span
  std::vector<std::string> labels_;
  std::vector<std::string> explanations_;  ///< of each label; may be empty
  std::vector<std::string> categories_;
  bool has_events_ = false;
  std::string text_;
};

}  // namespace

void write_trace(const Timeline& timeline, const std::function<void(std::string_view)>& write) {
  TraceWriter(timeline, write).run();
}

}  // namespace plenum::trace
