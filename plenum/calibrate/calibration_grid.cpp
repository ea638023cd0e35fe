#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "plenum/calibrate/calibration.h"
#include "plenum/plan/make_op.h"
#include "plenum/tensor/dtype.h"
#include "plenum/tensor/precision.h"

namespace plenum::calibrate {
namespace {

using plan::OpKind;

/// A size and how soon it is measured: 0 first.
struct Ranked {
  double size = 0;
  int rank = 0;
};

struct RankedOp {
  plan::Op op;
  int rank = 0;
};

/// Collects ops of sizes.
class Grid {
 public:
  explicit Grid(tensor::Device device)
      : is_gpu_(device == tensor::Device::Cuda),
        element_bytes_(
            static_cast<double>(tensor::size_of(tensor::precision_of(device).of(tensor::Role::Activation)))) {
  }

  std::vector<plan::Op> ops();

 private:
  void add(int rank, OpKind kind, double rows, double in, double out = 1) {
    ops_.push_back({plan::make_op(kind, rows, in, out, element_bytes_), rank});
  }
  void add_layer(int rank, double T, double D);
  void add_heads(int rank, double T, double D);
  void add_curvature(int rank, double T, double D);
  void add_updates();

  bool is_gpu_;
  double element_bytes_;
  std::vector<RankedOp> ops_;
};

void Grid::add_layer(int rank, double T, double D) {
  for (const double out : {3 * D, D, 4 * D}) {
    add(rank, OpKind::ProductInputGradient, T, D, out);
    add(rank, OpKind::ProductWeightGradient, T, D, out);
  }
  add(rank, OpKind::ProductForward, T, D, 3 * D);
  add(rank, OpKind::ProductForward, T, D, D);
  add(rank, OpKind::ProductForward, T, 4 * D, D);
  add(rank, OpKind::ProductWeightGradient, T, 4 * D, D);
  add(rank, OpKind::MlpForward, T, D, 4 * D);
  add(rank, OpKind::MlpInputGradient, T, D, 4 * D);
  for (const Ranked& length : {Ranked{128, 0}, {512, 1}, {32, 2}}) {
    add(rank + length.rank, OpKind::AttentionForward, T, length.size, D);
    add(rank + length.rank, OpKind::AttentionBackward, T, length.size, D);
  }
  add(rank, OpKind::NormForward, T, D);
  add(rank, OpKind::NormBackward, T, D);
  add(rank, OpKind::ColumnSums, T, 2 * D);
  add(rank + 1, OpKind::Activation, T, 4 * D);
}

void Grid::add_heads(int rank, double T, double D) {
  constexpr double kMasked = 0.15;
  constexpr double kWords = 30522;
  const double M = std::round(kMasked * T);
  add(rank, OpKind::EmbeddingForward, T, D);
  add(rank, OpKind::EmbeddingBackward, T, D);
  add(rank, OpKind::VocabularyLossForward, M, D, kWords);
  add(rank, OpKind::VocabularyLossBackward, M, D, kWords);
  add(rank + 1, OpKind::Gather, M, D);
  add(rank + 1, OpKind::Fill, T, D);
}

void Grid::add_curvature(int rank, double T, double D) {
  add(rank + 2, OpKind::SecondMoment, T, D);
  add(rank + 2, OpKind::SecondMoment, T, 4 * D);
}

void Grid::add_updates() {
  constexpr double kLargestBasis = 1024;  // SOAP's limit
  for (const Ranked& count : {Ranked{4e6, 0}, {5e5, 1}, {3e7, 2}}) {
    add(count.rank, OpKind::AdamW, count.size, 1);
    add(count.rank, OpKind::Lamb, count.size, 1);
    add(count.rank, OpKind::SquareGradient, count.size, 1);
  }
  for (const Ranked& width : {Ranked{256, 1}, {768, 2}, {1024, 3}}) {
    for (const double size : {width.size, 4 * width.size}) {
      add(width.rank, OpKind::Inverse, is_gpu_ ? 16 : 1, size);
      if (size <= kLargestBasis) add(width.rank, OpKind::Orthonormalise, is_gpu_ ? 16 : 1, size);
    }
    add(width.rank, OpKind::Precondition, 1, width.size, width.size);
    add(width.rank, OpKind::Precondition, 1, width.size, 4 * width.size);
  }
}

std::vector<plan::Op> Grid::ops() {
  const std::vector<Ranked> cpu_rows = {{1024, 0}, {4096, 1}, {256, 1}, {64, 2}, {16384, 3}};
  const std::vector<Ranked> gpu_rows = {{32768, 0}, {8192, 1}, {131072, 1}, {1024, 2}};
  const std::vector<Ranked> cpu_widths = {{256, 0}, {768, 0}, {128, 1}, {512, 1}, {1024, 1}};
  const std::vector<Ranked> gpu_widths = {{1024, 0}, {768, 0}, {256, 1}, {512, 1}, {128, 2}};
  for (const Ranked& rows : is_gpu_ ? gpu_rows : cpu_rows) {
    for (const Ranked& width : is_gpu_ ? gpu_widths : cpu_widths) {
      add_layer(rows.rank + width.rank, rows.size, width.size);
      add_heads(rows.rank + width.rank, rows.size, width.size);
      add_curvature(rows.rank + width.rank, rows.size, width.size);
    }
  }
  add_updates();
  std::ranges::stable_sort(ops_, {}, &RankedOp::rank);
  std::vector<plan::Op> sorted;
  std::set<std::tuple<OpKind, double, double, double>> sizes;  // some are the inner width of others
  for (const auto& [op, rank] : ops_) {
    if (sizes.insert({op.kind, op.rows, op.in, op.out}).second) sorted.push_back(op);
  }
  return sorted;
}

}  // namespace

std::vector<plan::Op> calibration_grid(tensor::Device device) {
  return Grid(device).ops();
}

}  // namespace plenum::calibrate
