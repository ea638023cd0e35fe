#include "plenum/schedule/generate/interleaved.h"

#include <algorithm>
#include <optional>

#include "plenum/base/check.h"
#include "plenum/schedule/generate/generator_options.h"

namespace plenum::schedule {
namespace {

/// The order in which every rank passes micro-batches through its chunks: group by group; in a group, chunk
/// by chunk. A group that is short of micro-batches leaves places empty, which blocks nothing: when a
/// micro-batch is taken out of an order that runs to its end, the rest still does.
class GroupOrder {
 public:
  GroupOrder(std::size_t depth, std::size_t num_micro_batches, std::size_t num_chunks)
      : num_micro_batches_(num_micro_batches),
        num_chunks_(num_chunks),
        num_groups_(num_chunks == 1 ? 1 : std::max<std::size_t>(1, num_micro_batches / depth)),
        group_size_(std::max(depth, (num_micro_batches + num_groups_ - 1) / num_groups_)) {}

  struct Place {
    std::size_t chunk;
    std::size_t micro_batch;
  };

  std::size_t group_size() const { return group_size_; }
  std::size_t num_places() const { return num_groups_ * group_size_ * num_chunks_; }

  /// Nothing for a place that is left empty.
  std::optional<Place> at(std::size_t place) const {
    const std::size_t group = place / (group_size_ * num_chunks_);
    const std::size_t micro_batch = first_of(group) + place % group_size_;
    if (micro_batch >= first_of(group + 1)) return std::nullopt;
    return Place{place / group_size_ % num_chunks_, micro_batch};
  }

 private:
  std::size_t first_of(std::size_t group) const { return group * num_micro_batches_ / num_groups_; }

  std::size_t num_micro_batches_;
  std::size_t num_chunks_;
  std::size_t num_groups_;
  std::size_t group_size_;
};

}  // namespace

Schedule generate_interleaved(const GeneratorOptions& options) {
  const std::size_t depth = options.depth;
  const std::size_t num_chunks = options.num_chunks;
  base::require(num_chunks > 0, "a rank needs at least one chunk");
  StepDraft draft = begin_draft("interleaved", options, depth * num_chunks);
  const StageLayers layers(draft.problem);
  const GroupOrder order(depth, options.num_micro_batches, num_chunks);
  for (std::size_t rank = 0; rank < draft.compute.size(); ++rank) {
    const std::size_t position = rank % depth;
    const std::size_t first = rank / depth * options.num_micro_batches;
    for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
      draft.stages[rank].push_back(StageId::at(chunk * depth + position));
    }
    const std::size_t num_behind = depth - 1 - position;
    const std::size_t num_ahead =
        num_chunks == 1
            ? num_behind
            : std::min(2 * num_behind + (num_chunks - 1) * order.group_size(), order.num_places());
    std::vector<Action>& work = draft.compute[rank];
    for (std::size_t i = 0; i < order.num_places() + num_ahead; ++i) {
      if (i < order.num_places()) {
        if (const auto place = order.at(i)) {
          add_forward(layers, StageId::at(place->chunk * depth + position),
                      MicroBatchId::at(first + place->micro_batch), work);
        }
      }
      if (i < num_ahead) continue;
      if (const auto place = order.at(i - num_ahead)) {
        const std::size_t chunk = num_chunks - 1 - place->chunk;
        add_backward(layers, draft.problem, StageId::at(chunk * depth + position),
                     MicroBatchId::at(first + place->micro_batch), work);
      }
    }
  }
  return complete_step(std::move(draft));
}

}  // namespace plenum::schedule
