#include "plenum/comm/mpi/requests.h"

#include <algorithm>
#include <string_view>

#include "plenum/base/check.h"

namespace plenum::comm::mpi {
namespace {

/// MPI counts in int.
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

}  // namespace

void check_call(int result, const char* what) {
  if (result == MPI_SUCCESS) [[likely]] {
    return;
  }
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  base::fail("MPI cannot {}: {}", what, std::string_view(text, static_cast<std::size_t>(length)));
}

MPI_Request send_piece(std::span<const std::byte> bytes, const Line& line) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_call(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, line.peer, line.tag,
                       line.communicator, &request),
             "send");
  return request;
}

MPI_Request receive_piece(std::span<std::byte> bytes, const Line& line) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_call(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, line.peer, line.tag,
                       line.communicator, &request),
             "receive");
  return request;
}

void Requests::send(std::span<const std::byte> bytes, const Line& line) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
    add(send_piece(bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin)), line));
  }
}

void Requests::receive(std::span<std::byte> bytes, const Line& line) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
    add(receive_piece(bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin)), line));
  }
}

bool Requests::test() {
  if (requests_.empty()) return true;
  int is_done = 0;
  check_call(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &is_done, MPI_STATUSES_IGNORE),
             "communicate");
  if (is_done != 0) requests_.clear();
  return is_done != 0;
}

}  // namespace plenum::comm::mpi
