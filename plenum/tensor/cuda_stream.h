#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <typeindex>
#include <utility>
#include <vector>

#include "plenum/tensor/cuda_partition.h"
#include "plenum/tensor/work_queue.h"

// What cudaStream_t and cudaEvent_t point to.
struct CUstream_st;
struct CUevent_st;

namespace plenum::tensor {

/// Whose work begins first where multiprocessors become free.
enum class StreamPriority : std::uint8_t {
  Usual,
  First  ///< for short work that others wait for, beside long work that nobody does
};

/// An ordered queue of work for the GPU, owned.
class CudaStream final : public WorkQueue {
 public:
  /// Of the whole GPU, or of a part of it. Throws UserError with the obstacle where there is no GPU.
  explicit CudaStream(std::shared_ptr<const CudaPartition> partition = nullptr,
                      StreamPriority priority = StreamPriority::Usual);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  CUstream_st* handle() const { return handle_; }
  /// On which its kernels run: as many as are worth being used at a time.
  int num_multiprocessors() const { return num_multiprocessors_; }
  /// Null: of the whole GPU.
  const std::shared_ptr<const CudaPartition>& partition() const { return partition_; }
  /// Until everything in the queue has run. Throws what went wrong there as InternalError.
  void wait() const;
  /// The same where nobody can be told any more what went wrong.
  void drain() const noexcept;

  std::unique_ptr<QueueEvent> make_event(Timed timed) const override;
  void record(QueueEvent& event) const override;
  void wait_for(const QueueEvent& event) const override;
  void copy(std::span<const std::byte> from, std::span<std::byte> to) const override;
  void sum(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
           std::size_t count, DType dtype) const override;

  /// What kernels keep for their work in this queue, such as a library's handle: made when it is first asked
  /// for, freed with the queue. One thread at a time puts work into a queue, so one at a time asks.
  template <typename State>
  State& state() const {
    for (const auto& [type, state] : states_) {
      if (type == typeid(State)) return *static_cast<State*>(state.get());
    }
    const auto made = std::make_shared<State>();
    states_.emplace_back(typeid(State), made);
    return *made;
  }

 private:
  std::shared_ptr<const CudaPartition> partition_;
  CUstream_st* handle_ = nullptr;
  int num_multiprocessors_ = 0;
  /// Shared pointers, because these alone free what this header does not know.
  mutable std::vector<std::pair<std::type_index, std::shared_ptr<void>>> states_;
};

/// A point in a stream's work.
class CudaEvent final : public QueueEvent {
 public:
  explicit CudaEvent(WorkQueue::Timed timed = WorkQueue::Timed::No);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  CUevent_st* handle() const { return handle_; }
  bool is_done() const override;
  double seconds_since(const QueueEvent& earlier) const override;

 private:
  CUevent_st* handle_ = nullptr;
};

/// Memory of the host that the GPU copies from and to without a stop in between.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t num_bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t num_bytes() const { return num_bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t num_bytes_ = 0;
};

}  // namespace plenum::tensor
