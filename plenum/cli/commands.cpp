#include "plenum/cli/command.h"

namespace plenum::cli {

std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_doctor_command());
  commands.push_back(make_prepare_command());
  commands.push_back(make_inspect_command());
  commands.push_back(make_pack_command());
  commands.push_back(make_plan_command());
  commands.push_back(make_train_command());
  commands.push_back(make_finetune_command());
  commands.push_back(make_watch_command());
  commands.push_back(make_report_command());
  commands.push_back(make_eval_command());
  commands.push_back(make_fill_mask_command());
  commands.push_back(make_predict_command());
  commands.push_back(make_embed_command());
  commands.push_back(make_export_command());
  commands.push_back(make_simulate_command());
  commands.push_back(make_calibrate_command());
  commands.push_back(make_study_command());
  commands.push_back(make_tokenize_command());
  return commands;
}

}  // namespace plenum::cli
