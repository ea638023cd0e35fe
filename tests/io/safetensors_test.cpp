#include "plenum/io/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

/// A file of a header and as many zero bytes as asked for.
std::string file_of(std::string_view header, std::size_t data_bytes) {
  const std::uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  bytes += header;
  bytes.append(data_bytes, '\0');
  return bytes;
}

template <typename Stored>
std::string bytes_of(std::initializer_list<Stored> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(Stored)};
}

std::string written(std::vector<NamedFloats> tensors) {
  std::string bytes;
  write_safetensors(std::move(tensors), [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

void expect_refused(std::string_view header, std::size_t data_bytes, std::string_view reason) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("weights.safetensors", file_of(header, data_bytes));
  const std::string message = test::user_error_of([&] { SafetensorsFile{path}; });
  EXPECT_THAT(message, testing::HasSubstr(reason)) << header;
  EXPECT_THAT(message, testing::HasSubstr("weights.safetensors")) << header;
}

TEST(SafetensorsFile, ReadsWhatWasWritten) {
  const test::TemporaryDirectory directory;
  const std::vector<float> matrix = {1, 2, 3, 4, 5, -0.0f};
  const std::vector<float> scalar = {std::numeric_limits<float>::infinity()};
  const std::string path = directory.write(
      "x", written({{"b", {2, 3}, matrix}, {"a.b\"\xc3\xa9", {}, scalar}, {"nothing", {0, 7}, {}}}));
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_NE(file.find("b"), nullptr);
  EXPECT_EQ(file.find("b")->sizes, (std::vector<std::int64_t>{2, 3}));
  std::vector<float> values(6);
  file.read(*file.find("b"), values);
  EXPECT_EQ(std::memcmp(values.data(), matrix.data(), 24), 0);
  values.resize(1);
  file.read(*file.find("a.b\"\xc3\xa9"), values);
  EXPECT_EQ(values, scalar);
  file.read(*file.find("nothing"), {});
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(SafetensorsFile, ReadsElementsFromAnywhereOn) {
  const test::TemporaryDirectory directory;
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  const SafetensorsFile file(
      directory.write("x", written({{"a", {2}, std::span(matrix).last(2)}, {"b", {2, 3}, matrix}})));
  std::vector<float> part(3);
  file.read(*file.find("b"), 2, part);
  EXPECT_THAT(part, testing::ElementsAre(3, 4, 5));
  EXPECT_THROW(file.read(*file.find("b"), 4, part), base::InternalError);
}

TEST(SafetensorsFile, MayHoldNothing) {
  const test::TemporaryDirectory directory;
  EXPECT_TRUE(SafetensorsFile(directory.write("x", written({}))).tensors().empty());
  EXPECT_TRUE(SafetensorsFile(directory.write("y", file_of("{}   ", 0))).tensors().empty());
}

TEST(SafetensorsFile, ConvertsToFloat) {
  const test::TemporaryDirectory directory;
  // A header of odd length, so that nothing is aligned.
  const std::string header = R"({"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                             R"("i":{"dtype":"I64","shape":[2],"data_offsets":[8,24]},)"
                             R"("h":{"dtype":"F16","shape":[7],"data_offsets":[24,38]},)"
                             R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[38,42]}})";
  std::string text = file_of(header + std::string(1 - header.size() % 2, ' '), 0);
  ASSERT_EQ(text.size() % 2, 1u);
  text += bytes_of<double>({0.1}) + bytes_of<std::int64_t>({-3, 1 << 20});
  text += bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x0001, 0x83ff, 0x7bff, 0xfc00, 0x7e00});
  text += bytes_of<std::uint16_t>({0x3f80, 0xff80});
  const SafetensorsFile file(directory.write("x", text));
  const auto read = [&](const char* name) {
    std::vector<float> values(file.find(name)->num_elements);
    file.read(*file.find(name), values);
    return values;
  };
  EXPECT_EQ(read("d"), std::vector<float>{0.1f});
  EXPECT_EQ(read("i"), (std::vector<float>{-3, 1 << 20}));
  const std::vector<float> halves = read("h");
  EXPECT_EQ(std::vector<float>(halves.begin(), halves.end() - 1),
            (std::vector<float>{1, -2, 0x1p-24f, -1023 * 0x1p-24f, 65504, -INFINITY}));
  EXPECT_TRUE(std::isnan(halves.back()));
  EXPECT_EQ(read("b"), (std::vector<float>{1, -INFINITY}));
}

TEST(SafetensorsFile, NamesATypeThatItCannotConvert) {
  const test::TemporaryDirectory directory;
  const SafetensorsFile file(
      directory.write("x", file_of(R"({"q":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})", 4)));
  std::vector<float> values(4);
  test::expect_user_error([&] { file.read(*file.find("q"), values); }, "tensor q has dtype I8");
}

