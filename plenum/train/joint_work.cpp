#include "plenum/train/joint_work.h"

#include <string>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/train/mendable_failure.h"

namespace plenum::train {

void do_together(const Processes& processes, TellPhase tell, base::FunctionRef<void()> own_part) {
  const auto work = [&] {
    tell(JointPhase::Works);
    own_part();
  };
  if (processes.is_alone()) return work();
  const std::string own = mendable_failure_of(work).value_or("");
  tell(JointPhase::Waits);
  const std::vector<std::string> failures = processes.of_all(own);
  for (std::size_t rank = 0; rank < failures.size(); ++rank)
    base::require(failures[rank].empty(), "rank {}: {}", rank, failures[rank]);
}

}  // namespace plenum::train
