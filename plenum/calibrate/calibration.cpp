#include "plenum/calibrate/calibration.h"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <memory>
#include <tuple>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/calibrate/busy_ranks.h"
#include "plenum/calibrate/stopwatch.h"
#include "plenum/plan/make_op.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/tensor/precision.h"

namespace plenum::calibrate {
namespace {

using plan::OpKind;

double element_bytes(tensor::Device device) {
  return static_cast<double>(tensor::size_of(tensor::precision_of(device).of(tensor::Role::Activation)));
}

/// What the rate of products is measured by: large enough to fill all of a device, where there is the memory.
plan::Op peak_product(tensor::Device device, std::size_t num_threads, const OpTimerOptions& options) {
  if (device == tensor::Device::Cuda)
    return plan::make_op(OpKind::ProductForward, 16384, 4096, 4096, element_bytes(device));
  constexpr double kLeast = 128;
  const auto square = [&](double size) {
    return plan::make_op(OpKind::ProductForward, size, size, size, element_bytes(device));
  };
  double size = 1024;
  while (size > kLeast &&
         op_timer_bytes(square(size), device, num_threads, options.setting) > options.most_bytes)
    size /= 2;
  return square(size);
}

void require_one_rank_of_gpu(tensor::Device device, std::size_t num_ranks) {
  base::require(device == tensor::Device::Cpu || num_ranks == 1,
                "a GPU is measured with one rank; leave out the number of ranks, or use the CPU: {} ranks",
                num_ranks);
}

/// Timers of ranks that all do the same at the same time.
class BusyTimers {
 public:
  BusyTimers(tensor::Device device, std::size_t num_ranks, std::size_t num_threads,
             std::span<const plan::Op> ops, const OpTimerOptions& options)
      : timers_(num_ranks) {
    run_on_ranks(num_ranks, [&](std::size_t rank) {
      timers_[rank] = std::make_unique<OpTimer>(device, num_threads, ops, options);
    });
  }

  /// Seconds of a rank, on average.
  Timing measure(const plan::Op& op, double seconds) {
    run_on_ranks(timers_.size(), [&](std::size_t rank) { timers_[rank]->prepare(op); });
    return together([&](OpTimer& timer) { return timer.time(seconds); });
  }
  Timing measure_copy(double seconds, double& bytes_per_second) {
    std::vector<double> rates(timers_.size());
    std::vector<Timing> timings(timers_.size());
    run_on_ranks(timers_.size(),
                 [&](std::size_t rank) { rates[rank] = timers_[rank]->copy_rate(seconds, &timings[rank]); });
    bytes_per_second = 0;
    for (const double rate : rates) bytes_per_second += rate / static_cast<double>(rates.size());
    return mean_of(timings);
  }
  Timing measure_launch(double seconds) {
    return together([&](OpTimer& timer) { return timer.launch(seconds); });
  }

 private:
  template <typename Work>
  Timing together(const Work& work) {
    std::vector<Timing> timings(timers_.size());
    std::barrier start(static_cast<std::ptrdiff_t>(timers_.size()));
    run_on_ranks(timers_.size(), [&](std::size_t rank) {
      start.arrive_and_wait();
      timings[rank] = work(*timers_[rank]);
    });
    return mean_of(timings);
  }
  static Timing mean_of(const std::vector<Timing>& timings) {
    Timing mean;
    for (const Timing& timing : timings) {
      mean.seconds += timing.seconds / static_cast<double>(timings.size());
      mean.spread += timing.spread / static_cast<double>(timings.size());
      mean.num_runs += timing.num_runs;
    }
    return mean;
  }

