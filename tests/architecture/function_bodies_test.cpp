#include "tests/architecture/function_bodies.h"

#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plenum::architecture {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Each as "name first-last", with "gpu" behind where the GPU runs it.
std::vector<std::string> bodies_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::vector<std::string> found;
  for (const FunctionBody& body : function_bodies(lines)) {
    found.push_back(fmt::format("{} {}-{}{}", body.name, body.first_line, body.last_line,
                                body.is_device_code ? " gpu" : ""));
  }
  return found;
}

TEST(FunctionBodies, CountsFromTheOpeningBraceToTheClosingOne) {
  EXPECT_THAT(bodies_of("namespace a {\n\nint f(int x,\n      int y) {\n  return x;\n}\n\n}\n"),
              ElementsAre("f 4-6"));
}

TEST(FunctionBodies, FindsTestsAndMembersInAndOutsideTheirClass) {
  EXPECT_THAT(bodies_of("TEST(A, B) {\n}\nstruct alignas(8) S {\n  int f() const { return 1; }\n};\n"
                        "void S::g() && noexcept {}\nclass T final : public S {\n public:\n  ~T() {}\n};"),
              ElementsAre("TEST(A, B) 1-2", "f 4-4", "S::g 6-6", "~T 9-9"));
}

TEST(FunctionBodies, FindsOperatorsAndTemplates) {
  EXPECT_THAT(
      bodies_of("bool operator==(S a, S b) { return true; }\n"
                "template <int kN = 3, typename T = std::vector<int>>\nauto h(T x) -> decltype(x) {}\n"
                "int operator()(int x) const {}\nint operator[](int x) {}\nvoid k(S s = {}, int i = 2) {}"),
      ElementsAre("operator== 1-1", "h 3-3", "operator() 4-4", "operator[] 5-5", "k 6-6"));
}

TEST(FunctionBodies, FindsTheBodyOfAConstructorBehindItsMembers) {
  EXPECT_THAT(bodies_of("S::S(int a)\n    : a_(a), b_{a, 2},\n      c_({a}) {\n  run();\n}\nint after;"),
              ElementsAre("S::S 3-5"));
}

TEST(FunctionBodies, TakesWhatLiesWithinAFunctionAsPartOfIt) {
  EXPECT_THAT(bodies_of("void f() {\n  struct L { void m() {} };\n  const auto g = [](int x) { return x; };\n"
                        "  for (;;) { if (a) { b(); } }\n}"),
              ElementsAre("f 1-5"));
}

TEST(FunctionBodies, FindsLambdasOfTables) {
  EXPECT_THAT(bodies_of("const Row kTable[] = {\n    {1, [](int x) {\n       return x;\n     }},\n    {2, "
                        "[&]() -> int { return 2; }},\n};\n"),
              ElementsAre(" 2-4", " 5-5"));
}

TEST(FunctionBodies, LeavesDataAlone) {
  EXPECT_THAT(
      bodies_of("constexpr int kA[] = {1, 2};\nstd::map<int, int> m{{1, 2}};\nenum class E : char { A };\n"
                "namespace n {}\nextern \"C\" {}\nconst auto x = S{f(1), {2}};\nint g();\n"),
      IsEmpty());
}

TEST(FunctionBodies, ReadsNoCommentsLiteralsOrDirectives) {
  EXPECT_THAT(
      bodies_of("// void a() {\n/* void b() { */\nvoid f() {\n  say(\"}\\\"}\", '}', R\"x(})\")x\", 1'000);\n"
                "#define X }\n}\n"),
      ElementsAre("f 3-6"));
}

TEST(FunctionBodies, KnowsWhatRunsOnTheGpu) {
  EXPECT_THAT(
      bodies_of("__global__ void __launch_bounds__(32) f(int x) {}\n__device__ int g() {}\nint h() {}"),
      ElementsAre("f 1-1 gpu", "g 2-2 gpu", "h 3-3"));
}

}  // namespace
}  // namespace plenum::architecture
