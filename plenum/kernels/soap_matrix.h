#pragma once

#include <cstdint>

#include "plenum/kernels/soap_step.h"

namespace plenum::kernels {

/// One side of a group's matrices: its factors and bases, [N, N] each, one for each matrix.
struct SoapSide {
  std::int64_t N = 0;  ///< 0: not rotated
  float* factors_BNN = nullptr;
  float* bases_BNN = nullptr;

  float* factor(std::int64_t index) const { return factors_BNN + index * N * N; }
  float* basis(std::int64_t index) const { return bases_BNN + index * N * N; }
  explicit operator bool() const { return N > 0; }
};

/// A group of matrices with its part of the state, and the room that a step works in.
struct SoapGroup {
  /// `args`: a SoapStep, or a part of one.
  template <typename Args>
  SoapGroup(tensor::Device device, const Args& args, const FlatMatrices& group, std::int64_t state_begin)
      : matrices(group),
        place(workspace::soap_place(group, args.limit, state_begin)),
        num_at_once(workspace::num_soap_at_once(device, group)) {
    auto* const state = args.state.template data<float>();
    const auto side = [&](std::int64_t N, std::int64_t begin) -> SoapSide {
      return {N, state + begin, state + begin + group.count * N * N};
    };
    rows = side(place.rows, place.row_begin);
    columns = side(place.columns, place.column_begin);
    const std::int64_t size = num_at_once * group.num_elements();
    float* const room = args.room.template data<float>();
    gradient_RC = room;
    first_RC = room + size;
    second_RC = room + 2 * size;
    third_RC = room + 3 * size;
    squares_BNN = room + 4 * size;
  }

  const FlatMatrices& matrices;
  workspace::SoapPlace place;
  std::int64_t num_at_once;
  SoapSide rows, columns;
  float *gradient_RC, *first_RC, *second_RC, *third_RC;  ///< of the matrices that are worked on
  float* squares_BNN;                                    ///< of one side
};

/// A basis is iterated with its factor plus so much of the mean eigenvalue, so that no row of the product
/// vanishes; eigenvectors stay what they are.
inline constexpr float kSoapShift = 1e-5F;

}  // namespace plenum::kernels
