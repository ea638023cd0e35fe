#include "plenum/cli/bus_error.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "plenum/cli/exit_codes.h"

// All of this runs inside a signal handler: system calls and the stack alone, no allocation, no locks.
namespace plenum::cli {
namespace {

/// A line of /proc/self/maps: "7f00-8f00 r--s 00000000 08:01 1234    /path/to/the file".
class MappingLine {
 public:
  explicit MappingLine(std::string_view line) : rest_(line) {
    begin_ = take_hexadecimal();
    rest_.remove_prefix(rest_.empty() ? 0 : 1);
    end_ = take_hexadecimal();
  }

  bool holds(std::uintptr_t address) const { return begin_ <= address && address < end_; }
  /// Empty for memory without a file.
  std::string_view path() const {
    const std::size_t slash = rest_.find('/');
    return slash == std::string_view::npos ? std::string_view() : rest_.substr(slash);
  }

 private:
  std::uintptr_t take_hexadecimal() {
    std::uintptr_t value = 0;
    while (!rest_.empty()) {
      const char digit = rest_.front();
      const bool is_decimal = digit >= '0' && digit <= '9';
      if (!is_decimal && (digit < 'a' || digit > 'f')) break;
      value = value * 16 + static_cast<std::uintptr_t>(is_decimal ? digit - '0' : digit - 'a' + 10);
      rest_.remove_prefix(1);
    }
    return value;
  }

  std::string_view rest_;
  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
};

/// Reads lines of a file into memory of its own; those that are too long lose their ends.
class LineReader {
 public:
  explicit LineReader(const char* path) : descriptor_(::open(path, O_RDONLY | O_CLOEXEC)) {}
  ~LineReader() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// False at the end. The line holds until the next call.
  bool next(std::string_view& line) {
    std::size_t size = 0;
    char byte = 0;
    bool read_any = false;
    while (take(byte)) {
      read_any = true;
      if (byte == '\n') break;
      if (size < line_.size()) line_[size++] = byte;
    }
    line = std::string_view(line_.data(), size);
    return read_any;
  }

 private:
  bool take(char& byte) {
    if (at_ == filled_) {
      ssize_t count = 0;
      do {
        count = descriptor_ < 0 ? 0 : ::read(descriptor_, chunk_.data(), chunk_.size());
      } while (count < 0 && errno == EINTR);
      at_ = 0;
      filled_ = count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    if (at_ == filled_) return false;
    byte = chunk_[at_++];
    return true;
  }

  int descriptor_;
  std::array<char, 1024> chunk_{};
  std::array<char, 1024> line_{};
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
};

void print(std::string_view text) {
  static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()) < 0);
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  LineReader maps("/proc/self/maps");
  for (std::string_view line; maps.next(line);) {
    const MappingLine mapping(line);
    if (!mapping.holds(reinterpret_cast<std::uintptr_t>(info->si_addr)) || mapping.path().empty()) continue;
    if (::isatty(STDERR_FILENO) != 0) print("\r\x1b[K");  // a status line may stand there
    print("plenum: error: ");
    print(mapping.path());
    print(" became shorter while it was read, or its disk failed; restore it and start again\n");
    ::_exit(kUserErrorCode);
  }
  ::signal(signal, SIG_DFL);  // the instruction runs again, and ends the process
}

}  // namespace

void explain_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace plenum::cli
