#include "plenum/kernels/cuda/matmul_tuner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include <fmt/format.h>

#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_device.h"

namespace plenum::kernels::cuda {
namespace {

/// cuBLASLt's order is good: what is behind these was never the fastest (docs/decisions/cuda.md).
constexpr int kCandidates = 16;
constexpr std::size_t kRepeats = 5;
/// By how much a later candidate must be faster: what is less is noise, and the choice should not follow it.
constexpr float kLeastGain = 0.01F;
constexpr const char* kNoAlgorithm = "none";

using Words = std::array<std::uint64_t, 8>;
static_assert(sizeof(Words) == sizeof(cublasLtMatmulAlgo_t));

std::string to_text(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : std::bit_cast<Words>(algorithm)) text += fmt::format("{:016x}", word);
  return text;
}

std::optional<cublasLtMatmulAlgo_t> to_algorithm(const std::string& text) {
  constexpr std::size_t kDigits = 16;
  if (text == kNoAlgorithm) return std::nullopt;
  Words words{};
  bool is_right = text.size() == words.size() * kDigits;
  for (std::size_t i = 0; is_right && i < words.size(); ++i) {
    const char* const begin = text.data() + i * kDigits;
    is_right = std::from_chars(begin, begin + kDigits, words[i], 16).ptr == begin + kDigits;
  }
  base::require(is_right, "not an algorithm of cuBLASLt: \"{}\"", text);
  return std::bit_cast<cublasLtMatmulAlgo_t>(words);
}

/// The time between two points of a queue.
class Stopwatch {
 public:
  Stopwatch() {
    for (cudaEvent_t& event : events_) tensor::check_cuda(cudaEventCreate(&event), "make an event");
  }
  ~Stopwatch() {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start(cudaStream_t queue) { tensor::check_cuda(cudaEventRecord(events_[0], queue), "measure"); }
  float stop_ms(cudaStream_t queue) {
    tensor::check_cuda(cudaEventRecord(events_[1], queue), "measure");
    tensor::check_cuda(cudaEventSynchronize(events_[1]), "measure");
    float ms = 0;
    tensor::check_cuda(cudaEventElapsedTime(&ms, events_[0], events_[1]), "measure");
    return ms;
  }

 private:
  std::array<cudaEvent_t, 2> events_{};
};

bool is_captured(cudaStream_t queue) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  tensor::check_cuda(cudaStreamIsCapturing(queue, &status), "ask whether a stream is captured");
  return status != cudaStreamCaptureStatusNone;
}

std::span<std::byte> workspace_of(const tensor::Stream& stream) {
  return stream.scratch().first(MatmulTuner::kWorkspaceBytes);
}

/// Where a product may write while it is measured: where it writes anyway, unless it adds to what lies there.
/// Then scratch, if that has the room, else nowhere.
void* trial_result(const tensor::Stream& stream, const Matmul& args, const LtMatmul& product) {
  if (args.accumulate == Accumulate::No) return product.result();
  const std::span<std::byte> room = stream.scratch().subspan(MatmulTuner::kWorkspaceBytes);
  const std::size_t bytes = static_cast<std::size_t>(args.m * args.c_stride) * size_of(args.c_dtype);
  return bytes <= room.size() ? room.data() : nullptr;
}

}  // namespace

MatmulTuner::MatmulTuner() {
  check_lt(cublasLtCreate(&library_), "start");
  measured_with_ = fmt::format("cuBLASLt {} on {}", cublasLtGetVersion(), tensor::cuda_device_info().name);
}

MatmulTuner::~MatmulTuner() {
  cublasLtDestroy(library_);
}

bool MatmulTuner::run(const tensor::Stream& stream, const Matmul& args) {
  const LtMatmul product(args);
  const std::string kind = product.kind();
  auto choice = choices_.find(kind);
  if (choice == choices_.end()) choice = choices_.emplace(kind, choose(stream, args, product)).first;
  if (!choice->second) return false;
  cudaStream_t const queue = stream.cuda().handle();
  if (product.run(library_, *choice->second, product.result(), workspace_of(stream), queue)) return true;
  // The choice was made for other sizes of this kind and does not suit these.
  const auto first = product.candidates(library_, kWorkspaceBytes, 1);
  return !first.empty() && product.run(library_, first[0], product.result(), workspace_of(stream), queue);
}

MatmulTuner::Choice MatmulTuner::choose(const tensor::Stream& stream, const Matmul& args,
                                        const LtMatmul& product) {
  const auto candidates = product.candidates(library_, kWorkspaceBytes, kCandidates);
  if (candidates.empty()) return std::nullopt;
  void* const result = trial_result(stream, args, product);
  if (result == nullptr || is_captured(stream.cuda().handle())) return candidates[0];
  return fastest(stream, product, result, candidates);
}

MatmulTuner::Choice MatmulTuner::fastest(const tensor::Stream& stream, const LtMatmul& product, void* result,
                                         std::span<const cublasLtMatmulAlgo_t> candidates) {
  cudaStream_t const queue = stream.cuda().handle();
  const std::span<std::byte> workspace = workspace_of(stream);
  Stopwatch watch;
  Choice best;
  float best_ms = 0;
  for (const cublasLtMatmulAlgo_t& candidate : candidates) {
    // The first time loads the kernel.
    if (!product.run(library_, candidate, result, workspace, queue)) continue;
    std::array<float, kRepeats> ms{};
    for (float& one : ms) {
      watch.start(queue);
      product.run(library_, candidate, result, workspace, queue);
      one = watch.stop_ms(queue);
    }
    std::ranges::sort(ms);
    const float median_ms = ms[kRepeats / 2];
    if (best && median_ms > best_ms * (1 - kLeastGain)) continue;
    best = candidate;
    best_ms = median_ms;
  }
  return best;
}

MatmulChoices MatmulTuner::choices() const {
  MatmulChoices all{.measured_with = measured_with_, .algorithms = {}};
  for (const auto& [kind, choice] : choices_) all.algorithms[kind] = choice ? to_text(*choice) : kNoAlgorithm;
  return all;
}

bool MatmulTuner::use(const MatmulChoices& choices) {
  if (choices.measured_with != measured_with_) return false;
  for (const auto& [kind, text] : choices.algorithms) choices_[kind] = to_algorithm(text);
  return true;
}

}  // namespace plenum::kernels::cuda
