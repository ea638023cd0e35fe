#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <nccl.h>

#include "plenum/comm/contribution.h"
#include "plenum/comm/nccl/host_staging.h"
#include "plenum/comm/nccl/nccl_check.h"
#include "plenum/comm/nccl/world_state.h"
#include "plenum/tensor/cuda_stream.h"

namespace plenum::comm::nccl {

/// One member's end of a group of processes with a GPU each.
class NcclCommunicator final : public ContributionCommunicator {
 public:
  /// Waits until all members are there.
  NcclCommunicator(std::shared_ptr<WorldState> world, std::vector<Rank> ranks, std::size_t index,
                   const Id& id);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  std::size_t index() const override { return index_; }
  std::size_t size() const override { return ranks_.size(); }
  Rank rank_of(std::size_t member) const override { return ranks_[member]; }

  Completion start_send(std::size_t to, Tag tag, ConstElements elements) override;
  Completion start_receive(std::size_t from, Tag tag, Elements elements) override;

  std::unique_ptr<Communicator> group(std::span<const std::size_t> members) override;
  void issue_into(const tensor::WorkQueue& queue) override;
  void abort_all(Rank failed_rank, std::string_view reason) override {
    world_->abort_all(failed_rank, reason);
  }

  /// Ends what is under way on the GPU; nothing can be started afterwards.
  void end();

 private:
  Completion start(Contribution contribution) override;
  /// What goes in and out of memory that the GPU reaches, in a queue of it.
  struct Place {
    const std::byte* source;
    std::byte* destination;
    cudaStream_t stream;
  };
  void issue(const CollectiveShape& shape, const Place& place);
  void reduce_parts(const CollectiveShape& shape, const Place& place);
  void gather_parts(const CollectiveShape& shape, const Place& place);
  void exchange_parts(const CollectiveShape& shape, const Place& place);

  /// Calls `work` with the queue, in the GPU's memory, or by way of it.
  template <typename Work>
  Completion run(ConstElements source, Elements destination, Work work);
  /// By way of the GPU's memory, whether or not there is a queue.
  template <typename Work>
  Completion run_staged(ConstElements source, Elements destination, Work work);

  std::shared_ptr<WorldState> world_;
  std::vector<Rank> ranks_;
  std::size_t index_;
  std::timed_mutex mutex_;  ///< of the next two: who aborts is another thread
  ncclComm_t handle_ = nullptr;
  bool is_ended_ = false;
  const tensor::CudaStream* queue_ = nullptr;
  HostStaging staging_;
  DeviceBytes element_{sizeof(std::int32_t)};  ///< that a barrier sums
};

}  // namespace plenum::comm::nccl
