#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace plenum::control {

/// The last text that somebody wrote, of up to 512 bytes. Writing neither allocates nor waits for readers;
/// writers at the same time wait for each other's few nanoseconds. A reader gets one whole text.
class LatestText {
 public:
  static constexpr std::size_t kMostBytes = 512;

  /// The end of what is too long is left out.
  void write(std::string_view text) noexcept {
    text = text.substr(0, kMostBytes);
    while (is_written_.test_and_set(std::memory_order_acquire)) {
    }
    // Odd while it is written: a reader that sees anything of the new text sees that too, and tries again.
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    num_bytes_.store(text.size(), std::memory_order_relaxed);
    for (std::size_t i = 0; i * sizeof(Word) < text.size(); ++i) {
      Word word = 0;
      std::memcpy(&word, text.data() + i * sizeof word, std::min(sizeof word, text.size() - i * sizeof word));
      words_[i].store(word, std::memory_order_relaxed);
    }
    version_.store(version + 2, std::memory_order_release);
    is_written_.clear(std::memory_order_release);
  }

  std::string read() const {
    std::array<Word, kNumWords> words{};
    while (true) {
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      const std::size_t num_bytes = num_bytes_.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < kNumWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before)
        return {reinterpret_cast<const char*>(words.data()), num_bytes};
    }
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::size_t kNumWords = kMostBytes / sizeof(Word);

  std::atomic_flag is_written_ = ATOMIC_FLAG_INIT;
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::size_t> num_bytes_{0};
  std::array<std::atomic<Word>, kNumWords> words_{};
};

}  // namespace plenum::control
