#include "plenum/plan/pass_costs.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace plenum::plan {
namespace {

auto sizes_of(const MicroBatchWork& work) {
  return std::tuple(work.rows, work.work.tokens, work.work.squared_lengths, work.work.sequences,
                    work.work.labels);
}

ActionParts times(double count, ActionParts parts) {
  for (double* const part : {&parts.device.compute, &parts.device.memory, &parts.device.launch,
                             &parts.link.latency, &parts.link.bandwidth}) {
    *part *= count;
  }
  return parts;
}

constexpr std::size_t kEmbedding = 0;
constexpr std::size_t kHeads = 1;
constexpr std::size_t kFirstLayer = 2;

}  // namespace

PartCosts::PartCosts(const ActionOps& ops, const Cluster& cluster) : ops_(ops), cluster_(cluster) {}

ActionParts PartCosts::of(const std::vector<Op>& ops) const {
  ActionParts parts;
  if (noted_ != nullptr) noted_->insert(noted_->end(), ops.begin(), ops.end());
  for (const Op& op : ops) parts.device += cluster_.device.seconds(op);
  return parts;
}

const Link& PartCosts::link_of_slices() const {
  const std::size_t num_slices = ops_.model().tensor_parallel.size;
  return cluster_.are_on_one_node(0, num_slices - 1) ? cluster_.within_node : cluster_.between_nodes;
}

LinkSeconds PartCosts::sum_over_slices(double bytes) const {
  return all_reduce_seconds(link_of_slices(), bytes, ops_.model().tensor_parallel.size);
}

ActionParts PartCosts::of(const PartWork& work) const {
  ActionParts parts = of(work.ops);
  for (const double bytes : work.summed_bytes) parts.link += sum_over_slices(bytes);
  for (const double bytes : work.gathered_bytes)
    parts.link += gather_seconds(link_of_slices(), bytes, ops_.model().tensor_parallel.size);
  return parts;
}

PassCosts::PassCosts(const ActionOps& ops, const PartCosts& costs)
    : ops_(ops), costs_(costs), alike_(ops.alike_layers()) {
  for (std::size_t layer = 0; layer < alike_.size(); ++layer) {
    if (alike_[layer] == layer) different_.push_back(layer);
  }
  for (const std::size_t kind : different_) {
    std::vector<std::uint16_t>& before = num_before_.emplace_back(1, std::uint16_t{0});
    for (const std::size_t alike : alike_)
      before.push_back(static_cast<std::uint16_t>(before.back() + (alike == kind ? 1 : 0)));
  }
}

void PassCosts::set_work(const StepWork& work) {
  kind_of_.clear();
  computed_.clear();
  std::map<decltype(sizes_of(MicroBatchWork{})), std::size_t> kinds;
  for (const MicroBatchWork& micro_batch : work.micro_batches) {
    const auto [place, is_new] = kinds.try_emplace(sizes_of(micro_batch), kinds.size());
    kind_of_.push_back(place->second);
    if (!is_new) continue;
    computed_.push_back(computed_work(micro_batch, ops_.model(), ops_.device()));
    computed_.push_back(computed_work(without_padding(micro_batch), ops_.model(), ops_.device()));
  }
  parts_.assign(2 * kNumPasses * computed_.size(), {});
}

const std::vector<ActionParts>& PassCosts::parts_of(Pass pass, std::size_t computed,
                                                    Gradients gradients) const {
  const std::size_t variant = 2 * static_cast<std::size_t>(pass) + (gradients == Gradients::AddedTo ? 1 : 0);
  std::vector<ActionParts>& parts = parts_[2 * kNumPasses * computed + variant];
  if (!parts.empty()) return parts;
  const ComputedWork& work = computed_[computed];
  parts.push_back(costs_.of(ops_.embedding(pass, work, gradients)));
  parts.push_back(costs_.of(ops_.heads(pass, work, gradients)));
  for (const std::size_t layer : different_)
    parts.push_back(costs_.of(ops_.layer(layer, pass, work, gradients)));
  return parts;
}

ActionParts PassCosts::of(Pass pass, base::MicroBatchId micro_batch, base::LayerId first, base::LayerId end,
                          Gradients gradients, Padding padding) const {
  const std::size_t computed = 2 * kind(micro_batch) + (padding == Padding::LeftOut ? 1 : 0);
  ActionParts sum;
  if (computed_[computed].is_empty()) return sum;
  const std::vector<ActionParts>& parts = parts_of(pass, computed, gradients);
  for (std::size_t kind = 0; kind < different_.size(); ++kind) {
    const int count = num_before_[kind][end.index()] - num_before_[kind][first.index()];
    if (count > 0) sum += times(count, parts[kFirstLayer + kind]);
  }
  if (first.index() == 0) sum += parts[kEmbedding];
  if (end.index() == alike_.size()) sum += parts[kHeads];
  return sum;
}

}  // namespace plenum::plan
