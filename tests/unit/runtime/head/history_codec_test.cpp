#include "runtime/head/history_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hetero::head {
namespace {

using ::testing::HasSubstr;

v1::History Small() {
  v1::History history;
  history.set_run("run");
  history.set_elapsed_seconds(75);
  history.set_generation(3);
  history.set_startup_seconds(3.5);
  v1::AttemptHistory& attempt = *history.add_attempts();
  attempt.set_number(1);
  attempt.set_end(75);
  v1::FaultHistory& fault = *history.add_faults();
  fault.set_unix_ns(1'700'000'000'000'000'000);
  fault.set_member("gpu-0");
  fault.set_incarnation(42);
  fault.set_what("gpu-0 was lost");
  fault.set_recovery_seconds(2);
  return history;
}

v1::History Huge() {
  v1::History history = Small();
  for (int i = 0; i < 10'000; ++i) {
    history.add_losses()->set_step(i);
    history.add_evaluations()->set_step(i);
    v1::FaultHistory& fault = *history.add_faults();
    fault.set_member(absl::StrCat("cpu-", i));
    fault.set_what(std::string(2000, 'x') + "ä");
    v1::MemberHistory& member = *history.add_members();
    member.set_role("cpu");
    member.set_index(i);
    member.set_incarnation(1'700'000'000'000'000'000 + i);
    member.set_node(std::string(200, 'n'));
    member.mutable_now()->set_cpu_seconds(2);
    member.mutable_earlier()->set_cpu_seconds(1);
  }
  return history;
}

TEST(HistoryCodecTest, WhatFitsComesBackAsItWas) {
  const std::string text = EncodeHistory(Small(), kMaxHistoryText);
  const auto read = DecodeHistory(text, "run", 1);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), Small().SerializeAsString());
}

TEST(HistoryCodecTest, ALargeJobsHistoryKeepsItsSumsWithinTheLimit) {
  for (const size_t limit : {kMaxHistoryText, size_t{2000}, size_t{300}, kMaxHistoryFile}) {
    const std::string text = EncodeHistory(Huge(), limit);
    EXPECT_LE(text.size(), limit);
    const auto read = DecodeHistory(text, "run", 1);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->elapsed_seconds(), 75);
    EXPECT_EQ(read->attempts_size(), 1);
    if (limit < 2000) continue;
    double cpu_seconds = 0;
    for (const v1::MemberHistory& member : read->members()) {
      cpu_seconds += member.now().cpu_seconds() + member.earlier().cpu_seconds();
    }
    for (const v1::RoleHistory& role : read->roles()) cpu_seconds += role.sum().cpu_seconds();
    EXPECT_DOUBLE_EQ(cpu_seconds, 30'000);
    EXPECT_EQ(read->faults_size() + read->faults_left_out(), 10'001);
    EXPECT_EQ(read->faults(0).member(), "gpu-0");
    EXPECT_EQ(read->faults(read->faults_size() - 1).member(), "cpu-9999");
  }
}

TEST(HistoryCodecTest, AttemptsThatFindNoSpaceLeaveTheirSeconds) {
  v1::History history = Small();
  history.clear_attempts();
  for (int i = 1; i <= 5000; ++i) {
    v1::AttemptHistory& attempt = *history.add_attempts();
    attempt.set_number(i);
    attempt.set_begin(i);
    attempt.set_end(i + 0.5);
    attempt.set_cause(std::string(100, 'c'));
  }
  const auto read = DecodeHistory(EncodeHistory(history, kMaxHistoryText), "run", 5000);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_DOUBLE_EQ(read->attempts_left_out_seconds() + 0.5 * read->attempts_size(), 2500);
  EXPECT_EQ(read->attempts(read->attempts_size() - 1).number(), 5000);
}

// Small entries: more of them fit into the file than the next head believes.
TEST(HistoryCodecTest, AHeadReadsWhatAHeadWroteHoweverLongItsListsWere) {
  v1::History history = Small();
  for (int i = 0; i < 20'000; ++i) history.add_evaluations()->set_step(i);
  const auto read = DecodeHistory(EncodeHistory(history, kMaxHistoryFile), "run", 1);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->evaluations(read->evaluations_size() - 1).step(), 19'999);
}

TEST(HistoryCodecTest, WhatNoHeadWroteIsPassedOver) {
  const auto refused = [](const std::string& text, const std::string& why) {
    const auto read = DecodeHistory(text, "run", 1);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(why));
  };
  refused("not base64!", "no text that a head wrote");
  refused(absl::Base64Escape("\xff\xff\xff\xff"), "no text that a head wrote");
  refused(std::string(kMaxHistoryFile + 1, 'A'), "bytes, more than");
  const auto changed = [&](const std::function<void(v1::History&)>& change, const char* why) {
    v1::History history = Small();
    change(history);
    refused(absl::Base64Escape(history.SerializeAsString()), why);
  };
  changed([](v1::History& h) { h.set_run("another"); }, "it is of run 'another'");
  changed([](v1::History& h) { h.mutable_attempts(0)->set_number(2); }, "it knows attempt 2");
  changed([](v1::History& h) { h.mutable_attempts(0)->set_begin(80); }, "times that cannot be");
  changed([](v1::History& h) { h.set_elapsed_seconds(-1); }, "a number in it cannot be");
  changed([](v1::History& h) { h.set_elapsed_seconds(std::nan("")); }, "a number in it cannot be");
  changed([](v1::History& h) { h.set_elapsed_seconds(1e300); }, "a number in it cannot be");
  changed([](v1::History& h) { h.set_generation(INT64_MAX); }, "a number in it cannot be");
  changed([](v1::History& h) { h.set_reached_step(-1); }, "a number in it cannot be");
  changed([](v1::History& h) { h.set_reached_step(INT64_MAX); }, "a number in it cannot be");
  changed([](v1::History& h) { h.add_members()->set_restarts(-1); }, "a number of -0 cannot be");
  changed([](v1::History& h) { h.mutable_faults(0)->set_recovery_seconds(-1); },
          "a fault in it has a time that cannot be");
}

}  // namespace
}  // namespace hetero::head
