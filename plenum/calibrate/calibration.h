#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "plenum/calibrate/link_timer.h"
#include "plenum/calibrate/machine.h"
#include "plenum/calibrate/op_timer.h"
#include "plenum/plan/device_model.h"
#include "plenum/tensor/device.h"

namespace plenum::calibrate {

struct CalibrationOptions {
  tensor::Device device = tensor::Device::Cpu;
  std::size_t ranks = 1;
  std::size_t threads = 1;
  double seconds = 15;         ///< for the setting, about
  double seconds_of_op = 0.1;  ///< at most for one operation, where three runs take no longer
  OpTimerOptions timer;
  LinkTimerOptions links;
  /// The sizes to measure, the most valuable first; empty: calibration_grid().
  std::vector<plan::Op> ops;
  /// Called before each operation, with how many are done.
  std::function<void(std::size_t done, std::size_t count)> on_progress;
};

/// Sizes of layers from BERT-tiny to BERT-large, of all kinds, the most valuable first: those around which
/// others lie nearest. For a GPU with as many rows as fill it.
std::vector<plan::Op> calibration_grid(tensor::Device device);

/// Measures a setting: on the CPU all ranks at the same time, as threads of this process. Sizes that would
/// take more than their share of the time are left out, and counted. Throws UserError where a GPU is asked
/// for and cannot be used, or several ranks of one.
Setting calibrate(const CalibrationOptions& options);

/// Measures exactly the operations of a run, each size once, while so many ranks are busy: its model's points
/// are theirs. An operation that would take more than its share of the time, or more memory than the options
/// allow, is measured with fewer rows, for which its efficiency is taken to be the same.
plan::DeviceModel calibrate_ops(std::span<const plan::Op> ops, tensor::Device device, std::size_t threads,
                                std::size_t num_busy_ranks, double seconds,
                                const OpTimerOptions& options = {});

/// How many ranks with how many threads are measured where nothing else is asked for: one with all cores,
/// twice as many with half of them each, and so on, down to one thread each.
struct RanksAndThreads {
  std::size_t ranks = 1;
  std::size_t threads = 1;
  friend bool operator==(const RanksAndThreads&, const RanksAndThreads&) = default;
};
std::vector<RanksAndThreads> default_settings(std::size_t num_cores);

}  // namespace plenum::calibrate
