#include "plenum/schedule/generate/balanced_layers.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// Divisions of the first layers into the first stages.
class Divisions {
 public:
  /// Borrows the costs.
  Divisions(std::span<const double> costs, std::size_t num_stages)
      : num_layers_(costs.size()), num_stages_(num_stages), cost_up_to_(costs.size() + 1) {
    for (std::size_t i = 0; i < costs.size(); ++i) cost_up_to_[i + 1] = cost_up_to_[i] + costs[i];
  }

  double cost(std::size_t first, std::size_t end) const { return cost_up_to_[end] - cost_up_to_[first]; }

  /// The least value of a division, where `join` adds a stage of a cost to the value of those before it, and
  /// the ends of the stages before the last.
  std::pair<double, std::vector<std::size_t>> best(
      const std::function<double(double value, double stage_cost)>& join) const {
    // By stages, then by layers that they have.
    std::vector<std::vector<double>> value(num_stages_ + 1,
                                           std::vector<double>(num_layers_ + 1, kImpossible));
    std::vector<std::vector<std::size_t>> begin_of_last(num_stages_ + 1,
                                                        std::vector<std::size_t>(num_layers_ + 1));
    value[0][0] = 0;
    for (std::size_t stages = 1; stages <= num_stages_; ++stages) {
      for (std::size_t end = stages; end <= num_layers_; ++end) {
        for (std::size_t first = stages - 1; first < end; ++first) {
          if (value[stages - 1][first] == kImpossible) continue;
          const double joined = join(value[stages - 1][first], cost(first, end));
          if (joined >= value[stages][end]) continue;
          value[stages][end] = joined;
          begin_of_last[stages][end] = first;
        }
      }
    }
    std::vector<std::size_t> ends;
    std::size_t end = num_layers_;
    for (std::size_t stages = num_stages_; stages > 1; --stages) {
      end = begin_of_last[stages][end];
      ends.insert(ends.begin(), end);
    }
    return {value[num_stages_][num_layers_], ends};
  }

 private:
  std::size_t num_layers_;
  std::size_t num_stages_;
  std::vector<double> cost_up_to_;
};

}  // namespace

std::vector<std::uint16_t> balanced_layers(std::span<const double> costs, std::size_t num_stages) {
  base::require(num_stages >= 1 && num_stages <= costs.size(),
                "every stage of a pipeline needs a layer: {} stages, {} layers", num_stages, costs.size());
  const Divisions divisions(costs, num_stages);
  constexpr double kRounding = 1 + 1e-9;
  const double least = divisions.best([](double value, double cost) { return std::max(value, cost); }).first;
  const std::vector<std::size_t> ends =
      divisions
          .best([&](double value, double cost) {
            return cost > least * kRounding ? kImpossible : value + cost * cost;
          })
          .second;
  std::vector<std::uint16_t> layers;
  std::size_t first = 0;
  for (std::size_t stage = 0; stage < num_stages; ++stage) {
    const std::size_t end = stage + 1 < num_stages ? ends[stage] : costs.size();
    layers.push_back(static_cast<std::uint16_t>(end - first));
    first = end;
  }
  return layers;
}

}  // namespace plenum::schedule
