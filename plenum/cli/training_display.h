#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/cli/exit_codes.h"
#include "plenum/cli/status_line.h"
#include "plenum/train/training_observer.h"

namespace plenum::cli {

/// Where training stands, as its line shows it.
struct TrainingStatus {
  std::uint64_t step = 0;
  std::uint64_t num_steps = 0;
  std::optional<double> loss;  ///< none where nothing had a label
  double learning_rate = 0;
  double tokens_per_second = 0;    ///< real ones
  double flops_per_second = 0;     ///< useful ones
  double product_rate = 0;         ///< FLOP/s of the device's matrix products; 0 if not known
  std::uint64_t memory_bytes = 0;  ///< of the device, taken
  double seconds_left = 0;
};

/// "step 120/1,000  [==        ]  12 %  loss 6.123  3 min 12 s left  12,345 tokens/s  45.1 GFLOP/s (62 %) 312
/// MB", in at most `width` columns: what does not fit is left out as a whole, from the end, the bar before
/// the share and the share before loss and time.
std::string draw_training(const TrainingStatus& status, int width, bool color);

/// The same for a file that is read later: all of it, without a bar, with the learning rate.
std::string log_training(const TrainingStatus& status);

/// What a run is computed on, in a line: its threads or its GPU, the memory planned, the rate of matrix
/// products if it is known.
std::string describe_device(const train::RunSummary& summary);

/// What holds for a run, in a few lines without the last line's end: model, steps, learning rate, device,
/// checkpoints.
std::string describe_run(const train::RunSummary& summary);

/// Ends the process for what hangs, as TrainingObserver::on_hang() says.
using EndProcess = std::function<void(std::string_view what)>;

/// Shows training on a stream: a status line, and a line for each thing worth keeping. Where the stream is no
/// terminal, lines begin with the date and the time.
class TrainingDisplay final : public train::TrainingObserver {
 public:
  /// Borrows `stream`.
  explicit TrainingDisplay(std::FILE* stream, EndProcess end_process = end_hanging_process)
      : line_(stream), end_process_(std::move(end_process)) {}

  void on_begin(const train::RunSummary& summary) override;
  void on_step(const train::StepReport& report) override;
  void on_evaluation(std::uint64_t step, const train::Evaluation& evaluation) override;
  void on_checkpoint(std::uint64_t step, const std::string& path) override;
  /// Shown when the run begins: a run that is refused has only the one line that says why.
  void on_choice(std::string_view line) override { choices_.emplace_back(line); }
  void on_table(std::string_view text) override { line_.note(text); }
  void on_note(std::string_view line) override { note(line); }
  void on_hang(std::string_view line) override;

  void erase() { line_.erase(); }

 private:
  void note(std::string_view line);

  StatusLine line_;
  EndProcess end_process_;
  TrainingStatus status_;
  std::uint64_t steps_per_epoch_ = 0;
  std::vector<std::string> choices_;
  train::DeviceMemory memory_{tensor::Device::Cpu};
  // Of the steps since the last line.
  double seconds_ = 0;
  double tokens_ = 0;
  double flops_ = 0;
  double all_seconds_ = 0;  ///< of all steps of this process
  double all_steps_ = 0;
};

/// What --quiet shows on a stream: nothing but notes, which tell of what did not go as it should.
class SilentDisplay final : public train::TrainingObserver {
 public:
  /// As those of a TrainingDisplay.
  SilentDisplay(std::FILE* stream, EndProcess end_process)
      : stream_(stream), end_process_(std::move(end_process)) {}

  void on_begin(const train::RunSummary&) override {}
  void on_step(const train::StepReport&) override {}
  void on_evaluation(std::uint64_t, const train::Evaluation&) override {}
  void on_checkpoint(std::uint64_t, const std::string&) override {}
  void on_choice(std::string_view) override {}
  void on_table(std::string_view) override {}
  void on_note(std::string_view line) override;
  void on_hang(std::string_view line) override;

 private:
  std::FILE* stream_;
  EndProcess end_process_;
};

}  // namespace plenum::cli
