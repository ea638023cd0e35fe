#include "plenum/cli/training_summary.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/units.h"
#include "plenum/train/run_directory.h"

namespace plenum::cli {
namespace {

using train::TrainingResult;
using End = TrainingResult::End;

double tokens_per_second(const TrainingResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.tokens) / result.seconds : 0;
}

const char* end_name(End end) {
  if (end == End::Stopped) return "stopped";
  return end == End::NoBetter ? "no_better" : "finished";
}

nlohmann::ordered_json losses_of(const TrainingResult& result) {
  nlohmann::ordered_json losses = {{"train", nullptr}, {"held_out", nullptr}};
  if (result.loss) losses["train"] = *result.loss;
  if (!result.evaluation) return losses;
  losses["held_out"] = result.evaluation->loss();
  for (const train::ObjectiveResult& objective : result.evaluation->objectives) {
    losses[objective.objective.name + "_loss"] = objective.loss;
    if (result.evaluation->scores.empty())
      losses[objective.objective.name + "_accuracy"] = objective.accuracy;
  }
  return losses;
}

}  // namespace

std::string progress_text(const TrainingResult& result) {
  const std::string step = base::format_count(result.step);
  const std::string num_steps = base::format_count(result.num_steps);
  if (result.first_step >= result.num_steps)
    return fmt::format("nothing remains to be done: {} steps are trained, {} are asked for\n", step,
                       num_steps);
  std::string text = fmt::format(
      "{} {} of {} steps{}\n", result.end == End::Finished ? "trained" : "stopped after", step, num_steps,
      result.end == End::NoBetter ? ": the last evaluations found no better model" : "");
  if (result.step == result.first_step) return text;
  return text + fmt::format("time: {}{}, {} tokens, {} tokens/s\n",
                            base::format_seconds(std::max(1e-3, result.seconds)),
                            result.first_step > 0
                                ? fmt::format(" since step {}", base::format_count(result.first_step))
                                : "",
                            base::format_count(result.tokens),
                            base::format_count(static_cast<std::uint64_t>(tokens_per_second(result))));
}

std::string summary_text(const TrainingResult& result, const std::string& run) {
  std::string text = progress_text(result);
  if (result.evaluation) {
    text += fmt::format("held-out MLM loss {:.4f}, accuracy {:.2f} %, pseudo-perplexity {:.2f}\n",
                        result.evaluation->words().loss, 100 * result.evaluation->words().accuracy,
                        result.evaluation->pseudo_perplexity());
  }
  if (result.best_loss && result.best_step != result.step) {
    text += fmt::format("best held-out loss {:.4f}, at step {}\n", *result.best_loss,
                        base::format_count(result.best_step));
  }
  text += fmt::format("memory: {}\n", train::memory_text(result.memory, result.used_bytes));
  const train::RunPaths paths(run);
  text += fmt::format("checkpoint: {}\n", result.checkpoint);
  text +=
      fmt::format("metrics: {}, {}; TensorBoard: {}\n", paths.metrics, paths.evaluations, paths.tensorboard);
  if (result.end == End::Stopped) return text + fmt::format("next: plenum train --run {} resumes\n", run);
  return text + fmt::format(
                    "next: plenum export {0} --output DIR, or plenum fill-mask --model {0} \"some [MASK] "
                    "text\"\n",
                    run);
}

nlohmann::ordered_json summary_object(const TrainingResult& result, const std::string& run) {
  const train::RunPaths paths(run);
  nlohmann::ordered_json object = {{"run", run},
                                   {"end", end_name(result.end)},
                                   {"steps", result.step},
                                   {"num_steps", result.num_steps},
                                   {"first_step", result.first_step},
                                   {"losses", losses_of(result)},
                                   {"best", nullptr},
                                   {"checkpoint", result.checkpoint},
                                   {"metrics", paths.metrics},
                                   {"evaluations", paths.evaluations},
                                   {"tensorboard", paths.tensorboard},
                                   {"seconds", result.seconds},
                                   {"tokens", result.tokens},
                                   {"tokens_per_second", tokens_per_second(result)},
                                   {"memory",
                                    {{"planned_bytes", result.memory.planned_bytes},
                                     {"expected_bytes", result.memory.expected_bytes()},
                                     {"used_bytes", result.used_bytes}}}};
  if (result.best_loss) object["best"] = {{"loss", *result.best_loss}, {"step", result.best_step}};
  if (result.best_score) object["best"][result.best_score->name] = result.best_score->value;
  return object;
}

std::string print_line(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string summary_json(const TrainingResult& result, const std::string& run) {
  return print_line(summary_object(result, run));
}

}  // namespace plenum::cli
