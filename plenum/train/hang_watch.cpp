#include "plenum/train/hang_watch.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include <fmt/format.h>

namespace plenum::train {

using std::chrono::milliseconds;

HangWatch::HangWatch(milliseconds limit, Told told)
    : limit_(limit), told_(std::move(told)), seen_(Clock::now()), looked_(seen_) {}

void HangWatch::watch(const std::stop_token& stop) {
  const milliseconds interval = std::clamp(limit_ / 8, milliseconds(1), milliseconds(1000));
  std::mutex own;
  std::condition_variable_any stopped;
  std::unique_lock lock(own);
  while (!stop.stop_requested()) {
    look(Clock::now());
    stopped.wait_for(lock, stop, interval, [] { return false; });
  }
}

std::string HangWatch::under_way() const {
  const std::lock_guard lock(mutex_);
  return is_under_way_ ? hangs_.substr(0, hangs_.find(" hangs")) : std::string();
}

void HangWatch::look(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  constexpr std::chrono::seconds kLongestLook{5};
  if (now - looked_ > kLongestLook) seen_ += now - looked_;
  looked_ = now;
  if (num_moves_ != seen_moves_) {
    seen_moves_ = num_moves_;
    seen_ = now;
  }
  if (!is_under_way_ || is_resting_ || is_told_ || now - seen_ < limit_) return;
  is_told_ = true;
  told_(fmt::format("{} for {} ms", hangs_, limit_.count()));
}

HangWatch::Activity::Activity(HangWatch& watch, std::string hangs) : watch_(watch) {
  const std::lock_guard lock(watch_.mutex_);
  watch_.is_under_way_ = true;
  watch_.is_resting_ = false;
  watch_.is_told_ = false;
  watch_.hangs_ = std::move(hangs);
  ++watch_.num_moves_;
}

HangWatch::Activity::~Activity() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.is_under_way_ = false;
}

void HangWatch::Activity::get_on() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.is_resting_ = false;
  ++watch_.num_moves_;
}

void HangWatch::Activity::rest() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.is_resting_ = true;
}

}  // namespace plenum::train
