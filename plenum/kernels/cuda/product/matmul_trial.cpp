#include "plenum/kernels/cuda/product/matmul_trial.h"

#include <algorithm>
#include <array>

#include "plenum/kernels/cuda/rows/checksum.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_memory.h"

namespace plenum::kernels::cuda {
namespace {

using Algorithm = cublasLtMatmulAlgo_t;

constexpr std::size_t kRounds = 7;
/// By how much a later candidate must be faster: less is noise, and the choice should not follow it.
constexpr float kLeastGain = 0.01F;
/// Elements of bf16 that must be alike before an algorithm is trusted. Another order of summation shows only
/// where it turns a rounding, in one element of 4,000 (4,096 terms) to 30,000 (128 terms): a few thousand are
/// alike by chance, and with other numbers they are not.
constexpr std::int64_t kLeastCompared = std::int64_t{1} << 19;
/// Smaller products are not tuned. Algorithms that sum few terms alike may differ for another size of the
/// same kind, and which of several nearly equal times is the shortest changes from run to run: so would the
/// bytes.
constexpr std::int64_t kLeastMultiplications = std::int64_t{1} << 28;
constexpr std::size_t kMaxCandidates = kMatmulTrialBytes / sizeof(std::uint64_t);

/// Points of a queue, and the times between them.
class Milestones {
 public:
  explicit Milestones(std::size_t count) : events_(count) {
    for (cudaEvent_t& event : events_) tensor::check_cuda(cudaEventCreate(&event), "make an event");
  }
  ~Milestones() {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Milestones(const Milestones&) = delete;
  Milestones& operator=(const Milestones&) = delete;

  void pass(std::size_t index, const tensor::CudaStream& queue) {
    tensor::check_cuda(cudaEventRecord(events_[index], queue.handle()), "measure");
  }
  /// From the one before.
  float ms_until(std::size_t index) const {
    float ms = 0;
    tensor::check_cuda(cudaEventElapsedTime(&ms, events_[index - 1], events_[index]), "measure");
    return ms;
  }

 private:
  std::vector<cudaEvent_t> events_;
};

/// The product with another bias: at first a model's are zero, and an algorithm that forgets them would not
/// be noticed. The factor B has at least n elements.
Matmul with_bias_of_weights(Matmul args) {
  if (args.bias != nullptr) args.bias = args.b.data;
  return args;
}

std::size_t result_bytes(const Matmul& args) {
  return static_cast<std::size_t>(args.m * args.c_stride) * size_of(args.c_dtype);
}

}  // namespace

MatmulTrial::MatmulTrial(const tensor::CudaStream& queue, cublasLtHandle_t library, const Matmul& args,
                         std::span<std::byte> workspace, std::span<std::byte> room)
    : queue_(queue),
      library_(library),
      args_(with_bias_of_weights(args)),
      product_(args_),
      workspace_(workspace),
      room_(room) {
  if (args.accumulate == Accumulate::No) {
    result_ = args.c;
  } else if (result_bytes(args) <= room.size() - kMatmulTrialBytes) {
    result_ = room.data() + kMatmulTrialBytes;
  }
}

bool MatmulTrial::is_possible() const {
  const bool tells_orders = args_.c_dtype == tensor::DType::Float32 || args_.m * args_.n >= kLeastCompared;
  const bool is_worth_it = args_.m * args_.n * args_.k >= kLeastMultiplications;
  return result_ != nullptr && tells_orders && is_worth_it && args_.num_products == 1;
}

bool MatmulTrial::run(const Algorithm& algorithm) const {
  return product_.run(library_, algorithm, result_, workspace_, queue_.handle());
}

void MatmulTrial::add_checksum_of_result(std::uint64_t* sum) const {
  add_checksum(queue_, result_, args_.m, static_cast<std::size_t>(args_.n) * size_of(args_.c_dtype),
               static_cast<std::size_t>(args_.c_stride) * size_of(args_.c_dtype), sum);
}

std::vector<Algorithm> MatmulTrial::alike(std::span<const Algorithm> candidates) const {
  auto* const sums = reinterpret_cast<std::uint64_t*>(room_.data());
  tensor::zero_cuda(queue_, sums, kMatmulTrialBytes);
  std::vector<Algorithm> able;
  for (const Algorithm& candidate : candidates.first(std::min(candidates.size(), kMaxCandidates))) {
    if (args_.accumulate == Accumulate::Yes) tensor::zero_cuda(queue_, result_, result_bytes(args_));
    if (!run(candidate)) continue;
    add_checksum_of_result(sums + able.size());
    able.push_back(candidate);
  }
  std::array<std::uint64_t, kMaxCandidates> found{};
  tensor::copy_cuda(queue_, sums, found.data(), kMatmulTrialBytes);
  queue_.wait();
  std::vector<Algorithm> result;
  for (std::size_t i = 0; i < able.size(); ++i) {
    if (found[i] == found[0]) result.push_back(able[i]);
  }
  return result;
}

std::optional<Algorithm> MatmulTrial::fastest(std::span<const Algorithm> candidates) const {
  const std::vector<Algorithm> equals = alike(candidates);
  if (equals.empty()) return std::nullopt;
  // In turn, without a pause: the clock of a GPU that works hard falls, for all of them alike.
  Milestones milestones(1 + kRounds * equals.size());
  std::size_t last = 0;
  milestones.pass(last, queue_);
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (const Algorithm& candidate : equals) {
      run(candidate);
      milestones.pass(++last, queue_);
    }
  }
  queue_.wait();
  std::size_t best = 0;
  float best_ms = 0;
  for (std::size_t i = 0; i < equals.size(); ++i) {
    std::array<float, kRounds> ms{};
    for (std::size_t round = 0; round < kRounds; ++round) {
      ms[round] = milestones.ms_until(1 + round * equals.size() + i);
    }
    std::ranges::nth_element(ms, ms.begin() + kRounds / 2);
    if (i > 0 && ms[kRounds / 2] > best_ms * (1 - kLeastGain)) continue;
    best = i;
    best_ms = ms[kRounds / 2];
  }
  return equals[best];
}

}  // namespace plenum::kernels::cuda
