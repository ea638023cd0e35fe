#include "plenum/tensor/dtype.h"

namespace plenum::tensor {

std::size_t size_of(DType dtype) {
  return dtype == DType::Float32 ? sizeof(float) : sizeof(double);
}

std::string_view dtype_name(DType dtype) {
  return dtype == DType::Float32 ? "float32" : "float64";
}

}  // namespace plenum::tensor
