#include "plenum/pipeline/rehearsal.h"

#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "plenum/base/check.h"
#include "plenum/pipeline/executor.h"

namespace plenum::pipeline {
namespace {

using schedule::Lane;
using schedule::Rank;

/// Sleeps where a real program works. Messages and collectives carry one number for each member.
class RehearsalProgram final : public StageProgram {
 public:
  RehearsalProgram(Rank rank, const schedule::Dataflow& dataflow, const schedule::CostModel& costs)
      : rank_(rank), dataflow_(dataflow), costs_(costs) {
    for (std::vector<double>& buffer : buffers_) buffer.resize(dataflow.schedule().ranks.size());
    ones_.assign(dataflow.schedule().ranks.size(), 1);
  }

  void forward(const ActionRun& run) override { spend(run); }
  void backward(const ActionRun& run) override { spend(run); }
  void input_gradient(const ActionRun& run) override { spend(run); }
  void weight_gradient(const ActionRun& run) override { spend(run); }
  void recompute(const ActionRun& run) override { spend(run); }
  void curvature(const ActionRun& run) override { spend(run); }
  void invert(const ActionRun& run) override { spend(run); }
  void accumulate_factor(const ActionRun& run) override { spend(run); }
  void inverse_root(const ActionRun& run) override { spend(run); }
  void precondition(const ActionRun& run) override { spend(run); }
  void square_gradient(const ActionRun& run) override { spend(run); }
  void update_moments(const ActionRun& run) override { spend(run); }
  void update(const ActionRun& run) override { spend(run); }

  comm::ConstElements outgoing(const ActionRun& run) override {
    sleep(costs_.seconds(rank_, run.action) + costs_.latency_seconds(rank_, dataflow_.peer(run.action)));
    return comm::elements_of(std::span<const double>(outgoing_));
  }
  comm::Elements incoming(const ActionRun& run) override { return elements(run, 1); }
  comm::Elements to_reduce(const ActionRun& run) override { return elements(run, 1); }
  PartitionedElements to_partition(const ActionRun& run) override {
    const std::size_t num_members = dataflow_.group(run.action).size();
    return {elements(run, num_members), std::span(ones_).first(num_members)};
  }
  void communicated(const ActionRun& run) override {
    if (schedule::traits_of(run.action.type).is_collective) spend(run);
  }
  void exchange_data(const ActionRun& run, comm::Communicator& ranks) override {
    ranks.start_barrier(0).wait();
    spend(run);
  }

 private:
  static void sleep(double seconds) {
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  void spend(const ActionRun& run) const { sleep(costs_.seconds(rank_, run.action)); }

  /// Each lane is a thread and has a buffer of its own.
  comm::Elements elements(const ActionRun& run, std::size_t count) {
    std::vector<double>& buffer =
        buffers_[static_cast<std::size_t>(schedule::traits_of(run.action.type).lane)];
    return comm::elements_of(std::span(buffer).first(count));
  }

  Rank rank_;
  const schedule::Dataflow& dataflow_;
  const schedule::CostModel& costs_;
  const std::array<double, 1> outgoing_ = {};  ///< shared by all sends, which may overlap
  std::array<std::vector<double>, schedule::kNumLanes> buffers_;
  std::vector<std::size_t> ones_;
};

}  // namespace

std::vector<schedule::RankTimes> rehearse(const schedule::Schedule& schedule,
                                          const schedule::CostModel& costs, std::size_t num_cycles) {
  base::require(schedule.ranks.size() <= kMostRehearsedRanks, "a rehearsal has room for {} ranks: {}",
                kMostRehearsedRanks, schedule.ranks.size());
  const schedule::Dataflow dataflow(schedule);
  std::vector<std::unique_ptr<RehearsalProgram>> programs;
  std::vector<StageProgram*> borrowed;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    programs.push_back(std::make_unique<RehearsalProgram>(Rank::at(rank), dataflow, costs));
    borrowed.push_back(programs.back().get());
  }
  Executor executor(schedule, local_ranks(borrowed));
  executor.run(num_cycles * schedule.num_steps());
  return executor.measured().times;
}

}  // namespace plenum::pipeline
