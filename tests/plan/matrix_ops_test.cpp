#include "plenum/plan/matrix_ops.h"

#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"
#include "plenum/plan/make_op.h"

#include "tests/plan/op_sums.h"

namespace plenum::plan {
namespace {

using describe::FactorShape;
using tensor::Device;
using test::bytes_of;
using test::flops_of;

/// Multiplications and additions of the lower half of a sum of x x^T, one by one.
double counted_second_moment(std::int64_t rows, std::int64_t width) {
  double count = 0;
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t i = 0; i < width; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) count += 2;
    }
  }
  return count;
}

describe::ModelDescription two_layers() {
  return describe::describe_bert(
      {.vocabulary = 48, .width = 8, .num_layers = 2, .num_heads = 2, .mlp_width = 24, .max_positions = 16});
}

// 17 tokens in 20 rows, 4 of them masked.
constexpr MicroBatchWork kWork = {
    .rows = 20, .work = {.tokens = 17, .squared_lengths = 115, .sequences = 3, .labels = {4}}};

TEST(CurvatureOps, SumRealRowsOfEachInputOnce) {
  const describe::ModelDescription model = two_layers();
  const ActionOps ops(model, Device::Cuda, schedule::Recomputation::None);
  const ComputedWork work = computed_work(kWork, model, Device::Cuda);
  const std::vector<FactorShape> shapes = factor_shapes(model.layers[0]);
  double a = 0;
  double b = 0;
  for (std::size_t map = 0; map < shapes.size(); ++map) {
    a += flops_of(curvature_a_ops(ops, 0, map, work));
    b += flops_of(curvature_b_ops(ops, 0, map, work));
  }
  // Queries, keys and values have the same input.
  EXPECT_DOUBLE_EQ(a, 3 * counted_second_moment(17, 8) + counted_second_moment(17, 24));
  EXPECT_DOUBLE_EQ(b, 5 * counted_second_moment(17, 8) + counted_second_moment(17, 24));
  // Behind the last layer's attention, of what heads read.
  EXPECT_DOUBLE_EQ(flops_of(curvature_a_ops(ops, 1, 0, work)), counted_second_moment(17, 8));
  EXPECT_DOUBLE_EQ(flops_of(curvature_a_ops(ops, 1, 3, work)), counted_second_moment(4, 8));
  EXPECT_DOUBLE_EQ(flops_of(curvature_b_ops(ops, 1, 4, work)), counted_second_moment(4, 24));
}

TEST(CurvatureOps, OfTheCpuMakeTheMlpsOutputAgain) {
  const describe::ModelDescription model = two_layers();
  const ActionOps ops(model, Device::Cpu, schedule::Recomputation::None);
  const ComputedWork work = computed_work(kWork, model, Device::Cpu);
  const std::vector<Op> found = curvature_a_ops(ops, 0, 5, work);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, OpKind::Activation);
  EXPECT_EQ(found[0].rows, 20);
  EXPECT_EQ(found[0].in, 24);
  EXPECT_EQ(curvature_b_ops(ops, 0, 5, work).size(), 1U);
  const ComputedWork empty = computed_work({}, model, Device::Cpu);
  EXPECT_TRUE(curvature_a_ops(ops, 0, 0, empty).empty());
  EXPECT_TRUE(curvature_b_ops(ops, 0, 0, empty).empty());
}

TEST(InversionOps, HaveTheFlopsOfASweep) {
  // Each pivot changes the lower half of the matrix.
  constexpr std::int64_t kN = 256;
  double counted = 0;
  for (std::int64_t pivot = 0; pivot < kN; ++pivot) {
    for (std::int64_t i = 0; i < kN; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) counted += 2;
    }
  }
  const std::vector<FactorShape> shapes = {{kN, kN}};
  EXPECT_NEAR(flops_of(inversion_ops(shapes, Device::Cpu)) / (2 * counted), 1, 2.0 / kN);
}

