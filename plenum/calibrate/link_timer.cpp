#include "plenum/calibrate/link_timer.h"

#include <algorithm>
#include <cmath>

#include "plenum/base/check.h"
#include "plenum/calibrate/busy_ranks.h"
#include "plenum/calibrate/op_timer.h"
#include "plenum/calibrate/stopwatch.h"
#include "plenum/comm/local/local_world.h"
#include "plenum/tensor/arena.h"

namespace plenum::calibrate {
namespace {

constexpr comm::Tag kTag = 1;

/// One member's part in the measurement.
class LinkTimer {
 public:
  LinkTimer(comm::Communicator& communicator, const LinkTimerOptions& options)
      : communicator_(communicator),
        options_(options),
        memory_(2 * std::ranges::max(options.sizes)),
        source_(floats_of(memory_, 0)),
        destination_(floats_of(memory_, 1)) {
    // Written, so that they are pages of their own. Zeros, because a sum that is summed again and again would
    // soon be infinite; how long an addition takes does not depend on them.
    std::ranges::fill(source_, 0.0F);
    std::ranges::fill(destination_, 0.0F);
  }

  MeasuredLink measure(LinkOperation operation) {
    std::vector<double> sizes, times;
    for (const std::size_t bytes : options_.sizes) {
      sizes.push_back(static_cast<double>(bytes));
      times.push_back(measure(operation, bytes / sizeof(float)));
    }
    // The formulas are lines, too: what a link with a latency and with a bandwidth of 1 makes of it.
    const Line line = fit_line(sizes, times);
    const plan::LinkSeconds unit = seconds_of(operation, {.latency_seconds = 1, .bytes_per_second = 1});
    const double seconds_per_byte = line.slope / unit.bandwidth;
    return {.operation = operation,
            .link = {.latency_seconds = line.offset / unit.latency,
                     .bytes_per_second = seconds_per_byte > 0 ? 1 / seconds_per_byte
                                                              : unit.bandwidth * sizes.back() / times.back()},
            .fit_error = line.error};
  }

 private:
  /// Half of it.
  static std::span<float> floats_of(const tensor::Arena& memory, std::size_t half) {
    const auto count = static_cast<std::int64_t>(memory.num_bytes() / 2 / sizeof(float));
    const tensor::Block block{.offset = half * (memory.num_bytes() / 2), .shape = {count}};
    return {memory.view(block).data<float>(), static_cast<std::size_t>(count)};
  }
  /// Of one byte.
  plan::LinkSeconds seconds_of(LinkOperation operation, const plan::Link& link) const {
    if (operation == LinkOperation::Message) return plan::message_seconds(link, 1);
    if (operation == LinkOperation::AllReduce) return plan::all_reduce_seconds(link, 1, communicator_.size());
    return plan::gather_seconds(link, 1, communicator_.size());
  }

  /// The mean over the members of their medians.
  double measure(LinkOperation operation, std::size_t count) {
    communicator_.start_barrier(kTag).wait();
    run(operation, count);
    communicator_.start_barrier(kTag).wait();
    const double once = mean_over_members(time_once(operation, count));
    constexpr double kLeastRuns = 5, kMostRuns = 1000;
    const auto num_runs =
        static_cast<std::size_t>(std::clamp(options_.seconds / std::max(once, 1e-9), kLeastRuns, kMostRuns));
    std::vector<double> times;
    communicator_.start_barrier(kTag).wait();
    for (std::size_t i = 0; i < num_runs; ++i) times.push_back(time_once(operation, count));
    return mean_over_members(timing_of(std::move(times)).seconds);
  }

  double time_once(LinkOperation operation, std::size_t count) {
    const Stopwatch watch;
    run(operation, count);
    const double seconds = watch.seconds();
    if (operation != LinkOperation::Message) return seconds;
    return partner() < communicator_.size() ? seconds / 2 : 0;  // there and back
  }

  /// Of those that took part: a member without a partner has no messages.
  double mean_over_members(double seconds) {
    const bool takes_part = seconds > 0;
    std::vector<double> sums = {takes_part ? seconds : 0, takes_part ? 1.0 : 0.0};
    communicator_.start_all_reduce(comm::elements_of(std::span(sums)), kTag).wait();
    return sums[1] > 0 ? sums[0] / sums[1] : 0;
  }