  std::vector<std::unique_ptr<OpTimer>> timers_;
};

/// Measures what limits every operation. What was measured before stays where it was faster: somebody else
/// may have been busy.
void measure_limits(BusyTimers& timers, const plan::Op& product, double seconds, plan::DeviceModel& model,
                    Spreads& spreads) {
  const Timing gemm = timers.measure(product, seconds);
  if (product.flops / gemm.seconds > model.peak_flops) {
    model.peak_flops = product.flops / gemm.seconds;
    spreads.gemm = gemm.spread;
  }
  double bytes_per_second = 0;
  const Timing copy = timers.measure_copy(seconds, bytes_per_second);
  if (bytes_per_second > model.peak_bytes_per_second) {
    model.peak_bytes_per_second = bytes_per_second;
    spreads.copy = copy.spread;
  }
  const Timing launch = timers.measure_launch(seconds / 4);
  if (model.launch_seconds == 0 || launch.seconds < model.launch_seconds) {
    model.launch_seconds = launch.seconds;
    spreads.launch = launch.spread;
  }
}

/// Operations of all kinds, as they are measured.
class Points {
 public:
  /// `measured` is the same with fewer rows, perhaps.
  void add(const plan::Op& op, const plan::Op& measured, const Timing& timing) {
    ops_.push_back({op, measured, timing});
  }
  /// By the limits that the model has.
  void put_into(plan::DeviceModel& model, Spreads& spreads) const {
    std::array<std::vector<plan::EfficiencyPoint>, plan::kNumOpKinds> points;
    for (const auto& [op, measured, timing] : ops_) {
      const auto kind = static_cast<std::size_t>(op.kind);
      points[kind].push_back({.rows = op.rows,
                              .in = op.in,
                              .out = op.out,
                              .efficiency = model.limit_seconds(measured) / timing.seconds});
      spreads.points[kind].push_back(timing.spread);
    }
    for (std::size_t kind = 0; kind < plan::kNumOpKinds; ++kind) {
      model.set_points(static_cast<OpKind>(kind), std::move(points[kind]));
    }
  }

 private:
  struct Measured {
    plan::Op op, measured;
    Timing timing;
  };
  std::vector<Measured> ops_;
};

// An operation takes one run to warm up and three at least that count, on about 70 % of the limit, and its
// arguments are written before at a part of the rate of a copy.
constexpr double kRunsOfLimit = 6;
constexpr double kFillsOfBytes = 4;

double least_seconds(const plan::DeviceModel& model, const plan::Op& op, const OpTimerOptions& options,
                     tensor::Device device) {
  const double rotated = static_cast<double>(device == tensor::Device::Cpu ? options.rotated_bytes_cpu
                                                                           : options.rotated_bytes_gpu);
  return kRunsOfLimit * model.limit_seconds(op) +
         kFillsOfBytes * std::max(op.bytes, rotated) / model.peak_bytes_per_second;
}

/// What a rank has the memory for: a part of what is free, because arguments may take more than the bytes
/// that count (all of a table, of which some rows are read). Memory of the CPU is only taken where it is
/// used.
std::vector<plan::Op> that_fit(std::vector<plan::Op> ops, tensor::Device device, std::size_t num_ranks) {
  constexpr double kPart = 4;
  const auto free_bytes = static_cast<double>(device == tensor::Device::Cpu ? base::available_memory_bytes()
                                                                            : tensor::cuda_free_bytes());
  if (free_bytes == 0) return ops;  // not known
  const double most = free_bytes / (kPart * static_cast<double>(num_ranks));
  std::erase_if(ops, [&](const plan::Op& op) { return op.bytes > most; });
  return ops;
}

}  // namespace

Setting calibrate(const CalibrationOptions& options) {
  require_one_rank_of_gpu(options.device, options.ranks);
  const Stopwatch total;
  const std::vector<plan::Op> wanted = options.ops.empty() ? calibration_grid(options.device) : options.ops;
  const std::vector<plan::Op> ops = that_fit(wanted, options.device, options.ranks);
  Setting setting;
  setting.device = options.device;
  setting.ranks = options.ranks;
  setting.threads = options.threads;
  setting.num_left_out = wanted.size() - ops.size();
  if (options.ranks > 1) {
    LinkTimerOptions links = options.links;
    const double share = options.seconds / 8;
    links.seconds =
        std::min(links.seconds, share / static_cast<double>(kNumLinkOperations * links.sizes.size()));
    setting.links = measure_local_link(options.ranks, links);
  }
  const plan::Op product = peak_product(options.device, options.threads, options.timer);
  std::vector<plan::Op> prepared = ops;
  prepared.push_back(product);
  BusyTimers timers(options.device, options.ranks, options.threads, prepared, options.timer);
  const double seconds_of_limit = std::min(options.seconds / 30, 5 * options.seconds_of_op);
  measure_limits(timers, product, seconds_of_limit, setting.model, setting.spreads);
  constexpr double kLargestShare = 0.02;  // of the time, for one operation
  Points points;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (options.on_progress) options.on_progress(i, ops.size());
    const double left = options.seconds - 3 * seconds_of_limit - total.seconds();
    const double least = least_seconds(setting.model, ops[i], options.timer, options.device);
    if (least > left || least > kLargestShare * options.seconds) {
      ++setting.num_left_out;
      continue;
    }
    const double share = left / static_cast<double>(ops.size() - i);
    const Timing timing = timers.measure(ops[i], std::clamp(share - least / 2, 0.0, options.seconds_of_op));
    points.add(ops[i], ops[i], timing);
  }
  measure_limits(timers, product, seconds_of_limit, setting.model, setting.spreads);
  points.put_into(setting.model, setting.spreads);
  return setting;
}