TEST(InversionOps, OfAGpuInvertAllOfASizeAtOnce) {
  const std::vector<FactorShape> shapes = {{8, 8}, {8, 24}, {24, 8}};
  const std::vector<Op> cpu = inversion_ops(shapes, Device::Cpu);
  const std::vector<Op> gpu = inversion_ops(shapes, Device::Cuda);
  EXPECT_DOUBLE_EQ(flops_of(cpu), flops_of(gpu));
  EXPECT_DOUBLE_EQ(bytes_of(cpu), bytes_of(gpu));
  EXPECT_EQ(cpu[1].rows, 1);
  EXPECT_EQ(cpu[1].count, 4);
  EXPECT_EQ(gpu[1].rows, 4);
  EXPECT_EQ(gpu[1].count, 1);
  EXPECT_DOUBLE_EQ(flops_of(gpu), 4 * 8 * 8 * 8 + 2 * 24 * 24 * 24);
  // Read and written by the inversion, half of each read and written before, two exchanged behind.
  EXPECT_DOUBLE_EQ(bytes_of(gpu), (4 * 8 * 8 + 2 * 24 * 24) * 4 * (2 + 1 + 4));
}

TEST(PreconditionOps, HaveTheFlopsOfTwoProducts) {
  const std::vector<FactorShape> shapes = {{8, 8}, {8, 24}, {8, 8}};
  double counted = 0;
  for (const FactorShape& shape : shapes) {
    const std::int64_t D = shape.in_width;
    const std::int64_t E = shape.out_width;
    for (std::int64_t i = 0; i < E; ++i) {
      for (std::int64_t j = 0; j < D; ++j) {
        for (std::int64_t k = 0; k < D; ++k) counted += 2;  // G A^-1
        for (std::int64_t k = 0; k < E; ++k) counted += 2;  // B^-1 G
      }
    }
  }
  EXPECT_DOUBLE_EQ(flops_of(kfac_precondition_ops(shapes)), counted);
  EXPECT_EQ(kfac_precondition_ops(shapes).size(), 2U);
}

TEST(SoapOps, LeaveOutSidesAboveTheLimit) {
  const std::vector<FactorShape> both = {{768, 512}};
  EXPECT_DOUBLE_EQ(flops_of(soap_factor_ops(both, 1024)), 2.0 * 768 * 512 * (768 + 512));
  EXPECT_DOUBLE_EQ(flops_of(soap_direction_ops(both, 1024)), 3 * 2.0 * 768 * 512 * (768 + 512));
  const std::vector<FactorShape> one = {{768, 3072}};
  EXPECT_DOUBLE_EQ(flops_of(soap_factor_ops(one, 1024)), 2.0 * 768 * 768 * 3072);
  EXPECT_DOUBLE_EQ(flops_of(soap_direction_ops(one, 1024)), 3 * 2.0 * 768 * 768 * 3072);
  EXPECT_DOUBLE_EQ(flops_of(soap_basis_ops(one, 1024)), (2.0 + 4) * 768 * 768 * 768);
  EXPECT_DOUBLE_EQ(flops_of(soap_factor_ops(both, 600)), 2.0 * 768 * 512 * 512);
}

TEST(SoapOps, OrthonormaliseTakesEachRowsPartsAwayTwice) {
  constexpr std::int64_t kN = 256;
  double counted = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (std::int64_t row = 0; row < kN; ++row) {
      counted += 2 * kN + kN;  // its length, by which it is divided
      for (std::int64_t before = 0; before < row; ++before) counted += 2 * kN + 2 * kN;
    }
  }
  EXPECT_NEAR(make_op(OpKind::Orthonormalise, 1, kN, 1, 4).flops / counted, 1, 1.0 / kN);
  EXPECT_EQ(make_op(OpKind::Orthonormalise, 3, kN, 1, 4).flops,
            3 * make_op(OpKind::Orthonormalise, 1, kN, 1, 4).flops);
}

TEST(SoapOps, MoveWhatStepsReadAndWrite) {
  constexpr double kRows = 24;
  constexpr double kColumns = 8;
  constexpr double kAll = kRows * kColumns;
  const std::vector<FactorShape> shapes = {{8, 24}};
  const auto product = [](double m, double n, double k) { return 4 * (m * n + m * k + n * k); };
  // The gradient is scaled to a place of its own; of each side, the product, and the average over it.
  EXPECT_DOUBLE_EQ(bytes_of(soap_factor_ops(shapes, 1024)), 8 * kAll + product(kRows, kRows, kColumns) +
                                                                product(kColumns, kColumns, kRows) +
                                                                12 * (kRows * kRows + kColumns * kColumns));
  double basis = 0;
  for (const double N : {kRows, kColumns})
    basis += product(N, N, N) + 12 * N * N + 8 * N * N + 8 * N * N;  // the shift, the rows, the copy
  EXPECT_DOUBLE_EQ(bytes_of(soap_basis_ops(shapes, 1024)), basis);
  // Scaled gradient; first moment; the direction of two rotated matrices and the second moment.
  EXPECT_DOUBLE_EQ(
      bytes_of(soap_direction_ops(shapes, 1024)),
      (8 + 12 + 20) * kAll + 3 * (product(kRows, kColumns, kRows) + product(kRows, kColumns, kColumns)));
}

