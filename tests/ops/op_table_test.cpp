#include "tests/ops/table/op_table.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "plenum/tensor/cuda_device.h"
#include "plenum/tensor/cuda_partition.h"

namespace plenum::ops {
namespace {

/// An op on one of its devices.
struct OpOnDevice {
  const OpDescriptor* op;
  tensor::Device device;
};

std::vector<OpOnDevice> all_ops() {
  std::vector<OpOnDevice> all;
  for (const OpDescriptor& op : op_table()) {
    for (const tensor::Device device : op.devices) all.push_back({&op, device});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<OpOnDevice>& info) {
  return info.param.op->name + (info.param.device == tensor::Device::Cpu ? "_cpu" : "_cuda");
}

class EveryOp : public testing::TestWithParam<OpOnDevice> {
 protected:
  void SetUp() override {
    if (device() != tensor::Device::Cuda) return;
    if (const auto obstacle = tensor::cuda_obstacle()) GTEST_SKIP() << *obstacle;
  }
  static const OpDescriptor& op() { return *GetParam().op; }
  static tensor::Device device() { return GetParam().device; }
  static std::vector<OpShape> shapes() { return op().shapes(device()); }
};
INSTANTIATE_TEST_SUITE_P(OpTable, EveryOp, testing::ValuesIn(all_ops()), name_of);

/// A case after all its calls, and the bytes of what they wrote.
struct OpRun {
  std::unique_ptr<OpCase> op_case;
  std::vector<std::vector<std::byte>> written;
};

OpRun run(const OpShape& shape, const OpContext& context) {
  std::unique_ptr<OpCase> op_case = shape.make(context.stream().device());
  Arguments arguments(context);
  for (const OpCall& call : op_case->calls(arguments)) {
    call.run(context.stream());
    arguments.fetch();
    op_case->note(call.function);
  }
  return {std::move(op_case), arguments.written()};
}

OpContext context_of(const OpShape& shape, tensor::Device device,
                     std::shared_ptr<const tensor::CudaPartition> part = nullptr) {
  return OpContext(device, std::max<std::size_t>(shape.make(device)->scratch_bytes(), 1), std::move(part));
}

void expect_close(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance,
                  const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size()) << where;
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  const double allowed = tolerance * largest + double{std::numeric_limits<float>::min()};
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), allowed)
        << where << ": element " << i << " of " << actual.size() << " is " << actual[i] << " instead of "
        << expected[i];
    ASSERT_TRUE(std::isfinite(actual[i])) << where << ": element " << i;
  }
}

void expect_oracle(const OpShape& shape, const OpContext& context) {
  const OpRun done = run(shape, context);
  for (const OpResult& result : done.op_case->results()) {
    expect_close(result.actual, result.expected, result.tolerance, shape.name + " " + result.name);
  }
}

TEST_P(EveryOp, AgreesWithItsOracle) {
  for (const OpShape& shape : shapes()) expect_oracle(shape, context_of(shape, device()));
}

// Kernels that a library made for a whole GPU may fail to start there, large ones above all.
TEST_P(EveryOp, RunsInAPartOfTheGpu) {
  if (device() != tensor::Device::Cuda) GTEST_SKIP() << "the CPU has no parts";
  const auto part = tensor::CudaPartition::split(4).front();
  for (const OpShape& shape : shapes()) expect_oracle(shape, context_of(shape, device(), part));
  EXPECT_NO_THROW(run(op().typical, context_of(op().typical, device(), part)));
}

// What is added to is not zero at first, and what is overwritten not a number.
TEST_P(EveryOp, HasTheGradientsOfItsOracle) {
  for (const OpShape& shape : shapes()) {
    if (!shape.has_differences) continue;
    const OpRun done = run(shape, context_of(shape, device()));
    for (const OpGradient& gradient : done.op_case->gradients()) {
      std::vector<double> expected = numeric_gradient(gradient.point, gradient.loss);
      if (!gradient.before.empty()) expected = plus(std::move(expected), gradient.before);
      expect_close(gradient.actual, expected, gradient.tolerance, shape.name + " " + gradient.name);
    }
  }
}

TEST_P(EveryOp, GivesTheSameBytesTwice) {
  for (const OpShape& shape : shapes()) {
    const OpContext context = context_of(shape, device());
    EXPECT_TRUE(run(shape, context).written == run(shape, context).written) << shape.name;
  }
}

TEST_P(EveryOp, GivesTheSameBytesOnThreeThreads) {
  if (device() != tensor::Device::Cpu) GTEST_SKIP() << "the GPU has no threads of the host";
  for (const OpShape& shape : shapes()) {
    const std::size_t scratch_bytes = std::max<std::size_t>(shape.make(device())->scratch_bytes(), 1);
    EXPECT_TRUE(run(shape, OpContext(std::size_t{1}, scratch_bytes)).written ==
                run(shape, OpContext(std::size_t{3}, scratch_bytes)).written)
        << shape.name;
  }
}

TEST_P(EveryOp, CallsTheFunctionsThatItNames) {
  const OpShape shape = shapes().front();
  const std::unique_ptr<OpCase> op_case = shape.make(device());
  const OpContext context = context_of(shape, device());
  Arguments arguments(context);
  std::vector<std::string> functions;
  for (const OpCall& call : op_case->calls(arguments)) functions.push_back(call.function);
  EXPECT_EQ(functions, op().functions);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// What makes a few numbers of others, without tensors to go over, has tests by hand: optimizer_step_test.cpp.
const std::set<std::string> kOfSingleNumbers = {"add_gradient_squares", "decide_step"};

TEST(OpTable, HasEveryFunctionOfTheContractHeaders) {
  std::set<std::string> named;
  for (const OpDescriptor& op : op_table()) named.insert(op.functions.begin(), op.functions.end());
  const std::regex declaration("\nvoid (\\w+)\\(const tensor::Stream& stream");
  std::size_t num_found = 0;
  const std::filesystem::path folder = std::filesystem::path(PLENUM_SOURCE_DIR) / "plenum/kernels";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".h") continue;
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
      ++num_found;
      if (kOfSingleNumbers.contains((*it)[1])) continue;
      EXPECT_TRUE(named.contains((*it)[1])) << (*it)[1] << " of " << entry.path() << " is in no descriptor";
    }
  }
  EXPECT_GT(num_found, 20U);
}

TEST(OpTable, IsWhatTheDocumentSays) {
  const std::string document = text_of(std::filesystem::path(PLENUM_SOURCE_DIR) / "docs/ops.md");
  EXPECT_NE(document.find(support_table()), std::string::npos) << "docs/ops.md should have this table:\n"
                                                               << support_table();
}

}  // namespace
}  // namespace plenum::ops
