#include "plenum/pipeline/lane_queue.h"

#include <algorithm>

namespace plenum::pipeline {

using tensor::QueueEvent;
using tensor::WorkQueue;

LaneQueue::LaneQueue(const WorkQueue& queue, const schedule::LaneProgram& program, std::size_t num_kept_steps)
    : queue_(queue), program_(program), num_kept_steps_(num_kept_steps) {
  for (std::size_t step = 0; step < program.num_steps(); ++step) {
    most_actions_ = std::max(most_actions_, program.step(step).size());
  }
  events_.resize(num_kept_steps * most_actions_);
  for (std::unique_ptr<QueueEvent>& event : events_) event = queue.make_event(WorkQueue::Timed::No);
}

void LaneQueue::prepare_times() {
  for (TimedAction& action : timed_) action.is_recorded = false;
}

void LaneQueue::begin_timed(std::size_t position) {
  timed_.resize(program_.actions().size());
  TimedAction& action = timed_[position];
  if (!action.begin) action.begin = queue_.make_event(WorkQueue::Timed::Yes);
  if (!action.end) action.end = queue_.make_event(WorkQueue::Timed::Yes);
  queue_.record(*action.begin);
}

void LaneQueue::end_timed(std::size_t position) {
  queue_.record(*timed_[position].end);
  timed_[position].is_recorded = true;
}

const QueueEvent& LaneQueue::end_action(std::uint64_t step, std::size_t index) {
  QueueEvent& event = *events_[step % num_kept_steps_ * most_actions_ + index];
  queue_.record(event);
  return event;
}

const QueueEvent* LaneQueue::event_behind_step(std::uint64_t step) const {
  const std::size_t num_actions = program_.step(step % program_.num_steps()).size();
  return num_actions == 0 ? nullptr : &event_behind(step, num_actions - 1);
}

bool LaneQueue::is_idle() const {
  return std::all_of(events_.begin(), events_.end(),
                     [](const std::unique_ptr<QueueEvent>& event) { return event->is_done(); });
}

schedule::ActionTime LaneQueue::time_of(std::size_t position, const QueueEvent& anchor,
                                        double anchor_seconds) const {
  const TimedAction& action = timed_[position];
  return {anchor_seconds - anchor.seconds_since(*action.begin),
          anchor_seconds - anchor.seconds_since(*action.end)};
}

}  // namespace plenum::pipeline
