#include "plenum/plan/matrix_schedule.h"

#include <algorithm>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/muon_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/tensor/dtype.h"
#include "plenum/tensor/precision.h"

namespace plenum::plan {
namespace {

using describe::FactorShape;
using schedule::MapBytes;
using schedule::Preconditioner;

bool has_several_holders(const schedule::Schedule& schedule) {
  std::vector<std::size_t> num_holders(schedule.num_stages());
  for (const schedule::RankProgram& rank : schedule.ranks) {
    for (const schedule::StageId stage : rank.stages) ++num_holders[stage.index()];
  }
  return std::ranges::any_of(num_holders, [](std::size_t count) { return count > 1; });
}

std::vector<FactorShape> shapes_of(const describe::ModelDescription& model) {
  return describe::factor_shapes(model.layers.front());
}

/// What a map's input, output gradient and factors take, in slots for micro-batches of so many rows.
std::vector<MapBytes> kfac_map_bytes(const describe::ModelDescription& model, tensor::Device device,
                                     std::int64_t num_rows) {
  const auto element_bytes =
      static_cast<double>(tensor::size_of(tensor::precision_of(device).of(tensor::Role::Activation)));
  const auto rows = static_cast<double>(num_rows);
  std::vector<MapBytes> maps;
  for (const FactorShape& shape : shapes_of(model)) {
    const auto in = static_cast<double>(shape.in_width);
    const auto out = static_cast<double>(shape.out_width);
    maps.push_back({.input_bytes = rows * in * element_bytes,
                    .output_gradient_bytes = rows * out * element_bytes,
                    .factor_bytes = (in * in + out * out) * sizeof(float)});
  }
  return maps;
}

/// The copies of a map's factors: of the sides that are rotated.
std::vector<MapBytes> soap_map_bytes(const describe::ModelDescription& model, std::int64_t limit) {
  const auto elements = [limit](std::int64_t size) {
    return size > limit ? 0 : static_cast<double>(size) * static_cast<double>(size);
  };
  std::vector<MapBytes> maps;
  for (const FactorShape& shape : shapes_of(model))
    maps.push_back({.factor_bytes = (elements(shape.in_width) + elements(shape.out_width)) * sizeof(float)});
  return maps;
}

}  // namespace

schedule::Schedule with_matrix_work(const schedule::Schedule& plain, const MatrixWork& work,
                                    tensor::Device device, const describe::ModelDescription& model) {
  if (work.kind == Preconditioner::None) return plain;
  const std::size_t num_maps = shapes_of(model).size();
  if (work.kind == Preconditioner::Kfac)
    return schedule::with_periodic_refresh(plain, schedule::KfacFiller(num_maps), work.every);
  if (device != tensor::Device::Cpu || !has_several_holders(plain)) return plain;
  if (work.kind == Preconditioner::Muon)
    return schedule::with_periodic_refresh(plain, schedule::MuonFiller(num_maps), 1);
  // Bases that are refreshed less often are left to the update.
  constexpr std::size_t kMostSteps = std::size_t{schedule::kMaxAge} + 1;
  if (work.every > kMostSteps) return plain;
  return schedule::with_periodic_refresh(plain, schedule::ShampooFiller(num_maps, 1), work.every);
}

std::unique_ptr<schedule::Filler> bubble_filler(const MatrixWork& work,
                                                const describe::ModelDescription& model,
                                                tensor::Device device, std::int64_t rows) {
  if (work.kind == Preconditioner::Kfac)
    return std::make_unique<schedule::KfacFiller>(kfac_map_bytes(model, device, rows));
  base::check(work.kind == Preconditioner::Shampoo, "no other optimizer has work for bubbles");
  // One of them has the product of a basis with its factor, which is a third of the work or less.
  constexpr std::size_t kMostPieces = 4;
  return std::make_unique<schedule::ShampooFiller>(soap_map_bytes(model, work.soap_limit), kMostPieces);
}

}  // namespace plenum::plan
