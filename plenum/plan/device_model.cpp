#include "plenum/plan/device_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::plan {
namespace {

/// What limits an operation, and for how long.
struct Limit {
  double OpSeconds::*what = &OpSeconds::launch;
  double seconds = 0;
};

Limit limit_of(const DeviceModel& device, const Op& op) {
  Limit limit{.seconds = device.launch_seconds};
  const auto raise = [&](double OpSeconds::*what, double amount, double rate) {
    if (amount <= 0) return;
    base::check(rate > 0, "a device model needs rates above 0: {}", rate);
    if (amount / rate > limit.seconds) limit = {what, amount / rate};
  };
  raise(&OpSeconds::compute, op.flops, device.peak_flops);
  raise(&OpSeconds::memory, op.bytes, device.peak_bytes_per_second);
  return limit;
}

}  // namespace

OpSeconds& OpSeconds::operator+=(const OpSeconds& other) {
  compute += other.compute;
  memory += other.memory;
  launch += other.launch;
  return *this;
}

DeviceModel::LogSizes DeviceModel::log_sizes(double rows, double in, double out) {
  const auto log_of = [](double size) { return std::log2(std::max(size, 1.0)); };
  return {log_of(rows), log_of(in), log_of(out)};
}

void DeviceModel::set_points(OpKind kind, std::vector<EfficiencyPoint> points) {
  Kind& known = kinds_[static_cast<std::size_t>(kind)];
  known.places.clear();
  for (const EfficiencyPoint& point : points) {
    base::check(point.efficiency > 0, "an efficiency must be above 0: {}", point.efficiency);
    known.places.push_back(log_sizes(point.rows, point.in, point.out));
  }
  known.points = std::move(points);
}

void DeviceModel::set_default_efficiency(OpKind kind, double efficiency) {
  base::check(efficiency > 0, "an efficiency must be above 0: {}", efficiency);
  kinds_[static_cast<std::size_t>(kind)].by_default = efficiency;
  kinds_[static_cast<std::size_t>(kind)].is_given = true;
}

double DeviceModel::limit_seconds(const Op& op) const {
  return limit_of(*this, op).seconds;
}

const DeviceModel::Kind& DeviceModel::known_for(OpKind kind) const {
  return kind == OpKind::Orthonormalise && !is_known(kind) ? of(OpKind::Inverse) : of(kind);
}

double DeviceModel::efficiency(const Op& op) const {
  const Kind& known = known_for(op.kind);
  if (known.points.empty()) return known.by_default;
  const LogSizes own = log_sizes(op.rows, op.in, op.out);
  double weights = 0;
  double sum = 0;
  for (std::size_t i = 0; i < known.points.size(); ++i) {
    double squared_distance = 0;
    for (std::size_t size = 0; size < own.size(); ++size) {
      const double distance = own[size] - known.places[i][size];
      squared_distance += distance * distance;
    }
    constexpr double kSameSize = 1e-12;
    if (squared_distance < kSameSize) return known.points[i].efficiency;
    const double weight = 1 / (squared_distance * squared_distance);
    weights += weight;
    sum += weight * known.points[i].efficiency;
  }
  return sum / weights;
}

OpSeconds DeviceModel::seconds(const Op& op) const {
  const Limit limit = limit_of(*this, op);
  OpSeconds seconds;
  seconds.*limit.what = op.count * limit.seconds / efficiency(op);
  return seconds;
}

}  // namespace plenum::plan
