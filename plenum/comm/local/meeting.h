#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "plenum/comm/contribution.h"

namespace plenum::comm::local {

/// One collective in flight. Once all members have come, its elements are divided into tasks that whoever
/// waits for it takes and does: nobody depends on another member to be waiting too. Each element is reduced
/// by one thread in the order of the members, so it does not matter who does what.
class Meeting {
 public:
  explicit Meeting(std::span<const Rank> ranks)
      : ranks_(ranks), contributions_(ranks.size()), has_joined_(ranks.size(), false) {}

  /// True when the last member has come. Throws InternalError if it was there already.
  bool join(std::size_t member, Contribution contribution);
  /// Who disagrees with whom about what, once all have come; empty if nobody does.
  const std::string& disagreement() const { return disagreement_; }

  bool has_tasks() const { return next_task_ < num_tasks_; }
  /// Takes tasks and does them until none is left. Throws where one cannot be done; it is not taken again.
  void work();

 private:
  void divide();
  void do_task(std::size_t task);
  void reduce_part(std::size_t first, std::size_t count);
  void scatter_part(std::size_t first, std::size_t count);
  void gather_part(std::size_t first, std::size_t count);
  void broadcast_part(std::size_t first, std::size_t count);
  void exchange_pair(std::size_t from, std::size_t to);

  /// Calls visit(member, first of the part, first, count) for what lies in [first, first + count) of each
  /// member's part.
  template <typename Visit>
  void for_each_part(std::size_t first, std::size_t count, Visit visit) const;

  std::span<const Rank> ranks_;
  std::vector<Contribution> contributions_;
  std::vector<bool> has_joined_;
  std::size_t num_present_ = 0;
  std::string disagreement_;
  std::size_t num_elements_ = 0;
  std::size_t elements_per_task_ = 1;
  std::size_t num_tasks_ = 0;
  std::atomic<std::size_t> next_task_ = 0;
};

}  // namespace plenum::comm::local
