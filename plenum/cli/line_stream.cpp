#include "plenum/cli/line_stream.h"

#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plenum/base/system_call.h"
#include "plenum/data/corpus/ordered_pipeline.h"

namespace plenum::cli {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

/// A flag that poll() can wait for.
class StopSignal {
 public:
  StopSignal() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
    base::require_call(descriptor_ >= 0, "cannot make an event descriptor");
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

  /// Overwrites `block` with the next lines, and takes its buffer for those behind; false at the end of the
  /// input or when stopped.
  bool next(std::string& block) {
    while (true) {
      const bool has_line = lines_end_ != 0;
      if (has_line && (filled_ >= kBlockBytes || !wait(0))) return take(lines_end_, block);
      if (!wait(-1)) return false;
      if (buffer_.size() < filled_ + kBlockBytes) buffer_.resize(filled_ + kBlockBytes);
      const ssize_t count = ::read(input_, buffer_.data() + filled_, kBlockBytes);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      base::require_call(count >= 0, "cannot read standard input");
      if (count == 0) return take(filled_, block);
      const std::string_view read(buffer_.data() + filled_, static_cast<std::size_t>(count));
      const std::size_t newline = read.rfind('\n');
      if (newline != std::string_view::npos) lines_end_ = filled_ + newline + 1;
      filled_ += read.size();
    }
  }

 private:
  /// Whether the input has something to read within `timeout_ms`; false when stopped.
  bool wait(int timeout_ms) const {
    pollfd waiting[2] = {{input_, POLLIN, 0}, {stop_->descriptor(), POLLIN, 0}};
    while (::poll(waiting, 2, timeout_ms) < 0) {
      base::require_call(errno == EINTR, "cannot wait for standard input");
    }
    return waiting[1].revents == 0 && waiting[0].revents != 0;
  }

  bool take(std::size_t size, std::string& block) {
    if (block.capacity() > 8 * kBlockBytes) block = {};  // an unusually long line needed it
    block.assign(buffer_, size, filled_ - size);
    filled_ = block.size();
    buffer_.resize(size);
    std::swap(buffer_, block);
    lines_end_ = 0;
    return size != 0;
  }

  int input_;
  const StopSignal* stop_;
  std::string buffer_;  ///< room to read into
  std::size_t filled_ = 0;
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
    base::require_call(count >= 0, "cannot write to standard output");
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

/// Thrown to end everything when nobody reads any more.
struct OutputIsClosed {};

/// One thread reads, `num_threads` transform, and this one writes.
void transform_on_threads(int input, int output, std::size_t num_threads,
                          const std::function<LineTransform()>& make_transform) {
  StopSignal stop;
  BlockReader reader(input, stop);
  // The reader may wait for a terminal: it must hear of a failure.
  const auto or_stop = [&](const auto& action) {
    try {
      return action();
    } catch (...) {
      stop.raise();
      throw;
    }
  };
  data::OrderedPipeline<std::string, std::string> pipeline(num_threads);
  try {
    pipeline.run([&](std::string& block) { return reader.next(block); },
                 [&] {
                   return [&, transform = or_stop(make_transform)](const std::string& block,
                                                                   std::string& result) {
                     result.clear();
                     or_stop([&] { transform(block, result); });
                   };
                 },
                 [&](const std::string& result) {
                   or_stop([&] {
                     if (!write_all(output, result)) throw OutputIsClosed();
                   });
                 });
  } catch (const OutputIsClosed&) {
  }
}

}  // namespace

void transform_lines(int input, int output, int num_threads,
                     const std::function<LineTransform()>& make_transform) {
  if (num_threads == 1) {
    transform_on_one_thread(input, output, make_transform());
    return;
  }
  transform_on_threads(input, output, static_cast<std::size_t>(num_threads), make_transform);
}

}  // namespace plenum::cli
