#include "plenum/cli/command_line.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "plenum/base/build_info.h"
#include "plenum/base/check.h"
#include "plenum/cli/bus_error.h"
#include "plenum/cli/command.h"
#include "plenum/cli/exit_codes.h"
#include "plenum/cli/foreign_flags.h"
#include "plenum/cli/terminal.h"
#include "plenum/io/config_file.h"

namespace plenum::cli {
namespace {

using base::Option;
using base::OptionTable;

/// A command as CLI11 sees it: flags gather raw text; the option tables give it meaning afterwards, so that a
/// file's values can be laid under the flags.
struct BoundCommand {
  Command* command = nullptr;
  CLI::App* app = nullptr;
  std::vector<OptionTable> tables;
  std::map<std::string, std::vector<std::string>> given;  ///< by option name
  std::string config_path;
  std::string plan_path;
  bool print_config = false;
};

/// Help that shows a flag and its opposite as one word: --[no-]json.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::vector<std::string>& negated = option->get_fnames();
    if (negated.empty()) return Formatter::make_option_name(option, is_positional);
    return "--[no-]" + option->get_lnames().front();
  }
};

/// The help text with the choices and the default.
std::string description_of(const Option& option) {
  std::string text = option.help;
  if (!option.choices.empty()) text += fmt::format(": {}", fmt::join(option.choices, ", "));
  const std::vector<std::string> value = option.get();
  const bool is_single = option.kind != Option::Kind::Flag && option.kind != Option::Kind::TextList;
  if (is_single && !value.empty() && !value.front().empty())
    text += fmt::format(" (default {})", value.front());
  return text;
}

void bind_option(BoundCommand& bound, const Option& option) {
  std::vector<std::string>& values = bound.given[option.name];
  const std::string flag = "--" + option.name;
  if (option.kind == Option::Kind::Flag) {
    bound.app->add_flag(flag + ",!--no-" + option.name, values, option.help);
    return;
  }
  CLI::Option* added = bound.app->add_option(option.positional ? option.name + "," + flag : flag, values,
                                             description_of(option));
  added->type_name(option.placeholder);
  if (option.kind == Option::Kind::TextList) {
    added->expected(1, 1 << 20);
    if (!option.positional) added->expected(1)->take_all();
  } else {
    // Values gather in a list, but what follows the one value is for positional arguments. Given again, an
    // option overrides what came before, as scripts that add to a command line expect.
    added->expected(1)->allow_extra_args(false)->take_last();
  }
}

void bind_command(CLI::App& app, BoundCommand& bound) {
  bound.app = app.add_subcommand(bound.command->name(), bound.command->summary());
  bound.tables = bound.command->tables();
  for (const OptionTable& table : bound.tables) {
    for (const Option& option : table.options()) bind_option(bound, option);
  }
  bound.app->add_option("--config", bound.config_path, "Read options from a TOML file; flags win over it")
      ->type_name("FILE")
      ->take_last();
  if (bound.command->runs_plans()) {
    bound.app
        ->add_option("--plan", bound.plan_path,
                     "Train as this file of plenum plan says; flags win over it, and it over --config")
        ->type_name("FILE")
        ->take_last();
  }
  bound.app->add_flag("--print-config", bound.print_config, "Print all options as a TOML file and stop");
}

/// Every table of every command, so that one file can configure a whole run. A section that several commands
/// share is known once.
std::vector<OptionTable> known_tables(const std::vector<BoundCommand>& commands) {
  std::map<std::string, OptionTable> by_name;
  for (const BoundCommand& bound : commands) {
    for (const OptionTable& table : bound.tables) by_name.emplace(table.name(), table);
  }
  std::vector<OptionTable> tables;
  for (auto& [name, table] : by_name) tables.push_back(std::move(table));
  return tables;
}

/// CLI11 takes a word in brackets for a list and takes it apart; a word that begins with this is none.
constexpr char kNoList = '\x02';

/// The arguments, with those marked that are to stay whole: text such as "[MASK] of [MASK]".
std::vector<std::string> keep_brackets(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {  // as CLI11 wants them: the last first
    std::string word = argv[i];
    const std::size_t value = word.starts_with("--") ? word.find('=') + 1 : 0;
    if (value < word.size() && word[value] == '[') word.insert(value, 1, kNoList);
    words.push_back(std::move(word));
  }
  return words;
}

/// "help train" asks for what "train --help" shows. What is no command is left to be told so.
void understand_help(const CLI::App& app, std::vector<std::string>& reversed_words) {
  if (reversed_words.empty() || reversed_words.back() != "help") return;
  reversed_words.pop_back();
  const auto is_meant = [&](const CLI::App* command) { return command->get_name() == reversed_words.back(); };
  const bool is_known = reversed_words.empty() || !app.get_subcommands(is_meant).empty();
  if (is_known) reversed_words.insert(reversed_words.begin(), "--help");
}

void unmark(std::vector<std::string>& values) {
  for (std::string& value : values) {
    if (value.starts_with(kNoList)) value.erase(0, 1);
  }
}

