#include "plenum/calibrate/op_timer.h"

#include <algorithm>
#include <cmath>

#include "plenum/base/check.h"
#include "plenum/calibrate/stopwatch.h"
#include "plenum/plan/make_op.h"
#include "plenum/tensor/precision.h"

namespace plenum::calibrate {
namespace {

constexpr std::size_t kMostSets = 64;
constexpr std::size_t kLeastRuns = 3;
constexpr double kBurstSeconds = 2e-3;  ///< of a GPU: beside it an event's own time does not count
constexpr std::int64_t kCopiedBytesCpu = std::int64_t{64} << 20;  ///< each way
constexpr std::int64_t kCopiedBytesGpu = std::int64_t{512} << 20;

std::size_t argument_bytes(const plan::Op& op, tensor::Device device, const OpSetting& setting) {
  ArgumentRoom room(device);
  bind_op(op, setting, room);
  return room.num_bytes();
}

/// What a GPU multiplies so that it draws all the power it may.
plan::Op large_product() {
  return plan::make_op(plan::OpKind::ProductForward, 8192, 4096, 4096, 2);
}

plan::Op smallest_op(tensor::Device device) {
  return plan::make_op(plan::OpKind::Activation, 1, 64, 1, device == tensor::Device::Cpu ? 4 : 2);
}

/// Of all threads.
std::size_t scratch_bytes_of(const plan::Op& op, tensor::Device device, std::size_t num_threads) {
  const std::size_t bytes = op_scratch_bytes(op, device);
  if (device == tensor::Device::Cuda) return bytes;
  constexpr std::size_t kLine = 64;  // of the cache
  return (bytes + kLine - 1) / kLine * kLine * num_threads;
}

}  // namespace

Timing timing_of(std::vector<double> seconds) {
  base::check(!seconds.empty(), "nothing was timed");
  std::ranges::sort(seconds);
  const auto quantile = [&](double at) {
    const double index = at * static_cast<double>(seconds.size() - 1);
    const auto below = static_cast<std::size_t>(index);
    const std::size_t above = std::min(below + 1, seconds.size() - 1);
    return seconds[below] + (index - static_cast<double>(below)) * (seconds[above] - seconds[below]);
  };
  const double median = quantile(0.5);
  return {.seconds = median,
          .spread = median > 0 ? (quantile(0.75) - quantile(0.25)) / median : 0,
          .num_runs = seconds.size()};
}

std::size_t op_timer_bytes(const plan::Op& op, tensor::Device device, std::size_t num_threads,
                           const OpSetting& setting) {
  return argument_bytes(op, device, setting) + scratch_bytes_of(op, device, num_threads);
}

/// Keeps a GPU at the clocks that it has when it is busy.
class OpTimer::Load {
 public:
  explicit Load(const tensor::Stream& stream)
      : stream_(stream),
        room_(stream, argument_bytes(large_product(), stream.device(), {})),
        op_(bind_op(large_product(), {}, room_)) {
    op_.run(stream_);  // chooses its algorithm
    stream_.wait();
    const Stopwatch watch;
    op_.run(stream_);
    stream_.wait();
    seconds_ = watch.seconds();
  }

  /// Puts it into the queue.
  void start(double seconds) {
    for (double time = 0; time < seconds; time += seconds_) op_.run(stream_);
  }

