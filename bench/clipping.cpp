// Trains a BERT as so many ranks would that clip their gradients before they are summed, as published, or the
// sum, as Plenum does. Prints a line of JSON: the losses of all steps, the share of steps that were clipped
// (before: of the ranks' gradients), and the loss on held-out text. One rank works as all of them, one behind
// the other, so what differs between numbers of ranks is clipping and rounding.
//   build/bench/bench_clipping --data DIR --clip before|after --ranks 4
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/small_training.h"

namespace plenum {
namespace {

struct Options {
  bench::SmallTrainingOptions training;
  double clip_norm = 1;
  bool clips_before = false;
};

/// Clips what each rank adds to the gradient by the norm that its own gradient would have, which is that of
/// the mean over its losses alone; shares of ranks are taken to be of one size.
class ClippingProgram final : public pipeline::StageProgram {
 public:
  ClippingProgram(pipeline::BertProgram& program, std::size_t num_ranks, std::size_t micro_batches_per_rank,
                  double clip_norm)
      : program_(program),
        num_ranks_(static_cast<double>(num_ranks)),
        micro_batches_per_rank_(micro_batches_per_rank),
        clip_norm_(clip_norm) {}

  std::size_t num_gradients() const { return num_gradients_; }
  std::size_t num_clipped() const { return num_clipped_; }

  void forward(const pipeline::ActionRun& run) override { program_.forward(run); }
  void backward(const pipeline::ActionRun& run) override {
    program_.backward(run);
    const std::size_t num_done = run.action.micro_batch.value + 1;
    if (num_done % micro_batches_per_rank_ == 0) clip(num_done == micro_batches_per_rank_);
  }
  void square_gradient(const pipeline::ActionRun& run) override { program_.square_gradient(run); }
  void update(const pipeline::ActionRun& run) override { program_.update(run); }
  comm::Elements to_reduce(const pipeline::ActionRun& run) override { return program_.to_reduce(run); }
  void communicated(const pipeline::ActionRun& run) override { program_.communicated(run); }

 private:
  /// What was added to the gradient since the last rank's share.
  void clip(bool is_first) {
    const std::span<float> gradient = program_.buffers().gradients_N.span<float>();
    if (is_first) before_.assign(gradient.size(), 0);
    double squares = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double added = double{gradient[i]} - double{before_[i]};
      squares += added * added;
    }
    const double norm = num_ranks_ * std::sqrt(squares);
    ++num_gradients_;
    if (norm > clip_norm_) {
      ++num_clipped_;
      const auto scale = static_cast<float>(clip_norm_ / norm);
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = before_[i] + scale * (gradient[i] - before_[i]);
    }
    std::ranges::copy(gradient, before_.begin());
  }

  pipeline::BertProgram& program_;
  const double num_ranks_;
  const std::size_t micro_batches_per_rank_;
  const double clip_norm_;
  std::vector<float> before_;
  std::size_t num_gradients_ = 0;
  std::size_t num_clipped_ = 0;
};

void train_and_report(const Options& options) {
  bench::SmallTrainingOptions small = options.training;
  small.clip_norm = options.clips_before ? 0 : options.clip_norm;
  bench::SmallTraining training(small);
  ClippingProgram clipping(training.program(), small.ranks, training.micro_batches_per_rank(),
                           options.clip_norm);
  pipeline::StageProgram& actions =
      options.clips_before ? static_cast<pipeline::StageProgram&>(clipping) : training.program();
  std::vector<double> losses;
  std::size_t num_clipped = 0;
  nlohmann::json line;
  training.run(
      actions, [&](std::uint64_t step) { return training.batch_of(step); },
      [&](const pipeline::StepOutcome& outcome) {
        losses.push_back(outcome.loss());
        num_clipped += outcome.gradient_norm > options.clip_norm ? 1 : 0;
      },
      [&](nlohmann::json evaluated) { line = std::move(evaluated); });
  const double num_steps = static_cast<double>(losses.size());
  line["clip"] = options.clips_before ? "before" : "after";
  line["ranks"] = small.ranks;
  line["clipped"] = options.clips_before ? static_cast<double>(clipping.num_clipped()) /
                                               static_cast<double>(clipping.num_gradients())
                                         : static_cast<double>(num_clipped) / num_steps;
  line["losses"] = losses;
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::Options options;
  std::string clip = "before";
  CLI::App app("Trains with gradients clipped before or after ranks sum them");
  add_options(app, options.training);
  app.add_option("--clip", clip)->check(CLI::IsMember({"before", "after"}));
  app.add_option("--clip-norm", options.clip_norm);
  app.add_option("--ranks", options.training.ranks);
  CLI11_PARSE(app, argc, argv);
  options.clips_before = clip == "before";
  options.training.evaluations = 1;
  try {
    plenum::train_and_report(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_clipping: {}\n", error.what());
    return 2;
  }
  return 0;
}
