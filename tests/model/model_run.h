#pragma once

#include <array>
#include <optional>

#include "plenum/base/thread_pool.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/comm/communicator.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/memory/activation_layout.h"
#include "plenum/model/bert.h"
#include "plenum/model/map_views.h"
#include "plenum/model/micro_batch_staging.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/stream.h"

namespace plenum::model {

/// Sums over a micro-batch.
struct LossSums {
  double masked = 0;
  double next_sentence = 0;
};

/// By what the sums of losses are multiplied before gradients are taken.
struct LossScale {
  double masked = 1;
  double next_sentence = 1;
};

/// Completes a request with one stage of all layers.
inline memory::TrainingRequest of_whole_model(const describe::ModelDescription& model,
                                              memory::TrainingRequest request, std::size_t num_slots = 1) {
  request.stages = {{.layers = {{}, base::LayerId::at(model.layers.size())}, .num_slots = num_slots}};
  return request;
}

/// How a backward is done.
enum class BackwardForm : std::uint8_t {
  Whole,            ///< layer by layer
  WholeWithErrors,  ///< the same, which leaves LayerErrors behind
  LayerHalves,      ///< of each layer the gradient of its input, then that of its weights
  Halves,           ///< of all layers that of the input, then those of their weights
};

/// A BERT in memory of its own, or the part of it that one of a group's ranks holds, for one micro-batch at a
/// time. Weights and gradients are zero at first.
class ModelRun {
 public:
  ModelRun(const describe::ModelConfig& config, const batch::Capacity& capacity,
           schedule::Recomputation recompute = schedule::Recomputation::None, std::size_t num_threads = 1,
           comm::Communicator* group = nullptr, BackwardForm form = BackwardForm::Whole)
      : recompute_(recompute),
        form_(form),
        group_(group),
        table_(describe::tensor_parallel_slice(
            describe::describe_bert(config),
            group == nullptr ? describe::TensorParallel{}
                             : describe::TensorParallel{.index = group->index(), .size = group->size()})),
        pool_(num_threads),
        arena_(planned(capacity, recompute)),
        views_(arena_) {
    plan(capacity, recompute, views_);
  }

  const describe::ParameterTable& table() const { return table_; }
  std::span<float> weights() const { return weights_N_.span<float>(); }
  std::span<float> gradients() const { return gradients_N_.span<float>(); }
  std::span<float> gradient(const describe::Parameter& parameter) const {
    return gradients().subspan(static_cast<std::size_t>(parameter.begin),
                               static_cast<std::size_t>(parameter.num_elements()));
  }
  const Activations& kept() const { return memory_.stages.front().front(); }

  /// What a linear map of a layer read in the last forward.
  MapColumns input_of(const batch::MicroBatch& micro_batch, std::size_t layer, std::size_t map,
                      const LayerRows& rows) {
    const tensor::Stream stream = this->stream();
    const Pass pass{
        .stream = stream, .model = table_.model(), .micro_batch = staging_->put(micro_batch, nullptr)};
    return map_input(pass, layer, map, kept(), memory_.transients, rows);
  }
  BertGradients gradients_by_part() const { return gradients_of(table_, gradients_N_); }

  LossSums forward(const batch::MicroBatch& micro_batch, const DropoutSource& dropout = {}) {
    const tensor::Stream stream = this->stream();
    const Pass pass{.stream = stream,
                    .model = table_.model(),
                    .micro_batch = staging_->put(micro_batch, nullptr),
                    .dropout = dropout,
                    .group = group_};
    bert_forward(pass, weights_of(table_, {weights_N_, weights_N_}), kept(), memory_.transients, {}, end());
    Scalars scalars{};
    add_losses(pass, kept(), view_of(scalars));
    return {.masked = scalars[kernels::index_of(kernels::loss_of(0))],
            .next_sentence = scalars[kernels::index_of(kernels::loss_of(1))]};
  }
  /// After forward: one layer at a time, as a schedule may cut it.
  void backward(const batch::MicroBatch& micro_batch, const LossScale& scale,
                const DropoutSource& dropout = {},
                kernels::Accumulate accumulate = kernels::Accumulate::Yes) {
    const tensor::Stream stream = this->stream();
    const Pass pass{.stream = stream,
                    .model = table_.model(),
                    .micro_batch = staging_->put(micro_batch, nullptr),
                    .dropout = dropout,
                    .accumulate = accumulate,
                    .group = group_};
    Scalars scalars{};
    scalars[kernels::index_of(kernels::loss_scale_of(0))] = scale.masked;
    scalars[kernels::index_of(kernels::loss_scale_of(1))] = scale.next_sentence;
    for (std::size_t layer = end().index(); layer-- > 0;) {
      if (recompute_ != schedule::Recomputation::None) {
        bert_recompute(pass, weights_of(table_, {weights_N_, weights_N_}), kept(), memory_.transients,
                       recompute_, base::LayerId::at(layer));
      }
      const bool is_whole = form_ == BackwardForm::Whole || form_ == BackwardForm::WholeWithErrors;
      const auto of_layer = is_whole ? bert_backward : bert_input_gradient;
      of_layer(pass, weights_of(table_, {weights_N_, weights_N_}), gradients_of(table_, gradients_N_), kept(),
               memory_.transients, view_of(scalars), base::LayerId::at(layer), base::LayerId::at(layer + 1));
      if (form_ == BackwardForm::LayerHalves) {
        bert_weight_gradient(pass, gradients_of(table_, gradients_N_), kept(), memory_.transients,
                             base::LayerId::at(layer), base::LayerId::at(layer + 1));
      }
    }
    if (form_ != BackwardForm::Halves) return;
    bert_weight_gradient(pass, gradients_of(table_, gradients_N_), kept(), memory_.transients, {}, end());
  }

 private:
  using Scalars = std::array<double, kernels::kNumStepScalars>;
  static tensor::TensorView view_of(Scalars& scalars) {
    return {scalars.data(), {static_cast<std::int64_t>(scalars.size())}};
  }

  base::LayerId end() const { return base::LayerId::at(table_.model().layers.size()); }
  tensor::Stream stream() { return {pool_, scratch_.span<std::byte>()}; }

  void plan(const batch::Capacity& capacity, schedule::Recomputation recompute, tensor::MemoryPlan& plan) {
    weights_N_ = plan.add("parameters", tensor::Role::Master, {table_.num_elements()});
    gradients_N_ = plan.add("gradients", tensor::Role::Gradient, {table_.num_elements()});
    memory_ = memory::plan_training_memory(
        table_.model(), capacity,
        of_whole_model(table_.model(),
                       {.recompute = recompute, .keeps_errors = form_ != BackwardForm::Whole}),
        plan);
    scratch_ = memory::plan_scratch(table_, capacity, pool_.num_threads(), plan);
    staging_.emplace(table_.model());
  }
  tensor::MemoryLayout planned(const batch::Capacity& capacity, schedule::Recomputation recompute) {
    tensor::MemoryPlan sizes;
    plan(capacity, recompute, sizes);
    return sizes.layout();
  }

  schedule::Recomputation recompute_;
  BackwardForm form_;
  comm::Communicator* group_;
  describe::ParameterTable table_;
  base::ThreadPool pool_;
  tensor::TensorView weights_N_, gradients_N_, scratch_;
  memory::TrainingMemory memory_;
  std::optional<MicroBatchStaging> staging_;
  tensor::Arena arena_;
  tensor::MemoryPlan views_;
};

}  // namespace plenum::model
