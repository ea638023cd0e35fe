#include "plenum/cli/foreign_flags.h"

#include <algorithm>
#include <array>

namespace plenum::cli {
namespace {

struct ForeignFlag {
  std::string_view command;
  std::string_view flag;  ///< as Hugging Face's scripts, PyTorch Lightning or fairseq have it
  std::string_view hint;
};

constexpr std::array<ForeignFlag, 28> kForeignFlags = {{
    {"train", "--lr", "use --learning-rate"},
    {"train", "--batch-size", "use --global-batch: sequences (256) or tokens (32768tok) of a step"},
    {"train", "--train-batch-size", "use --global-batch: sequences (256) or tokens (32768tok) of a step"},
    {"train", "--per-device-train-batch-size",
     "use --global-batch for a step and --micro-batch-tokens for what is computed at a time"},
    {"train", "--gradient-accumulation-steps",
     "use --global-batch for a step and --micro-batch-tokens for what is computed at a time"},
    {"train", "--epochs", "use --steps 3ep"},
    {"train", "--num-epochs", "use --steps 3ep"},
    {"train", "--num-train-epochs", "use --steps 3ep"},
    {"train", "--max-epochs", "use --steps 3ep"},
    {"train", "--max-steps", "use --steps"},
    {"train", "--max-train-steps", "use --steps"},
    {"train", "--warmup-steps", "use --warmup"},
    {"train", "--warmup-ratio", "use --warmup 0.06dur"},
    {"train", "--lr-scheduler-type", "use --lr-schedule"},
    {"train", "--output-dir", "use --run"},
    {"train", "--output", "use --run"},
    {"train", "--save-steps", "use --checkpoint-every"},
    {"train", "--save-total-limit", "use --keep"},
    {"train", "--eval-steps", "use --eval-every"},
    {"train", "--model-name-or-path", "use --init with a directory"},
    {"train", "--mlm-probability", "use --mask-rate"},
    {"train", "--gradient-checkpointing", "use --recompute full"},
    {"train", "--resume", "a run resumes by itself: plenum train --run DIR"},
    {"train", "--resume-from-checkpoint", "a run resumes by itself: plenum train --run DIR"},
    {"train", "--bf16", "a GPU computes in bf16 by itself"},
    {"train", "--fp16", "a GPU computes in bf16 by itself"},
    {"prepare", "--max-seq-length", "use --max-length"},
    {"prepare", "--vocab-size", "use --train-vocab"},
}};

}  // namespace

std::optional<std::string> foreign_flag_hint(std::string_view command, std::string_view flag) {
  std::string name(flag);
  std::replace(name.begin(), name.end(), '_', '-');
  for (const ForeignFlag& foreign : kForeignFlags) {
    if (foreign.command == command && foreign.flag == name) return std::string(foreign.hint);
  }
  return std::nullopt;
}

}  // namespace plenum::cli
