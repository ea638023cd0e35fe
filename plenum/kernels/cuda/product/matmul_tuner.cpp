#include "plenum/kernels/cuda/product/matmul_tuner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include <fmt/format.h>

#include "plenum/kernels/cuda/product/matmul_trial.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_device.h"

namespace plenum::kernels::cuda {
namespace {

/// The library proposes 8 at most, where it was asked for 32.
constexpr int kCandidates = 16;
constexpr const char* kNoAlgorithm = "none";

using Words = std::array<std::uint64_t, 8>;
static_assert(sizeof(Words) == sizeof(cublasLtMatmulAlgo_t));

Words words_of(const cublasLtMatmulAlgo_t& algorithm) {
  return std::bit_cast<Words>(algorithm);
}

std::string to_text(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : words_of(algorithm)) text += fmt::format("{:016x}", word);
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

bool is_captured(cudaStream_t queue) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  tensor::check_cuda(cudaStreamIsCapturing(queue, &status), "ask whether a stream is captured");
  return status != cudaStreamCaptureStatusNone;
}

std::span<std::byte> workspace_of(const tensor::Stream& stream) {
  return stream.scratch().first(kMatmulWorkspaceBytes);
}

/// The library's candidates for the product, and those for the product alone: it knows some for that which
/// suit the epilogue too, and are faster, but does not propose them. Whether they are right is for the trial
/// to find out.
std::vector<cublasLtMatmulAlgo_t> all_candidates(cublasLtHandle_t library, const Matmul& args,
                                                 const LtMatmul& product) {
  std::vector<cublasLtMatmulAlgo_t> all = product.candidates(library, kMatmulWorkspaceBytes, kCandidates);
  if (all.empty() || args.bias == nullptr) return all;
  Matmul plain = args;
  plain.bias = nullptr;
  for (const cublasLtMatmulAlgo_t& more :
       LtMatmul(plain).candidates(library, kMatmulWorkspaceBytes, kCandidates)) {
    const auto is_same = [&](const cublasLtMatmulAlgo_t& one) { return words_of(one) == words_of(more); };
    const bool is_new = std::ranges::none_of(all, is_same);
    if (is_new && product.suits(library, more, kMatmulWorkspaceBytes)) all.push_back(more);
  }
  return all;
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
  if (product.run(library_, *choice->second, args.c, workspace_of(stream), queue)) return true;
  // The choice was made for other sizes of this kind and does not suit these.
  const auto first = product.candidates(library_, kMatmulWorkspaceBytes, 1);
  return !first.empty() && product.run(library_, first[0], args.c, workspace_of(stream), queue);
}

MatmulTuner::Choice MatmulTuner::choose(const tensor::Stream& stream, const Matmul& args,
                                        const LtMatmul& product) {
  const auto candidates = all_candidates(library_, args, product);
  if (candidates.empty()) return std::nullopt;
  const MatmulTrial trial(stream.cuda(), library_, args, workspace_of(stream),
                          stream.scratch().subspan(kMatmulWorkspaceBytes));
  if (!trial.is_possible() || is_captured(stream.cuda().handle())) return candidates[0];
  return trial.fastest(candidates);
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
