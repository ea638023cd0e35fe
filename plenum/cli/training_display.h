#pragma once

#include <cstdint>
#include <string>

#include "plenum/cli/status_line.h"
#include "plenum/train/training_observer.h"

namespace plenum::cli {

/// Where training stands, as its line shows it.
struct TrainingStatus {
  std::uint64_t step = 0;
  std::uint64_t num_steps = 0;
  double loss = 0;
  double tokens_per_second = 0;    ///< real ones
  double flops_per_second = 0;     ///< useful ones
  double product_rate = 0;         ///< FLOP/s of the device's matrix products; 0 if not known
  std::uint64_t memory_bytes = 0;  ///< of the device, taken
  double seconds_left = 0;
};

/// "step 120/1,000  loss 6.123  12,345 tokens/s  45.1 GFLOP/s (62 %)  312 MB  3 min 12 s left", cut to
/// `width` characters.
std::string draw_training(const TrainingStatus& status, int width);

/// What a run is computed on, in a line: its threads or its GPU, the memory planned, the rate of matrix
/// products if it is known.
std::string describe_device(const train::RunSummary& summary);

/// Shows training on a stream: a status line, and a line for each thing worth keeping.
class TrainingDisplay final : public train::TrainingObserver {
 public:
  /// Borrows `stream`.
  explicit TrainingDisplay(std::FILE* stream) : line_(stream) {}

  void on_begin(const train::RunSummary& summary) override;
  void on_step(const train::StepReport& report) override;
  void on_evaluation(std::uint64_t step, const train::Evaluation& evaluation) override;
  void on_checkpoint(std::uint64_t step, const std::string& path) override;
  void on_choice(std::string_view line) override { line_.note(line); }
  void on_note(std::string_view line) override { line_.note(line); }
  void on_hang(std::string_view line) override;

  void erase() { line_.erase(); }

 private:
  StatusLine line_;
  TrainingStatus status_;
  train::DeviceMemory memory_{tensor::Device::Cpu};
  // Of the steps since the last line.
  double seconds_ = 0;
  double tokens_ = 0;
  double flops_ = 0;
  double all_seconds_ = 0;  ///< of all steps of this process
  double all_steps_ = 0;
};

/// What --quiet shows: nothing but notes, which tell of what did not go as it should.
class SilentDisplay final : public train::TrainingObserver {
 public:
  void on_begin(const train::RunSummary&) override {}
  void on_step(const train::StepReport&) override {}
  void on_evaluation(std::uint64_t, const train::Evaluation&) override {}
  void on_checkpoint(std::uint64_t, const std::string&) override {}
  void on_choice(std::string_view) override {}
  void on_note(std::string_view line) override;
  void on_hang(std::string_view line) override;
};

}  // namespace plenum::cli
