#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "plenum/plan/device_model.h"
#include "plenum/plan/link.h"
#include "plenum/tensor/device.h"

namespace plenum::plan {

/// Where numbers come from.
enum class Provenance : std::uint8_t { Measured, Datasheet };

/// Nodes alike, with devices alike. A rank has one device; ranks fill nodes one after another.
struct Cluster {
  std::string name;
  Provenance provenance = Provenance::Datasheet;
  std::size_t num_nodes = 1;
  std::size_t devices_per_node = 1;
  tensor::Device kind = tensor::Device::Cpu;
  std::size_t threads = 1;  ///< of a rank on the CPU
  DeviceModel device;
  Link within_node;
  Link between_nodes;
  double memory_bytes = 0;    ///< of a device; on the CPU of a node, which its ranks share
  double overhead_bytes = 0;  ///< that a process takes beside what is planned: program, libraries, context
  double step_overhead_seconds = 0;             ///< of a step, whatever it computes
  std::optional<double> price_per_device_hour;  ///< in any currency

  std::size_t num_devices() const { return num_nodes * devices_per_node; }
  bool are_on_one_node(std::size_t first_rank, std::size_t last_rank) const {
    return first_rank / devices_per_node == last_rank / devices_per_node;
  }
};

}  // namespace plenum::plan
