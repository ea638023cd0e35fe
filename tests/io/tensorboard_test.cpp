#include "plenum/io/tensorboard.h"

#include <bit>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/io/crc32c.h"
#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

template <typename Value>
Value take(std::string_view& bytes) {
  Value value{};
  EXPECT_GE(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<unsigned char>(bytes);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

/// The fields of a protocol-buffer message: numbers as their bits, parts as bytes.
struct Fields {
  std::map<std::uint64_t, std::uint64_t> numbers;
  std::multimap<std::uint64_t, std::string> parts;
};

Fields parse_message(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    switch (key & 7) {
      case 0:
        fields.numbers[key >> 3] = take_varint(bytes);
        break;
      case 1:
        fields.numbers[key >> 3] = take<std::uint64_t>(bytes);
        break;
      case 5:
        fields.numbers[key >> 3] = take<std::uint32_t>(bytes);
        break;
      default: {
        const std::uint64_t size = take_varint(bytes);
        fields.parts.emplace(key >> 3, bytes.substr(0, size));
        bytes.remove_prefix(size);
      }
    }
  }
  return fields;
}

std::uint32_t unmask(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

std::vector<Fields> read_events(const std::string& path) {
  const std::string text = read_file(path);
  std::string_view bytes = text;
  std::vector<Fields> events;
  while (!bytes.empty()) {
    const std::string_view length = bytes.substr(0, 8);
    const auto size = take<std::uint64_t>(bytes);
    EXPECT_EQ(unmask(take<std::uint32_t>(bytes)), crc32c(length));
    const std::string_view event = bytes.substr(0, size);
    bytes.remove_prefix(size);
    EXPECT_EQ(unmask(take<std::uint32_t>(bytes)), crc32c(event));
    events.push_back(parse_message(event));
  }
  return events;
}

/// The version, and where the session starts.
constexpr std::size_t kEventsAtBegin = 2;

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventFile, BeginsWithItsVersionAndFirstStep) {
  const test::TemporaryDirectory directory;
  const EventFile file(directory / "tensorboard", "host", 42, 1234567.5, 201);
  EXPECT_EQ(file.path(), directory / "tensorboard/events.out.tfevents.0001234567.host.42.0");
  const std::vector<Fields> events = read_events(file.path());
  ASSERT_EQ(events.size(), kEventsAtBegin);
  EXPECT_EQ(events[0].numbers.at(1), std::bit_cast<std::uint64_t>(1234567.5));
  EXPECT_EQ(events[0].parts.find(3)->second, "brain.Event:2");
  EXPECT_EQ(events[1].numbers.at(2), 201u);
  ASSERT_EQ(events[1].parts.count(7), 1u) << "no session log, so TensorBoard would show repeated steps";
  EXPECT_EQ(parse_message(events[1].parts.find(7)->second).numbers.at(1), 1u) << "not a start";
}

TEST(EventFile, HoldsTheScalarsOfEachStep) {
  const test::TemporaryDirectory directory;
  EventFile file(directory.path(), "host", 1, 10, 1);
  const std::vector<Scalar> first = {{"train/loss", 10.5f}, {"train/lr", 1e-4f}};
  const std::vector<Scalar> second = {{"eval/loss", -1}};
  file.append(1, 11.25, first);
  file.append(std::int64_t{1} << 40, 12, second);
  EXPECT_EQ(read_events(file.path()).size(), kEventsAtBegin) << "steps were written before flush";
  file.flush();
  const std::vector<Fields> events = read_events(file.path());
  ASSERT_EQ(events.size(), kEventsAtBegin + 2);
  const Fields& event = events[kEventsAtBegin];
  EXPECT_EQ(event.numbers.at(1), std::bit_cast<std::uint64_t>(11.25));
  EXPECT_EQ(event.numbers.at(2), 1u);
  const Fields summary = parse_message(event.parts.find(5)->second);
  std::map<std::string, float> values;
  for (const auto& [field, part] : summary.parts) {
    EXPECT_EQ(field, 1u);
    const Fields value = parse_message(part);
    values[value.parts.find(1)->second] =
        std::bit_cast<float>(static_cast<std::uint32_t>(value.numbers.at(2)));
  }
  EXPECT_THAT(values,
              testing::ElementsAre(testing::Pair("train/loss", 10.5f), testing::Pair("train/lr", 1e-4f)));
  EXPECT_EQ(events.back().numbers.at(2), std::uint64_t{1} << 40);
}

TEST(EventFile, NeverOverwritesAnother) {
  const test::TemporaryDirectory directory;
  EventFile first(directory.path(), "host", 1, 10, 1);
  const EventFile second(directory.path(), "host", 1, 10, 1);
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(read_events(first.path()).size(), kEventsAtBegin);
}

TEST(EventFile, NamesAFileThatCannotBeWritten) {
  const test::TemporaryDirectory directory;
  test::expect_user_error([&] { EventFile(directory.write("file", "") + "/x", "host", 1, 10, 1); },
                          "file is a file, not a directory");
  EventFile file(directory.path(), "host", 1, 10, 1);
  const test::FileSizeLimit full_disk(64);
  const std::vector<Scalar> scalars = {{"train/loss", 1}};
  file.append(1, 11, scalars);
  test::expect_user_error([&] { file.flush(); }, "cannot write");
}

}  // namespace
}  // namespace plenum::io
