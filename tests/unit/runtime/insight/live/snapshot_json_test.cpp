#include "runtime/insight/live/snapshot_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/escaping.h"
#include "tests/support/paths.h"

namespace hetero::live {
namespace {

using nlohmann::json;

Snapshot FullSnapshot() {
  Snapshot snapshot;
  snapshot.job = "blur";
  snapshot.state = "Running";
  snapshot.message = "cpu-1: the process ended";
  snapshot.head_incarnation = 1'700'000'000'000'000'001;
  snapshot.seconds = 61.23;
  snapshot.step = 120;
  snapshot.total_steps = 400;
  snapshot.epoch = 2;
  snapshot.total_epochs = 4;
  snapshot.samples = 7680;
  snapshot.eta_seconds = 140.4;
  snapshot.samples_per_second = 210.456;
  snapshot.ceiling = 350;
  snapshot.wait_percent = 41.26;
  snapshot.verdict = "input-bound";
  snapshot.waits = insight::WaitSeconds{.no_worker = 0.1, .workers = 20.123456, .transfer = 2};
  snapshot.phases = insight::PhaseSeconds{.wait = 22.12, .forward = 10, .backward = 19.5};
  snapshot.last_loss = 1.23456;
  snapshot.last_accuracy = 0.5;
  snapshot.dollars = 0.212345;
  snapshot.dollars_per_hour = 12.92;
  snapshot.dollars_per_million_samples = 27.6;
  snapshot.waiting_dollars = 0.07;
  snapshot.findings = {{.rule = "InputBound",
                        .message = "each step waits 41 %",
                        .remedy = "raise roles.cpu.replicas",
                        .field = "roles.cpu.replicas",
                        .member = "",
                        .seconds = 22.1,
                        .dollars = 0.07}};
  snapshot.members = {{.name = "cpu-0",
                       .slot = 0,
                       .role = "cpu",
                       .node = "node-a",
                       .state = "Working",
                       .restarts = 1,
                       .samples_per_second = 105.23,
                       .busy_cores = 7.123,
                       .cores = 8,
                       .rss_bytes = int64_t{900} << 20,
                       .queued_threads = 0.4,
                       .bytes_per_second = 15'123'456},
                      {.name = "gpu-0",
                       .slot = 1,
                       .role = "gpu",
                       .rank = true,
                       .state = "Lost",
                       .gpu = 0.55,
                       .wait_percent = 41.26}};
  snapshot.operators = {{.name = "Decode",
                         .where = "CPUWorker",
                         .reason = "there is room",
                         .core_seconds = 0.00212345,
                         .cores = 0.446},
                        {.name = "mine.noise", .where = "CPUWorker", .python_seconds = 0.001}};
  snapshot.rates = {{60.04, 210.4, 41.2}, {61.2, 211, 41.3}};
  snapshot.losses = {{.step = 1, .loss = 2.30259}, {.step = 120, .loss = 1.23456}};
  snapshot.evaluations = {{.epoch = 1, .step = 100, .loss = 1.4, .accuracy = 0.5}};
  snapshot.lives = {.median = Spans{0.02, 0.3, 0.01, 0.2, 0.001, 0.13},
                    .p95 = Spans{0.1, 0.5, 0.02, 0.4, 0.002, 0.2},
                    .batches = 93,
                    .latest = Spans{0.02, 0.31, 0.01, 0.2, 0.001, -1},
                    .latest_read = 0.05,
                    .latest_step = 119,
                    .latest_worker = "cpu-0"};
  snapshot.heat.columns = {{29, "o "}, {30, "n0"}};
  snapshot.heat.gpus = {{30, " R"}};
  snapshot.events = {{.seconds = 12.3,
                      .kind = "Fault",
                      .member = "cpu-1",
                      .text = "killed by SIGKILL",
                      .recovery_seconds = 3.21}};
  snapshot.log = {{.number = 7, .member = "cpu-0", .unix_ms = 1'700'000'000'123, .text = "a line"}};
  return snapshot;
}

TEST(SnapshotJson, EqualsTheGoldenFile) {
  const std::string path =
      testing::SourceDir() + "/tests/unit/runtime/insight/live/golden_snapshot.json";
  const std::string text = ToJson(FullSnapshot()).dump(1) + "\n";
  if (std::getenv("HETERO_WRITE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << "HETERO_WRITE_GOLDEN=1 writes it anew";
}

TEST(SnapshotJson, WhatIsNotKnownIsLeftOut) {
  const json object = ToJson({});
  for (const char* key :
       {"etaSeconds", "samplesPerSecond", "waits", "loss", "dollars", "message"}) {
    EXPECT_FALSE(object.contains(key)) << key;
  }
  EXPECT_EQ(object.at("lives"), json({{"batches", 0}}));
}

// Who would apply a patch with them would lose the places.
TEST(SnapshotJson, ObjectsHoldNoNull) {
  Snapshot snapshot = FullSnapshot();
  snapshot.samples_per_second = std::numeric_limits<double>::quiet_NaN();
  snapshot.dollars = std::numeric_limits<double>::infinity();
  std::vector<json> left = {ToJson(snapshot)};
  while (!left.empty()) {
    const json object = left.back();
    left.pop_back();
    for (const auto& [key, value] : object.items()) {
      EXPECT_FALSE(value.is_null()) << key;
      if (value.is_object()) left.push_back(value);
    }
  }
}

TEST(SnapshotJson, FiguresHaveTheDigitsThatAPersonSees) {
  Snapshot snapshot;
  snapshot.samples_per_second = 123'456;
  EXPECT_EQ(ToJson(snapshot).at("samplesPerSecond"), 123'000);
  snapshot.samples_per_second = 0.00012344;
  EXPECT_EQ(ToJson(snapshot).at("samplesPerSecond"), 0.000123);
  snapshot.samples_per_second = 0;
  EXPECT_EQ(ToJson(snapshot).at("samplesPerSecond"), 0);
}

TEST(SnapshotJson, AHeatIsOneOfSixtyFourCharacters) {
  EXPECT_EQ(HeatOf(0), '0');
  EXPECT_EQ(HeatOf(1), 'o');
  EXPECT_EQ(HeatOf(7), 'o');
  EXPECT_EQ(HeatOf(-1), '0');
  EXPECT_EQ(HeatOf(0.5), 'P');
  EXPECT_EQ(HeatOf(std::nullopt), ' ');
  EXPECT_EQ(HeatOf(std::numeric_limits<double>::quiet_NaN()), ' ');
}

TEST(SnapshotJson, TextsMayBeAnyBytes) {
  Snapshot snapshot;
  snapshot.job =
      "a\xff"
      "b";
  EXPECT_THAT(ToText(ToJson(snapshot)), ::testing::HasSubstr("a\xef\xbf\xbd"
                                                             "b"));
}

TEST(MemberDetailText, HasAByteForEachCoreAndGpu) {
  const std::string busy("\x00\x80\xff", 3);
  MemberDetail detail{.name = "gpu-0", .seconds = 12.5};
  detail.columns.push_back({.seconds = 12, .span = 0.5, .cores = busy, .gpus = {255, 0}});
  detail.groups = {"pipeline", "feed"};
  detail.group_seconds = {12.3456, 0};
  detail.log = {{.number = 3, .member = "gpu-0", .unix_ms = 5, .text = "x"}};
  const json told = json::parse(ToText(detail));
  std::string cores, gpus;
  ASSERT_TRUE(absl::Base64Unescape(told["columns"][0][2].get<std::string>(), &cores));
  ASSERT_TRUE(absl::Base64Unescape(told["columns"][0][3].get<std::string>(), &gpus));
  EXPECT_EQ(cores, busy);
  EXPECT_EQ(gpus, std::string("\xff\x00", 2));
  EXPECT_EQ(told["groups"], json({{"pipeline", 12.35}, {"feed", 0}}));
  EXPECT_EQ(told["log"]["3"], json::array({"gpu-0", 5, "x"}));
}

}  // namespace
}  // namespace hetero::live
