#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/train/study_grid.h"
#include "plenum/train/study_result.h"
#include "plenum/train/study_run.h"

namespace plenum::train {

struct StudyRequest {
  GridRequest grid;
  StudySetting setting;
  std::int64_t repeats = 1;
};

/// What came of a study.
struct Study {
  std::string machine;  ///< what it ran on
  std::string grid;     ///< its name
  StudyEngine engine = StudyEngine::Threads;
  std::int64_t repeats = 1;
  bool is_calibrated = false;  ///< by a machine's file; else by a second of measuring for each configuration
  std::vector<StudyResult> results = {};
  std::string scale_answer = {};           ///< scale_answer() of a BERT-base on the study's data
  std::vector<std::string> left_out = {};  ///< configurations of a ready grid that train refuses, and why
};

/// Predicts every configuration of a grid right before its first run, and runs all of them in turns, each as
/// often as asked for. One that train refuses is left out of a ready grid; in a file it is an error, before
/// anything runs. `tell` gets a line for each run.
Study run_study(const StudyRequest& request, const std::function<void(std::string_view)>& tell);

}  // namespace plenum::train
