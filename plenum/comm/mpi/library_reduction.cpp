#include "plenum/comm/mpi/library_reduction.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plenum/base/check.h"

namespace plenum::comm::mpi {
namespace {

constexpr std::size_t kMostElements = std::numeric_limits<int>::max();

MPI_Datatype type_of(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::Float32:
      return MPI_FLOAT;
    case tensor::DType::Float64:
      return MPI_DOUBLE;
    case tensor::DType::Int64:
      return MPI_INT64_T;
    case tensor::DType::Int32:
      return MPI_INT32_T;
    case tensor::DType::Byte:
    case tensor::DType::BFloat16:
      break;
  }
  base::check(false, "{} has no sum on the host", dtype_name(dtype));
  return MPI_DATATYPE_NULL;
}

}  // namespace

bool LibraryReduction::can_do(const CollectiveShape& shape) {
  if (shape.dtype == tensor::DType::BFloat16) return false;  // MPI has no such type
  return std::all_of(shape.counts.begin(), shape.counts.end(),
                     [](std::size_t count) { return count <= kMostElements; });
}

LibraryReduction::LibraryReduction(MPI_Comm group, const Contribution& own) : destination_(own.destination) {
  const MPI_Datatype type = type_of(own.shape.dtype);
  MPI_Request request = MPI_REQUEST_NULL;
  if (own.shape.kind == CollectiveKind::ReduceScatter) {
    for (const std::size_t count : own.shape.counts) counts_.push_back(static_cast<int>(count));
    result_.resize(own.destination.bytes.size());
    check_call(MPI_Ireduce_scatter(own.source.bytes.data(), result_.data(), counts_.data(), type, MPI_SUM,
                                   group, &request),
               "reduce");
    requests_.add(request);
    return;
  }
  for (std::size_t begin = 0; begin < own.shape.count; begin += kMostElements) {
    const Elements part = own.destination.part(begin, std::min(kMostElements, own.shape.count - begin));
    check_call(MPI_Iallreduce(MPI_IN_PLACE, part.bytes.data(), static_cast<int>(part.count()), type, MPI_SUM,
                              group, &request),
               "reduce");
    requests_.add(request);
  }
}

bool LibraryReduction::advance() {
  if (!requests_.test()) return false;
  if (!result_.empty()) std::memcpy(destination_.bytes.data(), result_.data(), result_.size());
  return true;
}

}  // namespace plenum::comm::mpi
