#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::cli {
namespace {

namespace fs = std::filesystem;

/// The program with its standard input and output at our hands.
class Program {
 public:
  explicit Program(const std::string& arguments) {
    int to_child[2];
    int from_child[2];
    if (::pipe(to_child) != 0 || ::pipe(from_child) != 0) throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(to_child[0], STDIN_FILENO);
      ::dup2(from_child[1], STDOUT_FILENO);
      for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(end);
      const std::string command = fmt::format("exec {} {} 2>&1", PLENUM_BINARY, arguments);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(to_child[0]);
    ::close(from_child[1]);
    input_ = to_child[1];
    output_ = from_child[0];
  }
  ~Program() {
    close_input();
    close_output();
    if (child_ > 0) wait();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(input_, text.data(), text.size());
      ASSERT_GT(count, 0);
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void close_input() {
    if (input_ >= 0) ::close(std::exchange(input_, -1));
  }
  void close_output() {
    if (output_ >= 0) ::close(std::exchange(output_, -1));
  }
  /// What comes next, waiting a minute at most.
  std::string read() {
    pollfd waiting{output_, POLLIN, 0};
    if (::poll(&waiting, 1, 60000) <= 0) return "<nothing came>";
    char bytes[1 << 16];
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    return std::string(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  std::string read_all() {
    std::string all;
    for (std::string part = read(); !part.empty(); part = read()) all += part;
    return all;
  }
  /// The exit code; 128 + signal if it died of one.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t child_ = -1;
  int input_ = -1;
  int output_ = -1;
};

class TokenizeCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    vocab_ = directory_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\nHello\n");
  }

  std::string options(const std::string& more = "") const {
    return fmt::format("tokenize --vocab {} {}", vocab_, more);
  }
  std::string output_of(const std::string& more, std::string_view input) const {
    Program program(options(more));
    program.write(input);
    program.close_input();
    std::string output = program.read_all();
    EXPECT_EQ(program.wait(), 0);
    return output;
  }

  test::TemporaryDirectory directory_;
  std::string vocab_;
};

TEST_F(TokenizeCommand, TurnsLinesIntoLinesOfIds) {
  EXPECT_EQ(output_of("", "Hello worlds\n\n  \nhello [SEP]\r\nno newline"), "5 6 7\n\n\n5 3\n1 1\n");
  EXPECT_EQ(output_of("", ""), "");
  EXPECT_EQ(output_of("", "\n"), "\n");
}

TEST_F(TokenizeCommand, TakesAClosedInputForAnEmptyOne) {
  const test::ProgramResult result = test::run_program(options() + " 0<&-");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, "");
}

TEST_F(TokenizeCommand, PrintsPiecesAndKeepsCaseWhenAsked) {
  EXPECT_EQ(output_of("--tokens", "Hello worlds\n"), "hello world ##s\n");
  EXPECT_EQ(output_of("--tokens --cased", "Hello worlds\n"), "Hello world ##s\n");
  EXPECT_EQ(output_of("--plain-text", "[SEP]\n"), "1 1 1\n");
}

TEST_F(TokenizeCommand, RefusesALineThatIsNotUtf8) {
  for (const char* threads : {"--threads 1", "--threads 3"}) {
    Program program(options(threads));
    program.write("h\xE9llo\n");
    program.close_input();
    EXPECT_EQ(
        program.read_all(),
        "plenum: error: a line is not UTF-8; convert the text, for instance by iconv -f latin1 -t utf-8: "
        "'h\uFFFDllo'\n");
    EXPECT_EQ(program.wait(), 2);
  }
}

TEST_F(TokenizeCommand, AnswersALineAtOnceWhileTheInputStaysOpen) {
  for (const char* threads : {"--threads 1", "--threads 3"}) {
    Program program(options(threads));
    program.write("hello\n");
    EXPECT_EQ(program.read(), "5\n");
    program.write("world\nhel");
    EXPECT_EQ(program.read(), "6\n");
    program.write("lo\n");
    EXPECT_EQ(program.read(), "5\n");
    program.close_input();
    EXPECT_EQ(program.read_all(), "");
    EXPECT_EQ(program.wait(), 0);
  }
}

TEST_F(TokenizeCommand, KeepsTheOrderOfLinesOnManyThreads) {
  const std::string text = [] {
    std::string lines;
    for (int i = 0; i < 200000; ++i) lines += i % 3 == 0 ? "hello\n" : i % 3 == 1 ? "world worlds\n" : "\n";
    return lines;
  }();
  const auto through = [this](const std::string& threads, const std::string& input) {
    const std::string path = vocab_ + ".in";
    std::ofstream(path, std::ios::binary) << input;
    Program program(options(threads) + " < " + path);
    std::string output = program.read_all();
    EXPECT_EQ(program.wait(), 0);
    fs::remove(path);
    return output;
  };
  std::string expected;
  for (int i = 0; i < 200000; ++i) expected += i % 3 == 0 ? "5\n" : i % 3 == 1 ? "6 6 7\n" : "\n";
  EXPECT_EQ(through("--threads 1", text), expected);
  EXPECT_EQ(through("--threads 5", text), expected);
}

TEST_F(TokenizeCommand, TakesLinesLongerThanItsBlocks) {
  std::string line;
  std::string expected;
  for (int i = 0; i < 100000; ++i) {
    line += "worlds ";
    expected += i == 0 ? "6 7" : " 6 7";
  }
  const std::string path = vocab_ + ".long";
  std::ofstream(path) << line << "\nhello\n";
  Program program(options("--threads 2") + " < " + path);
  EXPECT_EQ(program.read_all(), expected + "\n5\n");
  EXPECT_EQ(program.wait(), 0);
  fs::remove(path);
}

TEST_F(TokenizeCommand, LeavesQuietlyWhenNobodyReads) {
  for (const char* threads : {"--threads 1", "--threads 3"}) {
    Program program(options(threads));
    program.close_output();
    program.write("hello\n");
    // The input stays open: it must notice the closed output by itself.
    EXPECT_EQ(program.wait(), 0);
  }
}

TEST_F(TokenizeCommand, RefusesOptionsThatDoNotFit) {
  const auto refusal = [](const std::string& arguments) {
    Program program(arguments);
    program.close_input();
    const std::string message = program.read_all();
    EXPECT_EQ(program.wait(), 2);
    return message;
  };
  EXPECT_EQ(refusal("tokenize"), "plenum: error: give either --vocab FILE or --tokenizer DIR\n");
  EXPECT_EQ(refusal("tokenize --vocab a --tokenizer b"),
            "plenum: error: give either --vocab FILE or --tokenizer DIR\n");
  EXPECT_EQ(refusal("tokenize --tokenizer b --cased"),
            "plenum: error: --cased is for --vocab; b states its own rules\n");
  EXPECT_EQ(refusal("tokenize --vocab /nonexistent/v.txt"),
            "plenum: error: cannot open /nonexistent/v.txt: No such file or directory\n");
}

}  // namespace
}  // namespace plenum::cli
