#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/plan/device_model.h"
#include "plenum/plan/link.h"
#include "plenum/tensor/device.h"

namespace plenum::calibrate {

/// What ranks do over a link, each with a formula of plenum/plan/link.h.
enum class LinkOperation : std::uint8_t { Message, AllReduce, Gather, ReduceScatter };
inline constexpr std::size_t kNumLinkOperations = 4;

/// The link with which the operation's formula comes closest to what was measured.
struct MeasuredLink {
  LinkOperation operation = LinkOperation::AllReduce;
  plan::Link link;
  double fit_error = 0;  ///< mean distance of the formula from what was measured, as a fraction of that
};

/// A measured rate or time, and between which values it varied: the distance of its quartiles as a fraction.
struct Spreads {
  double gemm = 0;
  double copy = 0;
  double launch = 0;
  /// Of every point of the model, in their order.
  std::array<std::vector<double>, plan::kNumOpKinds> points;
};

/// What a machine does for so many ranks at a time.
struct Setting {
  tensor::Device device = tensor::Device::Cpu;
  std::size_t ranks = 1;    ///< that are busy at the same time: they share caches, bandwidth and power
  std::size_t threads = 1;  ///< of each, on the CPU
  plan::DeviceModel model;  ///< of each
  Spreads spreads;
  std::vector<MeasuredLink> links;  ///< between them; of one rank none
  std::size_t num_left_out = 0;     ///< sizes for which there was no time, or no memory
};

/// A machine as it was measured.
struct Machine {
  std::string name;
  std::string date;  ///< yyyy-mm-dd
  double memory_bytes = 0;
  double overhead_bytes = 0;  ///< of a process, beside what is planned
  double step_overhead_seconds = 0;
  std::vector<Setting> settings;
};

}  // namespace plenum::calibrate