plan::DeviceModel calibrate_ops(std::span<const plan::Op> ops, tensor::Device device, std::size_t threads,
                                std::size_t num_busy_ranks, double seconds, const OpTimerOptions& options) {
  require_one_rank_of_gpu(device, num_busy_ranks);
  const auto key = [](const plan::Op& op) { return std::tuple(op.kind, op.rows, op.in, op.out); };
  std::vector<plan::Op> sizes(ops.begin(), ops.end());
  std::ranges::sort(sizes, {}, key);
  const auto is_same = [&](const plan::Op& one, const plan::Op& other) { return key(one) == key(other); };
  sizes.erase(std::unique(sizes.begin(), sizes.end(), is_same), sizes.end());

  // What limits them is measured first, with a timer of its own: which sizes there is time for follows.
  plan::DeviceModel model;
  Spreads spreads;
  const std::vector<plan::Op> limits = {peak_product(device, threads, options)};
  OpTimerOptions cold = options;
  {
    BusyTimers timers(device, num_busy_ranks, threads, limits, options);
    measure_limits(timers, limits.front(), seconds / 20, model, spreads);
    cold.warm_up_seconds = 0;
  }
  const double share = seconds / static_cast<double>(std::max<std::size_t>(1, sizes.size()));
  std::vector<plan::Op> measured;
  for (const plan::Op& op : sizes) {
    // What is run and what it is held against are the same, whatever else the operation counts as its own.
    plan::Op shorter = plan::make_op(op.kind, op.rows, op.in, op.out, element_bytes(device));
    constexpr double kLeastRows = 64;
    const auto is_too_large = [&](const plan::Op& candidate) {
      return kRunsOfLimit * model.limit_seconds(candidate) > share ||
             op_timer_bytes(candidate, device, threads, options.setting) > options.most_bytes;
    };
    while (shorter.rows >= 2 * kLeastRows && is_too_large(shorter)) {
      shorter = plan::make_op(op.kind, std::ceil(shorter.rows / 2), op.in, op.out, element_bytes(device));
    }
    measured.push_back(shorter);
  }
  Points points;
  BusyTimers timers(device, num_busy_ranks, threads, measured, cold);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Timing timing = timers.measure(measured[i], share / 4);
    points.add(sizes[i], measured[i], timing);
  }
  points.put_into(model, spreads);
  return model;
}

std::vector<RanksAndThreads> default_settings(std::size_t num_cores) {
  std::vector<RanksAndThreads> settings;
  for (std::size_t ranks = 1; ranks < num_cores; ranks *= 2) settings.push_back({ranks, num_cores / ranks});
  settings.push_back({num_cores, 1});
  return settings;
}

}  // namespace plenum::calibrate