void set_given(BoundCommand& bound, const std::vector<io::ConfigEntry>& entries) {
  io::set_options(entries, bound.tables);
  if (!bound.config_path.empty()) bound.command->on_config_file(bound.config_path);
  for (const OptionTable& table : bound.tables) {
    for (const Option& option : table.options()) {
      std::vector<std::string>& values = bound.given[option.name];
      if (values.empty()) continue;
      if (option.kind != Option::Kind::TextList) values.erase(values.begin(), values.end() - 1);
      unmark(values);
      try {
        option.set(values);
      } catch (const base::UserError& error) {
        base::fail("{}{}", option.positional ? "" : "--", error.what());
      }
    }
  }
}

/// Flags win over the file, the file over what the command recalls, and that over the defaults.
void apply_options(BoundCommand& bound, const std::vector<io::ConfigEntry>& entries) {
  set_given(bound, entries);
  bound.command->recall_options();
  set_given(bound, entries);
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// What a flag that an option had before is called now; nothing for a flag that was none.
std::optional<std::string> new_flag(const std::string& flag, const BoundCommand& bound) {
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  for (const OptionTable& table : bound.tables) {
    if (const Option* option = table.find_former(name)) return "--" + option->name;
  }
  return std::nullopt;
}

/// One line that says what is wrong with the command line and what was probably meant.
std::string explain(const CLI::ParseError& error, const CLI::App& app, const BoundCommand* chosen) {
  const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error);
  const CLI::App& owner = chosen != nullptr ? *chosen->app : app;
  const std::vector<std::string> remaining = app.remaining(true);
  if (extras != nullptr && !remaining.empty()) {
    const std::string word = remaining.front().substr(0, remaining.front().find('='));
    const std::optional<std::string> renamed = chosen != nullptr ? new_flag(word, *chosen) : std::nullopt;
    if (word.starts_with("--") && renamed) return fmt::format("{} is now called {}", word, *renamed);
    if (const auto hint = chosen != nullptr ? foreign_flag_hint(chosen->command->name(), word) : std::nullopt)
      return fmt::format("unknown option {}; {}", word, *hint);
    if (word.starts_with("-")) {
      return fmt::format("unknown option {}{}", word, base::suggest_name(word, flag_names(owner)));
    }
    if (chosen != nullptr) return fmt::format("unexpected argument '{}'", word);
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
    return fmt::format("unknown command '{}'{}", word, base::suggest_name(word, names));
  }
  std::string text = error.what();
  // CLI11's own words for the commonest slip speak of counts.
  const std::string option = text.substr(0, text.find(':'));
  if (text.find("required") != std::string::npos && text.ends_with("missing"))
    return fmt::format("{} needs a value", option);
  if (const std::size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
  return text;
}

int dispatch(int argc, const char* const* argv) {
  CLI::App app("Plenum trains BERT-style encoders: no padding, no leakage between documents, no idle slot.",
               "plenum");
  app.set_version_flag("--version", fmt::format("plenum {}", base::build_info().version));
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.option_defaults()->always_capture_default(false);

  const std::vector<std::unique_ptr<Command>> owned = all_commands();
  std::vector<BoundCommand> commands(owned.size());
  for (std::size_t i = 0; i < owned.size(); ++i) {
    commands[i].command = owned[i].get();
    bind_command(app, commands[i]);
  }

  BoundCommand* chosen = nullptr;
  const auto find_chosen = [&] {
    for (BoundCommand& bound : commands) {
      if (bound.app->parsed()) chosen = &bound;
    }
  };
  try {
    std::vector<std::string> words = keep_brackets(argc, argv);
    understand_help(app, words);
    app.parse(words);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const std::invalid_argument&) {  // what CLI11 throws for --no-flag=text
    base::fail("a flag is true or false; give it without a value");
  } catch (const CLI::ParseError& error) {
    find_chosen();
    throw base::UserError(explain(error, app, chosen));
  }
  find_chosen();
  if (chosen == nullptr) {
    fmt::print("{}", app.help());
    return 0;
  }

  std::vector<io::ConfigEntry> entries;
  if (!chosen->config_path.empty())
    entries = io::read_config_file(chosen->config_path, known_tables(commands));
  if (!chosen->plan_path.empty()) {
    for (io::ConfigEntry& entry : io::read_config_file(chosen->plan_path, known_tables(commands)))
      entries.push_back(std::move(entry));
  }
  apply_options(*chosen, entries);
  if (chosen->print_config) {
    fmt::print("{}", io::print_config(chosen->tables));
    return 0;
  }
  return chosen->command->run();
}

/// Puts the null device where standard input, output or errors are closed, so that no file of ours takes
/// their place.
void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  occupy_standard_descriptors();
  explain_bus_errors();
  try {
    const int code = dispatch(argc, argv);
    // A reader that had enough is no failure.
    base::require(std::fflush(stdout) == 0 || errno == EPIPE, "cannot write to standard output");
    return code;
  } catch (const base::UserError& error) {
    say(stderr, fmt::format("plenum: error: {}\n", error.what()));
    return kUserErrorCode;
  } catch (const std::bad_alloc&) {
    say(stderr, "plenum: error: out of memory\n");
    return kUserErrorCode;
  } catch (const std::exception& error) {
    say(stderr, fmt::format("plenum: internal error: {}\n", error.what()));
    return kInternalErrorCode;
  }
}

}  // namespace plenum::cli
