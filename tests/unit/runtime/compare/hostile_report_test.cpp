#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <regex>
#include <string>

#include "runtime/compare/comparison.h"
#include "tests/unit/runtime/compare/sample_runs.h"
#include "tests/unit/runtime/insight/html_flaw.h"

// Reports of any shape, from anybody: nothing crashes, and what is shown stays on its line.
namespace hetero::compare {
namespace {

using nlohmann::json;

class RandomJson {
 public:
  explicit RandomJson(uint32_t seed) : random_(seed) {}

  size_t Below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }

  json Value(int depth) {
    switch (Below(depth > 0 ? 9 : 7)) {
      case 0:
        return nullptr;
      case 1:
        return Below(2) == 0;
      case 2:
        return static_cast<int64_t>(Below(5)) - 1;
      case 3:
        return json::array({std::numeric_limits<double>::max(), -1e308, 5e-324, 0.25, 1e18,
                            uint64_t{18446744073709551615U}})[Below(6)];
      case 4:
        return Name();
      case 5:
        return std::string(Below(200), "x\n\x1b<&"[Below(5)]);
      case 6:
        return std::uniform_real_distribution<double>(-2, 1000)(random_);
      case 7: {
        json list = json::array();
        for (size_t i = Below(5); i > 0; --i) list.push_back(Value(depth - 1));
        return list;
      }
      default: {
        json object = json::object();
        for (size_t i = Below(5); i > 0; --i) object[Name()] = Value(depth - 1);
        return object;
      }
    }
  }

  // Replaces some values of it, at any depth.
  void Spoil(json& value) {
    if (Below(12) == 0) {
      value = Value(3);
    } else if (value.is_structured()) {
      for (json& part : value) Spoil(part);
      if (value.is_object() && Below(6) == 0) value[Name()] = Value(3);
      if (value.is_array() && Below(6) == 0) value.push_back(Value(3));
    }
  }

 private:
  std::string Name() {
    static const char* const kNames[] = {
        "name", "op",   "spec",  "roles", "replicas", "step",     "loss",   "points",  "seconds",
        "rank", "wait", "other", "type",  "config",   "pipeline", "prefix", "\x1b[2J", "\n<a>"};
    return kNames[Below(std::size(kNames))];
  }

  std::mt19937 random_;
};

void ExpectReadable(const Comparison& comparison) {
  const std::string text = ToText(comparison);
  for (const char c : text) {
    ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << text;
    ASSERT_NE(c, 0x7F) << text;
  }
  const std::string html = ToHtml(comparison);
  ASSERT_FALSE(std::regex_search(html, std::regex("[:\" ]-?(nan|inf)[%;\" <]"))) << html;
  ASSERT_EQ(insight::FirstFlaw(html), "") << html;
  ASSERT_TRUE(json::accept(ToJson(comparison)));
}

TEST(HostileReports, AreComparedWhateverTheirShape) {
  int compared = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomJson random(seed);
    std::vector<RunReport> runs;
    for (size_t count = 2 + random.Below(3); count > 0; --count) {
      json report = random.Below(2) == 0 ? ReportOfSlowRun() : ReportOfFastRun();
      random.Spoil(report);
      absl::StatusOr<RunReport> run = ParseReport(
          report.dump(-1, ' ', false, json::error_handler_t::replace), random.Value(0).dump());
      if (run.ok()) runs.push_back(*std::move(run));
    }
    if (runs.size() < 2) continue;
    ++compared;
    ASSERT_NO_FATAL_FAILURE(ExpectReadable(Compare(std::move(runs))));
  }
  EXPECT_GT(compared, 200);
}

TEST(HostileReports, AreNeverReadBeyondTheirEnd) {
  const std::string whole = ReportOfSlowRun().dump();
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_FALSE(ParseReport(whole.substr(0, size), "x").ok()) << size;
  }
}

}  // namespace
}  // namespace hetero::compare
