#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/train/device_memory.h"
#include "plenum/train/hang_watch.h"
#include "plenum/train/training_observer.h"

namespace plenum::train {

/// Keeps what happens to a run beside its steps in events.jsonl, and passes everything on: when a process
/// began, with what, what it noted, and how it ended. Lines are added and never taken back, so that a run
/// that was killed and resumed says so.
///
/// A run is not ended for want of room for its events: a line that cannot be written is tried again with the
/// next one.
class RunEvents final : public TrainingObserver {
 public:
  /// Borrows the observer.
  explicit RunEvents(TrainingObserver& observer) : observer_(observer) {}

  /// What a process begins with.
  struct Beginning {
    std::uint64_t step = 0;
    std::string checkpoint;          ///< that it resumes from; empty where the run begins
    nlohmann::ordered_json details;  ///< keys of its own
  };
  /// Writes to this file from here on: the beginning, then what was told before. Borrows the watch, which is
  /// told.
  void open(std::string path, HangWatch& watch, const Beginning& beginning);
  /// Adds what happened after a step, with keys of its own.
  void add(std::string_view kind, std::string_view text, const nlohmann::ordered_json& details = {});
  /// How much of the device's memory is taken.
  nlohmann::ordered_json memory_details() const;

  void on_begin(const RunSummary& summary) override;
  void on_step(const StepReport& report) override;
  void on_skip(std::string_view line) override;
  void on_evaluation(std::uint64_t step, const Evaluation& evaluation) override;
  void on_checkpoint(std::uint64_t step, const std::string& path) override;
  void on_choice(std::string_view line) override;
  void on_note(std::string_view line) override;
  void on_table(std::string_view text) override;
  /// Only passed on: perhaps it is the disk that hangs.
  void on_hang(std::string_view line) override;

 private:
  void write();

  TrainingObserver& observer_;
  HangWatch* watch_ = nullptr;
  std::string path_;  ///< empty until it is open
  std::uint64_t step_ = 0;
  DeviceMemory memory_{tensor::Device::Cpu};
  std::vector<nlohmann::ordered_json> pending_;
};

}  // namespace plenum::train
