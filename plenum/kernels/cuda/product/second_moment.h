#pragma once

#include "plenum/kernels/second_moment.h"

namespace plenum::kernels::cuda {

void add_second_moment(const tensor::Stream& stream, const AddSecondMoment& args);

}  // namespace plenum::kernels::cuda
