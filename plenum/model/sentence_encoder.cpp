#include "plenum/model/sentence_encoder.h"

#include <optional>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/base/instruction_set.h"
#include "plenum/describe/bert.h"
#include "plenum/kernels/convert.h"
#include "plenum/memory/forward_memory.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/model/bert.h"
#include "plenum/model/micro_batch_staging.h"
#include "plenum/model/pass.h"
#include "plenum/model/read_rows.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/cuda_stream.h"
#include "plenum/tensor/stream_owner.h"

namespace plenum::model {
namespace {

using memory::EncoderMemory;

// Forward: embedding, layers, and of the last one's output the rows that are read (read_RD); their means
//          pooled_SD go to the host. What is under way has a place each for its lists and its vectors; the
//          layers' memory is one, as the stream does one after the other.

constexpr std::size_t kVectors = 0;  // whose rows the micro-batch's objectives name

}  // namespace

struct SentenceEncoder::State {
  /// Where a micro-batch under way lies.
  struct Place {
    std::optional<MicroBatchStaging> staging;
    tensor::TensorView pooled_SD;
    std::unique_ptr<tensor::PinnedMemory> fetched;  ///< null on the CPU, where the vectors lie already
    std::unique_ptr<tensor::QueueEvent> is_fetched;
    std::int64_t num_sequences = 0;
  };

  State(const describe::ModelConfig& config, const batch::Capacity& capacity, std::size_t num_threads,
        tensor::Device device)
      : table(describe::describe_bert_encoder(config)), owner(device, num_threads) {
    tensor::MemoryPlan sizes(device);
    memory::plan_encoder_memory(table, capacity, num_threads, sizes);
    arena.emplace(sizes.layout(), device);
    tensor::MemoryPlan views(*arena);
    memory = memory::plan_encoder_memory(table, capacity, num_threads, views);
    layout = views.layout();
    weights = weights_of(table, {memory.exact_N, memory.compute_N});
    stream.emplace(owner.stream(memory.scratch, views.precision()));
    const batch::Capacity computed = memory::computed_capacity(capacity, device);
    for (std::size_t i = 0; i < places.size(); ++i) make_place(memory.places[i], computed, places[i]);
  }

  bool is_on_gpu() const { return stream->device() == tensor::Device::Cuda; }

  void make_place(const EncoderMemory::Place& planned, const batch::Capacity& capacity, Place& place) {
    place.pooled_SD = planned.pooled_SD;
    if (!is_on_gpu()) {
      place.staging.emplace(table.model());
      return;
    }
    place.staging.emplace(table.model(), capacity, planned.micro_batch);
    const auto num_elements = static_cast<std::size_t>(planned.pooled_SD.num_elements());
    place.fetched = std::make_unique<tensor::PinnedMemory>(num_elements * sizeof(float));
    place.is_fetched = stream->cuda().make_event(tensor::WorkQueue::Timed::No);
  }

  describe::ParameterTable table;
  tensor::StreamOwner owner;
  std::optional<tensor::Arena> arena;
  EncoderMemory memory;
  tensor::MemoryLayout layout;
  BertWeights weights;
  std::optional<tensor::Stream> stream;
  std::array<Place, EncoderMemory::kNumPlaces> places;
  std::size_t num_begun = 0;
  std::size_t num_finished = 0;
};

SentenceEncoder::SentenceEncoder(const describe::ModelConfig& config, const batch::Capacity& capacity,
                                 std::size_t num_threads, tensor::Device device)
    : state_(std::make_unique<State>(config, capacity, num_threads, device)) {
  base::require_kernel_instruction_set();
}

SentenceEncoder::~SentenceEncoder() {
  if (state_->is_on_gpu()) state_->stream->cuda().drain();
}

const describe::ParameterTable& SentenceEncoder::parameters() const {
  return state_->table;
}

const tensor::MemoryLayout& SentenceEncoder::memory() const {
  return state_->layout;
}

void SentenceEncoder::write_weights(base::FunctionRef<void(std::span<float>)> write) {
  const EncoderMemory& memory = state_->memory;
  if (!state_->is_on_gpu()) {
    write(memory.exact_N.span<float>());
    return;
  }
  const tensor::Stream& stream = *state_->stream;
  std::vector<float> weights_N(static_cast<std::size_t>(state_->table.num_elements()));
  write(weights_N);
  tensor::copy(stream, tensor::ConstTensorView(weights_N.data(), memory.exact_N.shape()), memory.exact_N);
  kernels::round_to_compute(stream, {.x_N = memory.exact_N, .y_N = memory.compute_N});
  stream.wait();
}

std::size_t SentenceEncoder::most_under_way() {
  return EncoderMemory::kNumPlaces;
}

std::size_t SentenceEncoder::num_under_way() const {
  return state_->num_begun - state_->num_finished;
}

void SentenceEncoder::begin(const batch::MicroBatch& micro_batch, kernels::UnitLength unit_length) {
  base::check(num_under_way() < most_under_way(), "too many micro-batches are under way: {}",
              num_under_way());
  base::check(!micro_batch.starts.empty(), "a micro-batch must have sequences");
  State& state = *state_;
  State::Place& place = state.places[state.num_begun % state.places.size()];
  const tensor::Stream& stream = *state.stream;
  const tensor::CudaStream* const cuda = state.is_on_gpu() ? &stream.cuda() : nullptr;
  const Pass pass{
      .stream = stream, .model = state.table.model(), .micro_batch = place.staging->put(micro_batch, cuda)};
  const Activations& kept = state.memory.model.activations;
  bert_encoder_forward(pass, state.weights, kept, state.memory.model.transients, {},
                       base::LayerId::at(state.weights.layers.size()));
  place.num_sequences = static_cast<std::int64_t>(micro_batch.starts.size());
  const tensor::TensorView pooled_SD = place.pooled_SD.first_rows(place.num_sequences);
  kernels::pool_rows(stream, {.x_RD = rows_of_objective(pass, kept.read_RD, kVectors),
                              .group_R = pass.micro_batch.objectives[kVectors].label_M,
                              .unit_length = unit_length,
                              .y_SD = pooled_SD});
  if (cuda != nullptr) {
    auto* const fetched = reinterpret_cast<float*>(place.fetched->data());
    tensor::copy(stream, pooled_SD, tensor::TensorView(fetched, pooled_SD.shape()));
    cuda->record(*place.is_fetched);
  }
  ++state.num_begun;
}

std::span<const float> SentenceEncoder::finish() {
  base::check(num_under_way() > 0, "no micro-batch is under way");
  State& state = *state_;
  const State::Place& place = state.places[state.num_finished++ % state.places.size()];
  const tensor::TensorView pooled_SD = place.pooled_SD.first_rows(place.num_sequences);
  if (!state.is_on_gpu()) return pooled_SD.span<float>();
  tensor::wait_on_host(*place.is_fetched, [] { return false; });
  return {reinterpret_cast<const float*>(place.fetched->data()),
          static_cast<std::size_t>(pooled_SD.num_elements())};
}

}  // namespace plenum::model
