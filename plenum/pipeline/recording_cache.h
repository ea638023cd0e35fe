#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>

namespace plenum::pipeline {

/// Recordings of work that repeats. Work is told apart by keys: what comes for the first time is only noted,
/// what comes again is recorded. What has not come among the last `window` uses is forgotten, and its
/// recording with it. While recordings have `most_nodes` together or more (Recording::num_nodes), nothing is
/// recorded.
///
/// A recording lives for a window at least. So whatever comes, no more than fit are made in `window` uses in
/// a row, and of work that comes in turn and is too much to hold a part is replayed all the time.
template <typename Key, typename Recording>
class RecordingCache {
 public:
  RecordingCache(std::size_t most_nodes, std::size_t window) : most_nodes_(most_nodes), window_(window) {}
  RecordingCache(const RecordingCache&) = delete;
  RecordingCache& operator=(const RecordingCache&) = delete;

  /// The recording to start in place of the work, made of `how` where it is time to; valid until the next
  /// use. None if the work is to be done as it is.
  template <typename... How>
  const Recording* use(const Key& key, const How&... how) {
    const auto [known, is_new] = known_.try_emplace(key);
    note(known);
    std::optional<Recording>& recording = known->second.recording;
    if (!recording && !is_new && num_nodes_ < most_nodes_) {
      recording.emplace(how...);
      num_nodes_ += recording->num_nodes();
    }
    return recording ? &*recording : nullptr;
  }

 private:
  struct Work {
    std::size_t num_uses = 0;  ///< among the last
    std::optional<Recording> recording;
  };
  using Known = std::map<Key, Work>;

  void note(typename Known::iterator used) {
    ++used->second.num_uses;
    last_uses_.push_back(used);
    if (last_uses_.size() <= window_) return;
    const auto oldest = last_uses_.front();
    last_uses_.pop_front();
    if (--oldest->second.num_uses > 0) return;
    if (oldest->second.recording) num_nodes_ -= oldest->second.recording->num_nodes();
    known_.erase(oldest);
  }

  std::size_t most_nodes_;
  std::size_t window_;
  std::size_t num_nodes_ = 0;
  Known known_;
  std::deque<typename Known::iterator> last_uses_;
};

}  // namespace plenum::pipeline
