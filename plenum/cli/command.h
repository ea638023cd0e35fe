#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plenum/base/options.h"

namespace plenum::cli {

/// One command of the program: parse, call, print. Its options are the tables of the components it drives.
class Command {
 public:
  virtual ~Command() = default;

  virtual std::string name() const = 0;
  /// One line for the list of commands.
  virtual std::string summary() const = 0;
  /// The tables bound to this command's own option structs.
  virtual std::vector<base::OptionTable> tables() = 0;
  /// Whether it runs plans: --plan is then another file of options, laid over that of --config.
  virtual bool runs_plans() const { return false; }
  /// Options were taken from the file at `path`; those of the command line are still to come.
  virtual void on_config_file(const std::string& path) { static_cast<void>(path); }
  /// All that is given is set, and may say where options of an earlier time are kept. Those set here lie
  /// under what is given, which is set once more afterwards.
  virtual void recall_options() {}
  /// Runs with the options set. Throws UserError or InternalError; returns the exit code.
  virtual int run() = 0;
};

/// Every command, in the order in which help lists them.
std::vector<std::unique_ptr<Command>> all_commands();

std::unique_ptr<Command> make_calibrate_command();
std::unique_ptr<Command> make_doctor_command();
std::unique_ptr<Command> make_embed_command();
std::unique_ptr<Command> make_eval_command();
std::unique_ptr<Command> make_export_command();
std::unique_ptr<Command> make_fill_mask_command();
std::unique_ptr<Command> make_finetune_command();
std::unique_ptr<Command> make_inspect_command();
std::unique_ptr<Command> make_pack_command();
std::unique_ptr<Command> make_plan_command();
std::unique_ptr<Command> make_predict_command();
std::unique_ptr<Command> make_prepare_command();
std::unique_ptr<Command> make_report_command();
std::unique_ptr<Command> make_simulate_command();
std::unique_ptr<Command> make_study_command();
std::unique_ptr<Command> make_tokenize_command();
std::unique_ptr<Command> make_train_command();
std::unique_ptr<Command> make_watch_command();

}  // namespace plenum::cli