 private:
  const tensor::Stream& stream_;
  ArgumentRoom room_;
  BoundOp op_;
  double seconds_ = 0;
};

OpTimer::OpTimer(tensor::Device device, std::size_t num_threads, std::span<const plan::Op> ops,
                 const OpTimerOptions& options)
    : device_(device), options_(options), owner_(device, num_threads) {
  const plan::Op least = device == tensor::Device::Cuda ? large_product() : smallest_op(device);
  std::size_t scratch_bytes = scratch_bytes_of(least, device, num_threads);
  for (const plan::Op& op : ops)
    scratch_bytes = std::max(scratch_bytes, scratch_bytes_of(op, device, num_threads));
  argument_bytes_ = options.most_bytes - std::min(options.most_bytes, scratch_bytes);
  std::size_t room_bytes = 2 * copied_bytes();
  for (const plan::Op& op : ops)
    room_bytes = std::max(room_bytes, argument_bytes(op, device, options_.setting) * num_sets(op));
  const plan::Op smallest = smallest_op(device);
  room_bytes = std::max(room_bytes, argument_bytes(smallest, device, options_.setting) * num_sets(smallest));
  scratch_ = std::make_unique<tensor::Arena>(scratch_bytes, device);
  tensor::MemoryLayout layout;
  const tensor::Block block =
      layout.add("scratch", tensor::DType::Byte, {static_cast<std::int64_t>(scratch_bytes)});
  stream_ =
      std::make_unique<tensor::Stream>(owner_.stream(scratch_->view(block), tensor::precision_of(device)));
  room_ = std::make_unique<ArgumentRoom>(*stream_, room_bytes);
  if (device != tensor::Device::Cuda) return;
  load_ = std::make_unique<Load>(*stream_);
  load(options_.warm_up_seconds);
}

OpTimer::~OpTimer() = default;

void OpTimer::load(double seconds) {
  if (load_ != nullptr) load_->start(seconds);
}

/// As many as together take the memory that is asked for.
std::size_t OpTimer::num_sets(const plan::Op& op) const {
  const std::size_t wanted =
      device_ == tensor::Device::Cpu ? options_.rotated_bytes_cpu : options_.rotated_bytes_gpu;
  const std::size_t bytes = std::max<std::size_t>(1, argument_bytes(op, device_, options_.setting));
  const std::size_t fitting = std::clamp<std::size_t>(argument_bytes_ / bytes, 1, kMostSets);
  return std::clamp<std::size_t>((wanted + bytes - 1) / bytes, 1, fitting);
}

std::size_t OpTimer::copied_bytes() const {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  const std::int64_t wanted = device_ == tensor::Device::Cpu ? kCopiedBytesCpu : kCopiedBytesGpu;
  const std::size_t half =
      argument_bytes_ / 2 / tensor::MemoryLayout::kAlignment * tensor::MemoryLayout::kAlignment;
  return std::clamp(half, kLeast, static_cast<std::size_t>(wanted));
}

void OpTimer::prepare(const plan::Op& op) {
  sets_.clear();
  room_->clear();
  const std::size_t count = num_sets(op);
  for (std::size_t set = 0; set < count; ++set) {
    sets_.push_back(bind_op(op, options_.setting, *room_));
    if (sets_.back().prepare) sets_.back().prepare(*stream_);
  }
  sets_.back().run(*stream_);
  stream_->wait();
}

/// Of the CPU: each run by itself.
Timing OpTimer::time_runs(double seconds, base::FunctionRef<void(std::size_t)> run) {
  std::vector<double> times;
  const Stopwatch total;
  do {
    const Stopwatch watch;
    run(times.size());
    times.push_back(watch.seconds());
  } while (times.size() < kLeastRuns || total.seconds() < seconds);
  return timing_of(std::move(times));
}

/// Of a GPU: bursts between events, each behind a load that keeps the clocks where they are in training, and
/// that runs while the host puts the burst into the queue.
Timing OpTimer::time_bursts(double seconds, base::FunctionRef<void(std::size_t)> run) {
  const tensor::CudaStream& queue = stream_->cuda();
  const auto begin_event = queue.make_event(tensor::WorkQueue::Timed::Yes);
  const auto end_event = queue.make_event(tensor::WorkQueue::Timed::Yes);
  std::size_t num_run = 0;
  const auto burst_of = [&](std::size_t count) {
    load(options_.load_seconds);
    queue.record(*begin_event);
    for (std::size_t i = 0; i < count; ++i) run(num_run++);
    queue.record(*end_event);
    stream_->wait();
    return end_event->seconds_since(*begin_event) / static_cast<double>(count);
  };
  const double once = std::max(burst_of(1), 1e-7);
  const auto count = static_cast<std::size_t>(std::clamp(std::ceil(kBurstSeconds / once), 1.0, 1000.0));
  std::vector<double> times;
  const Stopwatch total;
  do {
    times.push_back(burst_of(count));
  } while (times.size() < kLeastRuns || total.seconds() < seconds);
  return timing_of(std::move(times));
}

Timing OpTimer::time(double seconds) {
  base::check(!sets_.empty(), "an operation must be prepared before it is timed");
  const auto run = [this](std::size_t index) { sets_[index % sets_.size()].run(*stream_); };
  return device_ == tensor::Device::Cpu ? time_runs(seconds, run) : time_bursts(seconds, run);
}

Timing OpTimer::measure(const plan::Op& op, double seconds) {
  prepare(op);
  return time(seconds);
}

Timing OpTimer::launch(double seconds) {
  prepare(smallest_op(device_));
  if (device_ == tensor::Device::Cuda) return time(seconds);
  base::ThreadPool& pool = stream_->pool();
  return time_runs(seconds, [&](std::size_t index) {
    sets_[index % sets_.size()].run(*stream_);
    pool.run(pool.num_threads(), [](std::size_t, std::size_t) {});
  });
}

double OpTimer::copy_rate(double seconds, Timing* timing) {
  sets_.clear();
  room_->clear();
  const auto size = static_cast<std::int64_t>(copied_bytes());
  const auto floats = size / static_cast<std::int64_t>(sizeof(float));
  const tensor::TensorView from = room_->random(tensor::DType::Float32, {floats});
  const tensor::TensorView to = room_->random(tensor::DType::Float32, {floats});
  const auto run = [&](std::size_t) { tensor::copy(*stream_, from, to); };
  const Timing measured =
      device_ == tensor::Device::Cpu ? time_runs(seconds, run) : time_bursts(seconds, run);
  if (timing != nullptr) *timing = measured;
  return 2.0 * static_cast<double>(size) / measured.seconds;
}

}  // namespace plenum::calibrate
