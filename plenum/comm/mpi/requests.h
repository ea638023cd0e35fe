#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <mpi.h>

namespace plenum::comm::mpi {

/// Throws UserError with MPI's own words unless the call succeeded.
void check_call(int result, const char* what);

/// One channel between two processes, as MPI sees it.
struct Line {
  MPI_Comm communicator = MPI_COMM_NULL;
  int peer = 0;
  int tag = 0;
};

/// Starts to send or receive bytes that fit into one MPI message.
MPI_Request send_piece(std::span<const std::byte> bytes, const Line& line);
MPI_Request receive_piece(std::span<std::byte> bytes, const Line& line);

/// MPI requests that are waited for together. What is started here is not given up: the owner keeps the
/// buffers until all is done, or until nobody calls MPI any more.
class Requests {
 public:
  /// Sends or receives any number of bytes, as several messages where they are more than MPI counts. Both
  /// ends cut in the same places. No bytes are no message.
  void send(std::span<const std::byte> bytes, const Line& line);
  void receive(std::span<std::byte> bytes, const Line& line);
  void add(MPI_Request request) { requests_.push_back(request); }

  /// True once everything that was started is done.
  bool test();
  bool is_empty() const { return requests_.empty(); }

 private:
  std::vector<MPI_Request> requests_;
};

}  // namespace plenum::comm::mpi
