#pragma once

#include <string>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/packing/histogram.h"
#include "plenum/train/study_result.h"

namespace plenum::train {

// What the configurations of a study answer, each as a section of Markdown; empty where the study has no two
// configurations that tell.

/// Data, pipeline and tensor parallelism on the same ranks, for the same work.
std::string parallelism_answer(const std::vector<StudyResult>& results);
/// Step time and exposed communication over --bucket-bytes.
std::string bucket_answer(const std::vector<StudyResult>& results);
/// With which difference data-parallel ranks enter the last sum of a step.
std::string waiting_answer(const std::vector<StudyResult>& results);
/// How the memory of all ranks together grows with their number, by how the model is divided.
std::string memory_answer(const std::vector<StudyResult>& results);
/// Tokens per second of the layouts.
std::string layout_answer(const std::vector<StudyResult>& results);
/// Data against pipeline parallelism over emulated links.
std::string link_answer(const std::vector<StudyResult>& results);

/// From the model alone: how much longer a token takes on many ranks than on one without padding, as
/// operations say, in sequences that are drawn at random, in sequences that are divided evenly, and in packs.
std::string scale_answer(const describe::ModelDescription& model, const packing::LengthHistogram& lengths);

/// All of a study that have something to say. Where ranks are processes, the memory of all of them together
/// is not known.
std::string study_answers(const std::vector<StudyResult>& results, StudyEngine engine);

}  // namespace plenum::train