TEST(SafetensorsFile, RefusesHeadersThatLie) {
  const auto tensor = [](std::string_view fields) { return R"({"w":{)" + std::string(fields) + "}}"; };
  expect_refused("[]", 0, "does not begin with {");
  expect_refused(" {}", 0, "does not begin with {");
  expect_refused("{", 0, "not JSON");
  expect_refused("{}}", 0, "not JSON");
  expect_refused(R"({"w":NaN})", 0, "not JSON");
  expect_refused("{\"\xff\":{}}", 0, "not JSON");
  expect_refused(R"({"w":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}})", 4, "not JSON");
  expect_refused(R"({"w":3})", 0, "dtype, shape and data_offsets: w");
  expect_refused(tensor(R"("dtype":"F32","shape":[1])"), 4, "dtype, shape and data_offsets: w");
  expect_refused(tensor(R"("dtype":"F32","shape":[1],"offsets":[0,4])"), 4, "w has no data_offsets");
  expect_refused(tensor(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])"), 4, "unknown dtype: \"F33\"");
  expect_refused(tensor(R"("dtype":32,"shape":[1],"data_offsets":[0,4])"), 4, "unknown dtype: 32");
  expect_refused(tensor(R"("dtype":"F32","shape":1,"data_offsets":[0,4])"), 4, "shape of tensor w");
  expect_refused(tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4, "whole numbers from 0: -1");
  expect_refused(tensor(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), 4, "whole numbers");
  expect_refused(tensor(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])"), 4,
                 "whole numbers");
  expect_refused(tensor(R"("dtype":"F32","shape":[4294967296,4294967296,1],"data_offsets":[0,0])"), 0,
                 "more elements than can be counted");
  expect_refused(tensor(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])"), 0,
                 "do not match its shape");
  expect_refused(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4, "4 bytes for F32 of [2]");
  expect_refused(tensor(R"("dtype":"F4","shape":[1],"data_offsets":[0,0])"), 0, "do not match its shape");
  expect_refused(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), 4, "a beginning and an end");
  expect_refused(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])"), 4, "a beginning and an end");
  expect_refused(R"({"__metadata__":{"format":1}})", 0, "object of texts: format is 1");
  expect_refused(R"({"__metadata__":[]})", 0, "object of texts");
}

TEST(SafetensorsFile, RefusesHolesOverlapsAndRepetitions) {
  const auto tensor = [](char name, int begin, int end) {
    return "\"" + std::string(1, name) + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  const auto header = [](const std::string& a, const std::string& b) { return "{" + a + "," + b + "}"; };
  expect_refused(header(tensor('a', 0, 4), tensor('b', 5, 6)), 6, "tensor b must begin");
  expect_refused(header(tensor('a', 0, 4), tensor('b', 3, 6)), 6, "tensor b must begin");
  expect_refused(header(tensor('a', 1, 4), tensor('b', 4, 6)), 6, "tensor a must begin");
  expect_refused(header(tensor('a', 0, 4), tensor('b', 4, 6)), 7, "must hold 6 bytes");
  expect_refused(header(tensor('a', 0, 4), tensor('b', 4, 6)), 5, "must hold 6 bytes");
  expect_refused(header(tensor('a', 0, 4), tensor('a', 4, 6)), 6, "a key twice: a");
  expect_refused(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0,
                 "a key twice: dtype");
}

TEST(SafetensorsFile, RefusesLengthsAndNestingWithoutLimit) {
  const test::TemporaryDirectory directory;
  const auto refuse = [&](std::string_view bytes, std::string_view reason) {
    const std::string path = directory.write("x", bytes);
    test::expect_user_error([&] { SafetensorsFile{path}; }, reason);
  };
  refuse("", "too short");
  refuse("1234567", "too short");
  refuse(std::string(8, '\xff') + "{}", "the header does not fit");
  refuse(std::string("\x03\0\0\0\0\0\0\0", 8) + "{}", "the header does not fit");
  refuse(file_of("{\"w\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", 0),
         "nested too deeply");
  test::expect_user_error([&] { SafetensorsFile{directory / "none"}; }, "none");
}

TEST(SafetensorsLayout, KnowsTheFileThatIsWrittenWithoutItsValues) {
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  const std::string bytes = written({{"b", {2, 3}, matrix}, {"a", {2}, std::span(matrix).first(2)}});
  const SafetensorsLayout layout({{"b", {2, 3}}, {"a", {2}}});
  EXPECT_EQ(layout.num_bytes(), bytes.size());
  EXPECT_TRUE(bytes.starts_with(layout.header()));
  EXPECT_EQ(layout.begin_of("a"), layout.header().size());
  EXPECT_EQ(bytes.substr(layout.begin_of("b")), bytes_of<float>({1, 2, 3, 4, 5, 6}));
  EXPECT_THROW(layout.begin_of("c"), base::InternalError);
}

TEST(WriteSafetensors, RefusesValuesThatDoNotFillTheirShape) {
  const std::vector<float> matrix = {1, 2, 3, 4, 5};
  EXPECT_THROW(written({{"a", {2, 3}, matrix}}), base::InternalError);
}

TEST(WriteSafetensors, OrdersByNameAndAlignsTheData) {
  const std::vector<float> one = {1};
  const std::string bytes = written({{"b", {1}, one}, {"a", {1, 1}, one}});
  EXPECT_EQ(bytes.substr(8, bytes.find(' ') - 8),
            R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
            R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  EXPECT_EQ(header_bytes % 8, 0u);
  EXPECT_EQ(bytes.size(), 8 + header_bytes + 8);
}

}  // namespace
}  // namespace plenum::io
