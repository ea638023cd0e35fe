#include "plenum/cli/line_stream.h"

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plenum/base/check.h"

namespace plenum::cli {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

/// A flag that poll() can wait for.
class StopSignal {
 public:
  StopSignal() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
    base::require(descriptor_ >= 0, "cannot make an event descriptor: {}", std::strerror(errno));
  }
  ~StopSignal() { ::close(descriptor_); }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  int descriptor() const { return descriptor_; }
  void raise() { ::eventfd_write(descriptor_, 1); }

 private:
  int descriptor_;
};

/// Cuts what a descriptor delivers into blocks of whole lines.
class BlockReader {
 public:
  BlockReader(int input, const StopSignal& stop) : input_(input), stop_(&stop) {}

  /// Overwrites `block` with the next lines; false at the end of the input or when stopped.
  bool next(std::string& block) {
    while (true) {
      const bool has_line = lines_end_ != 0;
      if (has_line && (buffer_.size() >= kBlockBytes || !wait(0))) return take(lines_end_, block);
      if (!wait(-1)) return false;
      const std::size_t old_size = buffer_.size();
      buffer_.resize(old_size + kBlockBytes);
      const ssize_t count = ::read(input_, buffer_.data() + old_size, kBlockBytes);
      const int reason = errno;
      buffer_.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      if (count < 0 && (reason == EINTR || reason == EAGAIN)) continue;
      base::require(count >= 0, "cannot read standard input: {}", std::strerror(reason));
      if (count == 0) return take(buffer_.size(), block);
      const std::size_t newline = std::string_view(buffer_).substr(old_size).rfind('\n');
      if (newline != std::string_view::npos) lines_end_ = old_size + newline + 1;
    }
  }

 private:
  /// Whether the input has something to read within `timeout_ms`; false when stopped.
  bool wait(int timeout_ms) const {
    pollfd waiting[2] = {{input_, POLLIN, 0}, {stop_->descriptor(), POLLIN, 0}};
    while (::poll(waiting, 2, timeout_ms) < 0) {
      base::require(errno == EINTR, "cannot wait for standard input: {}", std::strerror(errno));
    }
    return waiting[1].revents == 0 && waiting[0].revents != 0;
  }

  bool take(std::size_t size, std::string& block) {
    block.assign(buffer_, 0, size);
    buffer_.erase(0, size);
    lines_end_ = 0;
    return size != 0;
  }

  int input_;
  const StopSignal* stop_;
  std::string buffer_;
  std::size_t lines_end_ = 0;  ///< behind the last newline in buffer_
};

/// False when nobody reads any more.
bool write_all(int output, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(output, text.data(), text.size());
    if (count < 0 && errno == EPIPE) return false;
    if (count < 0 && errno == EAGAIN) {
      pollfd waiting{output, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    base::require(count >= 0, "cannot write to standard output: {}", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void transform_on_one_thread(int input, int output, const LineTransform& transform) {
  const StopSignal stop;
  BlockReader reader(input, stop);
  std::string block;
  std::string result;
  while (reader.next(block)) {
    result.clear();
    transform(block, result);
    if (!write_all(output, result)) return;
  }
}

/// One thread reads, the others take blocks in order, transform them at the same time and write them in turn.
class ParallelTransform {
 public:
  ParallelTransform(int output, std::size_t num_threads) : output_(output), max_waiting_(2 * num_threads) {}

  void run(int input, std::size_t num_threads, const std::function<LineTransform()>& make_transform) {
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < num_threads; ++i) {
        threads.emplace_back([&] { guard([&] { work(make_transform()); }); });
      }
      guard([&] { read(input); });
      const std::lock_guard lock(mutex_);
      finished_ = true;
      changed_.notify_all();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Block {
    std::uint64_t number = 0;
    std::string text;
  };

  template <typename Action>
  void guard(Action&& action) {
    try {
      action();
    } catch (...) {
      stop(std::current_exception());
    }
  }

  void stop(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    stopped_ = true;
    signal_.raise();
    changed_.notify_all();
  }

  void read(int input) {
    BlockReader reader(input, signal_);
    Block block;
    while (reader.next(block.text)) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return waiting_.size() < max_waiting_ || stopped_; });
      if (stopped_) return;
      waiting_.push_back(std::move(block));
      block = {.number = waiting_.back().number + 1, .text = {}};
      changed_.notify_all();
    }
  }

  void work(const LineTransform& transform) {
    std::string result;
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !waiting_.empty() || finished_ || stopped_; });
      if (stopped_ || waiting_.empty()) return;
      const Block block = std::move(waiting_.front());
      waiting_.pop_front();
      changed_.notify_all();
      lock.unlock();

      result.clear();
      transform(block.text, result);

      lock.lock();
      changed_.wait(lock, [&] { return next_written_ == block.number || stopped_; });
      if (stopped_) return;
      lock.unlock();
      if (!write_all(output_, result)) return stop(nullptr);
      lock.lock();
      ++next_written_;
      changed_.notify_all();
    }
  }

  int output_;
  std::size_t max_waiting_;
  StopSignal signal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> waiting_;
  std::uint64_t next_written_ = 0;
  bool finished_ = false;  ///< no more blocks come
  bool stopped_ = false;   ///< all give up
  std::exception_ptr failure_;
};

}  // namespace

void transform_lines(int input, int output, int num_threads,
                     const std::function<LineTransform()>& make_transform) {
  if (num_threads == 1) {
    transform_on_one_thread(input, output, make_transform());
    return;
  }
  const auto count = static_cast<std::size_t>(num_threads);
  ParallelTransform(output, count).run(input, count, make_transform);
}

}  // namespace plenum::cli
