#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "plenum/batch/label_counts.h"
#include "plenum/pipeline/recording_cache.h"
#include "plenum/schedule/core/action.h"
#include "plenum/tensor/cuda_graph.h"

namespace plenum::pipeline {

/// Everything that a recording of one action's work on a micro-batch depends on, beside the program: where
/// two are equal, so is every argument of every kernel.
struct RecordingKey {
  schedule::ActionType type = schedule::ActionType::Forward;
  bool is_accumulated = true;  ///< whether a backward adds to gradients
  std::size_t staging = 0;     ///< where the micro-batch lies
  std::size_t slot = 0;        ///< where its activations lie, among those of the layers' stage
  std::size_t next_slot = 0;   ///< where those of the next stage lie, if a forward writes there
  std::size_t first_layer = 0, end_layer = 0;
  std::int64_t num_rows = 0, num_sequences = 0;
  batch::LabelCounts num_labels = {};
  std::int64_t max_length = 0;                ///< of its sequences, as attention rounds it
  std::array<std::uint32_t, 2> dropout = {};  ///< the key of an epoch's random numbers

  friend auto operator<=>(const RecordingKey&, const RecordingKey&) = default;
};

/// The most kernels and copies of all recordings together, which take memory of the GPU: about 38 passes of
/// BERT-large.
inline constexpr std::size_t kMostRecordedNodes = 16384;

/// Runs work on a GPU: the first time as it is, which lets kernels measure and choose, the second time it is
/// recorded, and from then on the recording runs. So what never repeats is never recorded.
class RecordedWork {
 public:
  void run(const RecordingKey& key, const tensor::CudaStream& stream, const std::function<void()>& work) {
    if (const tensor::CudaGraph* const graph = recordings_.use(key, stream, work)) {
      graph->start(stream);
    } else {
      work();
    }
  }

 private:
  // Long enough that recordings in vain are rare, short enough that those of past epochs go.
  static constexpr std::size_t kWindow = 4096;

  RecordingCache<RecordingKey, tensor::CudaGraph> recordings_{kMostRecordedNodes, kWindow};
};

}  // namespace plenum::pipeline
