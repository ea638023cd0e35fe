#include "plenum/train/rank_times.h"

#include <cstddef>
#include <memory>
#include <span>

namespace plenum::train {
namespace {

/// Calls visit(value) for all that processes tell each other, in the same order everywhere.
template <typename Visit>
void for_each_value(pipeline::MeasuredCycle& cycle, std::vector<double>& are_empty, Visit visit) {
  for (schedule::RankTimes& rank : cycle.times) {
    for (schedule::LaneTimes& lane : rank) {
      for (schedule::ActionTime& time : lane) {
        visit(time.start);
        visit(time.end);
      }
    }
  }
  for (double& offset : cycle.clock_offset_seconds) visit(offset);
  for (double& is_empty : are_empty) visit(is_empty);
}

/// Puts the times of this process on the clock of the first.
void shift(pipeline::MeasuredCycle& cycle, double offset_seconds) {
  for (std::size_t rank = 0; rank < cycle.times.size(); ++rank) {
    for (schedule::LaneTimes& lane : cycle.times[rank]) {
      for (schedule::ActionTime& time : lane) {
        if (time.end == 0) continue;
        time = {time.start + offset_seconds, time.end + offset_seconds};
        cycle.clock_offset_seconds[rank] = offset_seconds;
      }
    }
  }
}

}  // namespace

void add_other_processes(const Processes& processes, bool counts, pipeline::MeasuredCycle& cycle,
                         std::vector<bool>& are_empty) {
  shift(cycle, processes.clock_offset_seconds());
  std::vector<double> flags(are_empty.begin(), are_empty.end());
  std::vector<double> values;
  for_each_value(cycle, flags, [&](double value) { values.push_back(counts ? value : 0); });
  // Every value is that of one process and zero in the others, so their sum has it to the bit.
  const std::unique_ptr<comm::Communicator> all = processes.communicator();
  constexpr comm::Tag kTag = 0;
  all->start_all_reduce(comm::elements_of(std::span(values)), kTag).wait();
  std::size_t next = 0;
  for_each_value(cycle, flags, [&](double& value) { value = values[next++]; });
  for (std::size_t i = 0; i < are_empty.size(); ++i) are_empty[i] = flags[i] > 0;
}

}  // namespace plenum::train
