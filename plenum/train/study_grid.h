#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/train/run_options.h"

namespace plenum::train {

/// One configuration of a study.
struct StudyConfiguration {
  std::vector<std::string> arguments;                ///< of `plenum train`
  RunOptions options;                                ///< what they and those of the study say
  std::vector<std::string> arguments_of_study = {};  ///< that every configuration gets besides
  std::string place = {};                            ///< file:line; empty where no file has it

  /// Whether its arguments have an option.
  bool has(std::string_view option) const;
  /// "bert-mini unpadded 8192tok, dp 2, ..."
  std::string name() const;
  /// What is computed, whatever it is laid out on: configurations of equal works can be chosen from.
  std::string work() const;
};

/// Reads options as the command line has them: --name value or --name=value. Throws UserError, beginning with
/// the place if there is one, for an option that train has not, or a value that it does not take.
StudyConfiguration study_configuration(std::string_view text, std::string place = {});
/// Gives a configuration one more of the study's options.
void add_option(StudyConfiguration& configuration, const std::string& name, const std::string& value);

enum class StudyEngine { Threads, Mpi };

/// What a ready grid goes over.
struct GridRequest {
  std::string name = "quick";       ///< quick, full, links, or a file
  std::vector<std::string> models;  ///< of a ready grid; its own if empty
  std::vector<std::int64_t> ranks;  ///< the only numbers of ranks there are; 1, 2, 4 ... most_ranks if empty
  std::int64_t most_ranks = 1;      ///< as many as have a core each
};

/// Configurations, none twice. A file has one in a line; empty lines and those that begin with # are passed
/// over. Throws UserError for a name that is neither.
std::vector<StudyConfiguration> study_grid(const GridRequest& request);

}  // namespace plenum::train
