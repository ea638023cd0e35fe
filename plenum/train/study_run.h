#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/train/study_result.h"

namespace plenum::train {

/// How the configurations of a study run.
struct StudySetting {
  std::string data;                      ///< a dataset
  std::string machine = {};              ///< file; empty: what a second of measuring gives
  std::string directory;                 ///< where runs may lie while they last
  std::string program;                   ///< path of plenum
  std::vector<std::string> environment;  ///< of runs
  std::vector<std::string> mpirun;       ///< words before `-np`
  StudyEngine engine = StudyEngine::Threads;
  std::uint64_t num_steps = 0;    ///< of each run; 0: as many as last about so long
  double seconds = 12;            ///< of a run, where steps are not given
  std::int64_t cores = 1;         ///< that ranks share, where a configuration gives no --threads
  std::size_t program_bytes = 0;  ///< of a process that did nothing yet, where no machine says so
};

/// Gives a configuration what all runs of the study have. Throws UserError, as train does, if train refuses
/// it.
void settle_configuration(const StudySetting& setting, StudyConfiguration& configuration);

/// Says what a settled configuration will take, and how many steps it is to run. Measures this machine's
/// operations for a second where no machine is given.
StudyResult predict_configuration(const StudySetting& setting, const StudyConfiguration& configuration);

/// Runs it in processes of its own, to the end. Throws UserError, with what it said last, if it fails.
StudyMeasurement measure_configuration(const StudySetting& setting, const StudyResult& predicted);

}  // namespace plenum::train
