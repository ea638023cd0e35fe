#pragma once

#include "plenum/kernels/second_moment.h"

namespace plenum::kernels::cpu {

void add_second_moment(const tensor::Stream& stream, const AddSecondMoment& args);

}  // namespace plenum::kernels::cpu
