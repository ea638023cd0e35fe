#pragma once

#include <string>

#include "plenum/calibrate/machine.h"
#include "plenum/io/toml_file.h"
#include "plenum/plan/device_model.h"

namespace plenum::calibrate {

// What files of machines and of clusters have in common.

/// Takes the three limits and the table `efficiency` from a table that has them among its keys.
plan::DeviceModel read_device_model(const io::TomlTable& table, Spreads& spreads);
/// The keys, and the table under `name`.
std::string print_device_limits(const plan::DeviceModel& model);
std::string print_efficiency(const plan::DeviceModel& model, const Spreads& spreads, const std::string& name);

plan::Link read_link(const io::TomlTable& table);
std::string print_link(const plan::Link& link);

tensor::Device read_device(const io::TomlTable& table, const std::string& key);
std::string device_name(tensor::Device device);

// What is absurd: a hundred times less than the slowest and more than the fastest that could be meant.
inline constexpr double kLeastFlops = 1e7, kMostFlops = 1e18;
inline constexpr double kLeastRate = 1e6, kMostRate = 1e15;  ///< bytes per second, of memory and links
inline constexpr double kMostLaunch = 0.1, kMostLatency = 1;
inline constexpr double kLeastEfficiency = 1e-6, kMostEfficiency = 20;
inline constexpr double kMostSize = 1e15;
inline constexpr double kMostSpread = 1000;
inline constexpr double kLeastMemory = 1e6, kMostBytes = 1e16;
inline constexpr double kMostOverheadSeconds = 10;
inline constexpr std::size_t kMostRanks = 1'000'000, kMostThreads = 4096;

}  // namespace plenum::calibrate
