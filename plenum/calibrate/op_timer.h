#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/calibrate/argument_room.h"
#include "plenum/calibrate/bound_op.h"
#include "plenum/plan/op.h"
#include "plenum/tensor/stream_owner.h"

namespace plenum::calibrate {

/// How long something took, over several runs.
struct Timing {
  double seconds = 0;  ///< the median
  double spread = 0;   ///< between the first and the third quartile, as a fraction of the median
  std::size_t num_runs = 0;
};
/// Of at least one time; throws InternalError without.
Timing timing_of(std::vector<double> seconds);

struct OpTimerOptions {
  OpSetting setting;
  /// An operation is run on several sets of arguments in turn, which together take about so much memory:
  /// more than a core's own caches hold (1 to 2 MB) and about as much as its share of what cores have
  /// together, because in a step what an operation reads was written some operations before, and weights were
  /// read last in the step before. On a GPU several times its second-level cache (50 MB on an H100).
  std::size_t rotated_bytes_cpu = std::size_t{32} << 20;
  std::size_t rotated_bytes_gpu = std::size_t{256} << 20;
  /// What the arguments of one operation, copies and scratch may take together, where that is less.
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
  /// On a GPU, so long does a large product run before each burst that counts: clocks are then those at its
  /// limit of power, as in training, and not those of a GPU that has rested.
  double load_seconds = 4e-3;
  /// And so long before anything is measured at all.
  double warm_up_seconds = 2;
};

/// What an OpTimer of one operation takes, with one set of arguments.
std::size_t op_timer_bytes(const plan::Op& op, tensor::Device device, std::size_t num_threads,
                           const OpSetting& setting);

/// Measures how long operations take by Plenum's kernels on a device, with random arguments in memory that is
/// laid out beforehand, of the types that training has there (tensor::precision_of).
class OpTimer {
 public:
  /// Takes the memory for the largest of these operations; each of them can be measured. One that needs more
  /// than the options allow takes what it needs, once. Throws UserError where the device does not give it, or
  /// lacks a kernel for one.
  OpTimer(tensor::Device device, std::size_t num_threads, std::span<const plan::Op> ops,
          const OpTimerOptions& options = {});
  ~OpTimer();

  /// Makes ready to run it, and runs it once; what was prepared before is forgotten.
  void prepare(const plan::Op& op);
  /// Runs what was prepared for about so long, at least three times. Time to start it counts on the CPU; on a
  /// GPU it is hidden behind what runs, unless the operation is shorter.
  Timing time(double seconds);
  /// Both.
  Timing measure(const plan::Op& op, double seconds);

  /// Of what takes as long as it takes to start it: the smallest operation, and on the CPU a task for each
  /// thread. Forgets what was prepared.
  Timing launch(double seconds);
  /// Of a large copy: bytes per second, read and written ones added, over so long.
  double copy_rate(double seconds, Timing* timing = nullptr);

  tensor::Device device() const { return device_; }

 private:
  class Load;

  std::size_t num_sets(const plan::Op& op) const;
  /// Each way.
  std::size_t copied_bytes() const;
  Timing time_runs(double seconds, base::FunctionRef<void(std::size_t)> run);
  Timing time_bursts(double seconds, base::FunctionRef<void(std::size_t)> run);
  void load(double seconds);

  tensor::Device device_;
  OpTimerOptions options_;
  std::size_t argument_bytes_ = 0;  ///< of all sets together, at most
  tensor::StreamOwner owner_;
  std::unique_ptr<tensor::Arena> scratch_;
  std::unique_ptr<tensor::Stream> stream_;
  std::unique_ptr<ArgumentRoom> room_;
  std::unique_ptr<Load> load_;  ///< of a GPU
  std::vector<BoundOp> sets_;
};

}  // namespace plenum::calibrate
