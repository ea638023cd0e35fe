#include "plenum/comm/mpi/mpi_world.h"

#include <exception>
#include <utility>

#include "plenum/comm/mpi/mpi_communicator.h"

namespace plenum::comm::mpi {

bool is_built() {
  return true;
}

std::optional<std::string> obstacle() {
  return std::nullopt;
}

std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  check_call(MPI_Get_library_version(text, &length), "say which it is");
  const std::string name(text, static_cast<std::size_t>(length));
  return name.substr(0, name.find_first_of(",\n"));
}

MpiWorld::MpiWorld(MpiWorldOptions options) : state_(std::make_shared<WorldState>(std::move(options))) {}

MpiWorld::~MpiWorld() {
  if (!state_->abort_state().is_aborted() && std::uncaught_exceptions() == 0) state_->finish();
}

Rank MpiWorld::rank() const {
  return state_->rank();
}

std::size_t MpiWorld::size() const {
  return state_->size();
}

std::unique_ptr<Communicator> MpiWorld::communicator() {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < size(); ++rank) ranks.push_back(Rank::at(rank));
  return make_communicator(state_, std::move(ranks), rank().index(), state_->new_world_context());
}

void MpiWorld::abort_here(Rank failed_rank, std::string_view reason) {
  state_->abort_here(failed_rank, reason);
}

}  // namespace plenum::comm::mpi