TEST(MuonOps, HaveTheFlopsOfFiveIterations) {
  const std::vector<FactorShape> shapes = {{24, 8}, {8, 24}};
  double counted = 0;
  for (int iteration = 0; iteration < 5; ++iteration) {
    for (int i = 0; i < 8; ++i) {
      counted += 2 * 8 * 24;  // row i of X X^T
      counted += 2 * 8 * 8;   // of A A
      counted += 2 * 24 * 8;  // of (a I + b A + c A A) X
    }
  }
  EXPECT_DOUBLE_EQ(flops_of(muon_direction_ops(shapes, 4)), 2 * counted);
}

TEST(MuonOps, MoveMomentsIteratesAndPolynomials) {
  const std::vector<FactorShape> shapes = {{24, 8}};
  double counted = 4 * 24 * 8 * (1 + 2 + 1) + 4 * 24 * 8 * 2;  // gradient, moment, iterate; its length
  for (int iteration = 0; iteration < 5; ++iteration) {
    counted += 4 * (24 * 8 + 24 * 8 + 8 * 8);  // X, X and A
    counted += 4 * 3 * 8 * 8;                  // A, A and A A
    counted += 4 * 3 * 8 * 8;                  // A is added to it
    counted += 4 * (8 * 8 + 2 * 24 * 8);       // the polynomial, X and what comes of it
  }
  EXPECT_DOUBLE_EQ(bytes_of(muon_direction_ops(shapes, 4)), counted);
}

TEST(MatrixUpdateOps, AreThoseOfItsPartsWithAShareOfRefreshes) {
  const std::vector<FactorShape> shapes = {{24, 8}, {8, 8}};
  const double elements = 24 * 8 + 8 * 8;
  EXPECT_DOUBLE_EQ(bytes_of(matrix_weight_ops(shapes, 4)), 12 * elements);
  EXPECT_DOUBLE_EQ(bytes_of(matrix_weight_ops(shapes, 2)), 14 * elements);
  EXPECT_DOUBLE_EQ(bytes_of(others_moment_ops(schedule::Preconditioner::Muon, shapes)), 16 * elements);
  EXPECT_DOUBLE_EQ(bytes_of(others_moment_ops(schedule::Preconditioner::Shampoo, shapes)), 20 * elements);
  const MatrixWork muon{.kind = schedule::Preconditioner::Muon, .every = 7};
  EXPECT_DOUBLE_EQ(flops_of(whole_matrix_update_ops(muon, shapes, 4)),
                   flops_of(muon_direction_ops(shapes, 4)));
  const MatrixWork soap{.kind = schedule::Preconditioner::Shampoo, .every = 4};
  EXPECT_DOUBLE_EQ(flops_of(whole_matrix_update_ops(soap, shapes, 4)),
                   flops_of(soap_factor_ops(shapes, 1024)) + flops_of(soap_basis_ops(shapes, 1024)) / 4 +
                       flops_of(soap_direction_ops(shapes, 1024)));
}

TEST(UpdateOp, MovesGradientMomentsAndWeights) {
  // Gradient, weight and two moments in; weight and moments out.
  EXPECT_EQ(update_op(OpKind::AdamW, UpdatePart::All, 1000, 4).bytes, 1000 * 4 * (4 + 3));
  // And the weight as products read it.
  EXPECT_EQ(update_op(OpKind::AdamW, UpdatePart::All, 1000, 2).bytes, 1000 * (4 * (4 + 3) + 2));
  // Gradient, weight and moments in, moments out; weight and moments in, weight out.
  const auto lamb = [](UpdatePart part) { return update_op(OpKind::Lamb, part, 1000, 2).bytes; };
  EXPECT_EQ(lamb(UpdatePart::Moments), 1000 * 4 * (4 + 2));
  EXPECT_EQ(lamb(UpdatePart::Weights), 1000 * (4 * (3 + 1) + 2));
  EXPECT_EQ(lamb(UpdatePart::All), lamb(UpdatePart::Moments) + lamb(UpdatePart::Weights));
  EXPECT_THROW(update_op(OpKind::AdamW, UpdatePart::Moments, 1, 4), base::InternalError);
}

}  // namespace
}  // namespace plenum::plan
