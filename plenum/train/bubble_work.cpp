#include "plenum/train/bubble_work.h"

#include <vector>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/shampoo_filler.h"

namespace plenum::train {
namespace {

using schedule::MapBytes;

std::vector<describe::FactorShape> shapes_of(const RunPlan& plan) {
  return describe::factor_shapes(describe::describe_bert(plan.program().model).layers.front());
}

/// What a map's input, output gradient and factors take, in slots for micro-batches of any size.
std::vector<MapBytes> kfac_map_bytes(const RunPlan& plan) {
  const bool is_gpu = plan.program().device == tensor::Device::Cuda;
  const double element_bytes = is_gpu ? 2 : 4;
  const auto rows = static_cast<double>(plan.program().capacity.rows);
  std::vector<MapBytes> maps;
  for (const describe::FactorShape& shape : shapes_of(plan)) {
    const auto in = static_cast<double>(shape.in_width);
    const auto out = static_cast<double>(shape.out_width);
    maps.push_back({.input_bytes = rows * in * element_bytes,
                    .output_gradient_bytes = rows * out * element_bytes,
                    .factor_bytes = (in * in + out * out) * sizeof(float)});
  }
  return maps;
}

/// The copies of a map's factors: of the sides that are rotated.
std::vector<MapBytes> soap_map_bytes(const RunPlan& plan) {
  const std::int64_t limit = plan.program().optimizer.soap.limit;
  const auto elements = [limit](std::int64_t size) {
    return size > limit ? 0 : static_cast<double>(size) * static_cast<double>(size);
  };
  std::vector<MapBytes> maps;
  for (const describe::FactorShape& shape : shapes_of(plan))
    maps.push_back({.factor_bytes = (elements(shape.in_width) + elements(shape.out_width)) * sizeof(float)});
  return maps;
}

}  // namespace

BubbleWork bubble_work(const RunPlan& plan) {
  const optim::OptimizerOptions& optimizer = plan.program().optimizer;
  if (optimizer.kind == optim::OptimizerKind::Kfac) {
    return {.filler = std::make_unique<schedule::KfacFiller>(kfac_map_bytes(plan)),
            .optimizer = "K-FAC",
            .made = "inverses",
            .outside = "K-FAC works outside bubbles, in every step (--kfac-every makes it more seldom)"};
  }
  base::check(optimizer.kind == optim::OptimizerKind::Soap, "no other optimizer has work for bubbles");
  // One of them has the product of a basis with its factor, which is a third of the work or less.
  constexpr std::size_t kMostPieces = 4;
  const std::int64_t every = optimizer.soap.refresh_steps();
  return {.filler = std::make_unique<schedule::ShampooFiller>(soap_map_bytes(plan), kMostPieces),
          .optimizer = "SOAP",
          .made = "bases",
          .outside =
              fmt::format("SOAP refreshes its bases outside bubbles, every {} steps (--soap-every)", every)};
}

}  // namespace plenum::train
