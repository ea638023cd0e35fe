#pragma once

#include <cstddef>
#include <memory>
#include <typeindex>
#include <utility>
#include <vector>

// What cudaStream_t and cudaEvent_t point to.
struct CUstream_st;
struct CUevent_st;

namespace plenum::tensor {

/// An ordered queue of work for the GPU, owned.
class CudaStream {
 public:
  /// Throws UserError with the obstacle where there is no GPU.
  CudaStream();
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  CUstream_st* handle() const { return handle_; }
  /// Until everything in the queue has run. Throws what went wrong there as InternalError.
  void wait() const;
  /// The same where nobody can be told any more what went wrong.
  void drain() const noexcept;

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
  CUstream_st* handle_ = nullptr;
  /// Shared pointers, because these alone free what this header does not know.
  mutable std::vector<std::pair<std::type_index, std::shared_ptr<void>>> states_;
};

/// A point in a stream's work, for others to wait for.
class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  /// Everything that is in the stream now.
  void record(const CudaStream& stream);
  /// Lets what is put into `stream` from now on wait for what was recorded.
  void hold(const CudaStream& stream) const;
  /// Lets the caller wait for what was recorded; returns at once if nothing was.
  void wait() const;

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
