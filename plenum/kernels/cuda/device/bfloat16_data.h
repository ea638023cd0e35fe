#pragma once

#include <cuda_bf16.h>

#include "plenum/tensor/bfloat16.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels::cuda {

/// The elements of a tensor of BFloat16, as kernels see them; null where the argument is left out.
inline const __nv_bfloat16* bfloat16_data(const tensor::ConstTensorView& view) {
  return view ? reinterpret_cast<const __nv_bfloat16*>(view.data<tensor::BFloat16>()) : nullptr;
}
inline __nv_bfloat16* bfloat16_data(const tensor::TensorView& view) {
  return view ? reinterpret_cast<__nv_bfloat16*>(view.data<tensor::BFloat16>()) : nullptr;
}

}  // namespace plenum::kernels::cuda
