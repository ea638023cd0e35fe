#pragma once

#include <cstddef>

#include "tests/pipeline/toy_model.h"

namespace plenum::pipeline {

/// Square matrices of order n, row by row, for the toy program. The serial reference has its own.

/// left * middle * right.
Values product(const Values& left, const Values& middle, const Values& right, std::size_t n);

double trace_of(const Values& matrix, std::size_t n);
void add_to_diagonal(Values& matrix, double value, std::size_t n);

/// Inverts a symmetric positive definite matrix in place, by Gauss and Jordan without pivoting.
void invert(Values& matrix, std::size_t n);

/// matrix^(-1/4) of a symmetric positive definite matrix, by its eigenvectors (Jacobi).
Values inverse_fourth_root(const Values& matrix, std::size_t n);

}  // namespace plenum::pipeline
