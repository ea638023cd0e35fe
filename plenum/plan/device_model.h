#pragma once

#include <array>
#include <span>
#include <vector>

#include "plenum/plan/op.h"

namespace plenum::plan {

/// Time by what it is spent on, in seconds.
struct OpSeconds {
  double compute = 0;  ///< arithmetic is the limit
  double memory = 0;   ///< moving bytes is
  double launch = 0;   ///< starting it is

  double total() const { return compute + memory + launch; }
  OpSeconds& operator+=(const OpSeconds& other);
};

/// How close an operation of a size came to the device's limit.
struct EfficiencyPoint {
  double rows = 1;
  double in = 1;
  double out = 1;
  double efficiency = 1;  ///< the limit's time over the measured one; above 1 where caches help
};

/// What computes on a rank: some cores of a CPU, a GPU or a part of one.
///
/// The limit of an operation is the largest of three times: its launch, its arithmetic at the peak rate, its
/// bytes at the peak bandwidth. It takes the limit's time / efficiency, where the efficiency lies between
/// those measured for its kind at the nearest sizes, in proportion to their distances in powers of two (to
/// the fourth power, so that a measured size has its own), or is the kind's default where none was measured.
class DeviceModel {
 public:
  double peak_flops = 0;             ///< of a large product, sustained
  double peak_bytes_per_second = 0;  ///< of a large copy, read and written bytes added
  double launch_seconds = 0;

  /// Overwrites what is known of a kind; no points: the default.
  void set_points(OpKind kind, std::vector<EfficiencyPoint> points);
  void set_default_efficiency(OpKind kind, double efficiency);
  std::span<const EfficiencyPoint> points(OpKind kind) const { return of(kind).points; }
  double default_efficiency(OpKind kind) const { return of(kind).by_default; }
  /// Whether anything was said of a kind. If not, an orthonormalisation counts as an inversion, which works
  /// in panels, too, and everything else has the default of this class.
  bool is_known(OpKind kind) const { return of(kind).is_given || !of(kind).points.empty(); }

  /// The largest of the three times, for one of them.
  double limit_seconds(const Op& op) const;
  double efficiency(const Op& op) const;
  /// Of all `op.count` of them.
  OpSeconds seconds(const Op& op) const;

 private:
  using LogSizes = std::array<double, 3>;  ///< rows, in and out in powers of two
  static LogSizes log_sizes(double rows, double in, double out);

  struct Kind {
    std::vector<EfficiencyPoint> points;
    std::vector<LogSizes> places;  ///< of the points
    double by_default = 0.7;
    bool is_given = false;  ///< the default
  };
  const Kind& of(OpKind kind) const { return kinds_[static_cast<std::size_t>(kind)]; }
  const Kind& known_for(OpKind kind) const;

  std::array<Kind, kNumOpKinds> kinds_;
};

}  // namespace plenum::plan
