#include "plenum/comm/mpi/world_state.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/comm/mpi/channel.h"

namespace plenum::comm::mpi {
namespace {

using std::chrono::microseconds;

/// Elements: several times as long as a piece of a slice is on its way within a machine.
constexpr Patience::Spin kSpin{.for_others = microseconds(200), .for_elements = microseconds(1000)};
/// Where the rank that is waited for may want this core.
constexpr Patience::Spin kSpinOnSharedCore{.for_others = microseconds(5), .for_elements = microseconds(5)};

/// Whether this machine has more ranks than cores.
bool outnumber_cores(MPI_Comm all) {
  MPI_Comm machine = MPI_COMM_NULL;
  int num_ranks = 0;
  check_call(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
             "make a communicator");
  MPI_Comm_size(machine, &num_ranks);
  MPI_Comm_free(&machine);
  return static_cast<unsigned>(num_ranks) > std::thread::hardware_concurrency();
}

void initialise() {
  int is_initialised = 0;
  MPI_Initialized(&is_initialised);
  base::check(is_initialised == 0, "a process has one MPI world");
  int level = MPI_THREAD_SINGLE;
  check_call(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "start");
  if (level >= MPI_THREAD_MULTIPLE) return;
  const std::string name = library_name();
  MPI_Finalize();
  base::fail(
      "this MPI library serves one thread only, and Plenum communicates from several: install one with "
      "MPI_THREAD_MULTIPLE in place of {}",
      name);
}

std::size_t most_contexts(MPI_Comm communicator) {
  void* highest_tag = nullptr;
  int is_there = 0;
  check_call(MPI_Comm_get_attr(communicator, MPI_TAG_UB, &highest_tag, &is_there),
             "say how many tags it has");
  base::check(is_there != 0, "MPI_TAG_UB is there");
  return static_cast<std::size_t>(*static_cast<const int*>(highest_tag)) / kNumTopics;
}

}  // namespace

WorldState::WorldState(MpiWorldOptions options) : options_(std::move(options)) {
  initialise();
  check_call(MPI_Comm_dup(MPI_COMM_WORLD, &all_), "make a communicator");
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(all_, &rank);
  MPI_Comm_size(all_, &size);
  rank_ = Rank::at(static_cast<std::size_t>(rank));
  size_ = static_cast<std::size_t>(size);
  num_contexts_ = most_contexts(all_);
  spin_ = outnumber_cores(all_) ? kSpinOnSharedCore : kSpin;
}

void WorldState::finish() {
  try {
    // MPI_Finalize may wait for others, for ever if one has failed; this wait hears of an abort.
    MPI_Request request = MPI_REQUEST_NULL;
    check_call(MPI_Ibarrier(all_, &request), "meet the other ranks");
    Requests all_have_come;
    all_have_come.add(request);
    const Patience patience = this->patience();
    while (true) {
      {
        const MpiCall call(*this);
        if (all_have_come.test()) break;
      }
      patience.pause();
    }
    abort_.abort_all(rank_, "its MPI world has ended");
    await_silence();
    MPI_Comm_free(&all_);
    MPI_Finalize();
  } catch (const std::exception&) {
    // Aborted, or MPI has failed: there is nothing to finalize any more.
  }
}

int WorldState::new_context() {
  // Numbers of different first members differ by these members' ranks. The upper half is for all ranks.
  const std::size_t context = rank_.index() + size_ * num_led_++;
  base::require(context < num_contexts_ / 2,
                "this MPI library has too few tags for so many groups of ranks: {} of {}", context,
                num_contexts_ / 2);
  return static_cast<int>(context);
}

int WorldState::new_world_context() {
  const std::size_t context = num_contexts_ / 2 + num_worlds_++;
  base::require(context < num_contexts_, "this MPI library has too few tags for so many groups of ranks: {}",
                num_contexts_);
  return static_cast<int>(context);
}

void WorldState::abort_here(Rank failed_rank, std::string_view reason) {
  abort_.abort_all(failed_rank, reason);
}

void WorldState::abort_all(Rank failed_rank, std::string_view reason) {
  if (abort_.abort_all(failed_rank, reason) && options_.on_abort) options_.on_abort(failed_rank, reason);
}

void WorldState::add(const std::shared_ptr<Channel>& channel) {
  const std::lock_guard lock(mutex_);
  std::erase_if(channels_, [](const std::weak_ptr<Channel>& old) { return old.expired(); });
  channels_.push_back(channel);
}

bool WorldState::drive_others(const Channel& but) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  bool has_moved = false;
  for (const std::weak_ptr<Channel>& weak : channels_) {
    const std::shared_ptr<Channel> channel = weak.lock();
    if (channel && channel.get() != &but) has_moved |= channel->try_drive();
  }
  return has_moved;
}

void WorldState::await_silence() const {
  while (num_callers_ > 0) std::this_thread::yield();
}

}  // namespace plenum::comm::mpi