  void run(LinkOperation operation, std::size_t count) {
    const std::span<float> all = source_.first(count);
    if (operation == LinkOperation::Message) return exchange(all);
    if (operation == LinkOperation::AllReduce) {
      return communicator_.start_all_reduce(comm::elements_of(all), kTag).wait();
    }
    std::vector<std::size_t> counts(communicator_.size(), count / communicator_.size());
    counts.back() += count % communicator_.size();
    const std::span<float> own = destination_.first(counts[communicator_.index()]);
    if (operation == LinkOperation::ReduceScatter) {
      communicator_.start_reduce_scatter(comm::elements_of(all), comm::elements_of(own), counts, kTag).wait();
    } else {
      communicator_.start_all_gather(comm::elements_of(own), comm::elements_of(all), counts, kTag).wait();
    }
  }

  /// The member next to this one: 0 and 1, 2 and 3 and so on. The last of an odd number has none.
  std::size_t partner() const { return communicator_.index() ^ 1U; }

  void exchange(std::span<float> all) {
    const std::size_t partner = this->partner();
    if (partner >= communicator_.size()) return;
    const std::span<float> back = destination_.first(all.size());
    if (communicator_.index() < partner) {
      communicator_.start_send(partner, kTag, comm::elements_of(all)).wait();
      communicator_.start_receive(partner, kTag, comm::elements_of(back)).wait();
    } else {
      communicator_.start_receive(partner, kTag, comm::elements_of(back)).wait();
      communicator_.start_send(partner, kTag, comm::elements_of(all)).wait();
    }
  }

  comm::Communicator& communicator_;
  const LinkTimerOptions& options_;
  tensor::Arena memory_;  ///< given back when it is not needed any more, as what an allocator keeps is not
  std::span<float> source_, destination_;
};

}  // namespace

Line fit_line(std::span<const double> x, std::span<const double> seconds) {
  base::check(x.size() == seconds.size() && x.size() >= 2, "a line needs two points at least: {} and {}",
              x.size(), seconds.size());
  // Distances are relative: (offset + slope x) / t - 1.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    base::check(seconds[i] > 0, "a measured time must be above 0: {}", seconds[i]);
    const double of_offset = 1 / seconds[i];
    const double of_slope = x[i] / seconds[i];
    aa += of_offset * of_offset;
    ab += of_offset * of_slope;
    bb += of_slope * of_slope;
    a += of_offset;
    b += of_slope;
  }
  Line line;
  const double determinant = aa * bb - ab * ab;
  if (determinant > 0) {
    line.offset = (a * bb - b * ab) / determinant;
    line.slope = (b * aa - a * ab) / determinant;
  }
  if (line.offset < 0 || (determinant <= 0 && bb > 0)) {
    line = {.offset = 0, .slope = b / bb};
  } else if (line.slope < 0) {
    line = {.offset = a / aa, .slope = 0};
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    line.error +=
        std::abs((line.offset + line.slope * x[i]) / seconds[i] - 1) / static_cast<double>(x.size());
  }
  return line;
}

std::vector<MeasuredLink> measure_link(comm::Communicator& communicator, const LinkTimerOptions& options) {
  base::check(communicator.size() >= 2, "a link is between two ranks at least: {}", communicator.size());
  LinkTimer timer(communicator, options);
  std::vector<MeasuredLink> links;
  for (std::size_t i = 0; i < kNumLinkOperations; ++i) {
    links.push_back(timer.measure(static_cast<LinkOperation>(i)));
  }
  return links;
}

std::vector<MeasuredLink> measure_local_link(std::size_t num_ranks, const LinkTimerOptions& options) {
  comm::local::LocalWorld world(num_ranks);
  std::vector<std::vector<MeasuredLink>> links(num_ranks);
  std::vector<std::unique_ptr<comm::Communicator>> communicators;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    communicators.push_back(world.communicator(base::Rank{static_cast<std::uint32_t>(rank)}));
  }
  run_on_ranks(num_ranks, [&](std::size_t rank) {
    try {
      links[rank] = measure_link(*communicators[rank], options);
    } catch (const std::exception& error) {
      communicators[rank]->abort_all(base::Rank{static_cast<std::uint32_t>(rank)}, error.what());
      throw;
    }
  });
  return links.front();
}

}  // namespace plenum::calibrate
