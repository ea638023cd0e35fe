#pragma once

#include "plenum/kernels/soap_step.h"

namespace plenum::kernels::cpu {

void soap_step(const tensor::Stream& stream, const SoapStep& args);
void soap_factors(const tensor::Stream& stream, const SoapFactors& args);
void soap_basis(const tensor::Stream& stream, const SoapBasis& args);
void soap_directions(const tensor::Stream& stream, const SoapDirections& args);
void soap_weights(const tensor::Stream& stream, const SoapWeights& args);

}  // namespace plenum::kernels::cpu
