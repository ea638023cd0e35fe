#pragma once

#include <vector>

#include "plenum/comm/contribution.h"
#include "plenum/comm/mpi/group_lines.h"
#include "plenum/comm/mpi/staging.h"
#include "plenum/comm/mpi/transfer.h"

namespace plenum::comm::mpi {

/// Sums over all members by direct exchange: each element has an owner, to whom all members send it, and who
/// adds in the order of the members. An all-reduce then has the owners send their sums to all. Slices travel
/// in pieces, so that sending, adding and sending sums overlap and staging stays small.
class DirectReduction final : public Transfer {
 public:
  /// Of an all-reduce or a reduce-scatter. Borrows the lines and the staging.
  DirectReduction(const GroupLines& lines, Staging& staging, const Contribution& own);

  bool advance() override;
  bool is_done() const override { return num_open_ == 0; }

 private:
  /// One MPI request stands for a piece on its way, in one of these directions.
  enum class Way : std::uint8_t { ContributionOut, ContributionIn, ResultOut, ResultIn };
  static constexpr std::size_t kNumWays = 4;
  static constexpr std::size_t kDepth = Staging::kDepth;

  /// How far this member is with the slice of one owner. Pieces are begun in order.
  struct Slice {
    std::size_t begin = 0;  ///< in bytes
    std::size_t num_bytes = 0;
    std::size_t num_pieces = 0;
    std::size_t contributions_out = 0;  ///< begun; of other owners
    std::size_t results_in = 0;         ///< begun
  };

  std::size_t slot(Way way, std::size_t piece, std::size_t member) const {
    return (static_cast<std::size_t>(way) * kDepth + piece % kDepth) * lines_.size() + member;
  }
  bool is_free(Way way, std::size_t piece, std::size_t member) const {
    return requests_[slot(way, piece, member)] == MPI_REQUEST_NULL;
  }
  bool are_free(Way way, std::size_t piece) const;
  std::size_t bytes_of(const Slice& slice, std::size_t piece) const;
  std::byte* staged(std::size_t piece, std::size_t member) const;
  const std::byte* source_of(const Slice& slice, std::size_t piece) const;
  std::byte* sum_of(const Slice& slice, std::size_t piece) const;

  bool start_what_can();
  bool exchange_with(std::size_t member);
  bool ask_for_contributions();
  bool add_pieces();
  void add(std::size_t piece);
  bool collect();

  const GroupLines& lines_;
  const Contribution& own_;
  bool gives_results_;
  std::size_t piece_bytes_;
  std::byte* staging_;
  std::vector<Slice> slices_;
  std::size_t asked_ = 0;  ///< pieces of the own slice for which contributions are asked
  std::size_t added_ = 0;  ///< and that are added
  std::vector<MPI_Request> requests_;
  std::vector<int> completed_;
  std::vector<const std::byte*> sources_;
  std::size_t num_open_ = 0;  ///< messages yet to come to their end, and pieces to be added
};

}  // namespace plenum::comm::mpi
