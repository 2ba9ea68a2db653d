#include "runtime/process/metrics_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "base/fake_clock.h"

namespace hetero::process {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsPortTest : public ::testing::Test {
 protected:
  std::unique_ptr<MetricsPort> Open(const char* nvml = "none") {
    return *MetricsPort::Open("127.0.0.1:0", clock_, nvml);
  }
  static std::string PageOf(const MetricsPort& port) {
    return httplib::Client("127.0.0.1", port.port()).Get("/metrics")->body;
  }
  base::FakeClock clock_;
};

TEST_F(MetricsPortTest, IsReadyWhenToldSo) {
  const auto metrics = Open();
  httplib::Client client("127.0.0.1", metrics->port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  metrics->SetReady();
  EXPECT_EQ(client.Get("/readyz")->status, 200);
}

TEST_F(MetricsPortTest, ARanksTotalsAreCountersOfSecondsAndSharesOfOne) {
  const auto metrics = Open();
  v1::Heartbeat heartbeat;
  heartbeat.mutable_counters()->set_samples(64);
  v1::Progress& progress = *heartbeat.mutable_progress();
  progress.set_step(3);
  progress.set_data_wait_percent(25);
  progress.mutable_waits()->set_workers(1.5);
  progress.mutable_phases()->set_forward(0.25);
  metrics->UpdateRank(heartbeat);
  heartbeat.mutable_counters()->set_samples(128);
  metrics->UpdateRank(heartbeat);
  EXPECT_THAT(PageOf(*metrics),
              AllOf(HasSubstr("hetero_samples_total 128\n"), HasSubstr("hetero_step 3\n"),
                    HasSubstr("hetero_data_wait_ratio 0.25\n"),
                    HasSubstr("hetero_data_wait_seconds_total{cause=\"workers\"} 1.5\n"),
                    HasSubstr("hetero_step_phase_seconds_total{phase=\"forward\"} 0.25\n")));
}

// A script that begins again counts its times anew.
TEST_F(MetricsPortTest, ACounterDoesNotFall) {
  const auto metrics = Open();
  v1::Heartbeat heartbeat;
  heartbeat.mutable_progress()->mutable_phases()->set_other(5);
  metrics->UpdateRank(heartbeat);
  heartbeat.mutable_progress()->mutable_phases()->set_other(2);
  metrics->UpdateRank(heartbeat);
  EXPECT_THAT(PageOf(*metrics), HasSubstr("hetero_step_phase_seconds_total{phase=\"other\"} 5\n"));
}

TEST_F(MetricsPortTest, CountsStepsByTheTimeThatTheyTook) {
  const auto metrics = Open();
  metrics->ObserveStep(0.003);
  metrics->ObserveStep(0.02);
  metrics->ObserveStep(300);
  EXPECT_THAT(PageOf(*metrics), AllOf(HasSubstr("hetero_step_seconds_bucket{le=\"0.004\"} 1\n"),
                                      HasSubstr("hetero_step_seconds_bucket{le=\"0.032\"} 2\n"),
                                      HasSubstr("hetero_step_seconds_bucket{le=\"131.072\"} 2\n"),
                                      HasSubstr("hetero_step_seconds_bucket{le=\"+Inf\"} 3\n")));
}

// The same operator may be in a pipeline twice.
TEST_F(MetricsPortTest, AnEntryOfThePipelineHasItsNameAndPlace) {
  const auto metrics = Open();
  metrics->SetOperators({"GaussianBlur", "GaussianBlur"});
  v1::Heartbeat heartbeat;
  metrics->UpdateWorker(heartbeat);  // nothing has been measured yet
  EXPECT_THAT(PageOf(*metrics), Not(HasSubstr("hetero_operator")));
  heartbeat.add_operator_costs()->set_cpu_seconds(2);
  heartbeat.add_operator_costs()->set_cpu_seconds(3);
  metrics->UpdateWorker(heartbeat);
  EXPECT_THAT(
      PageOf(*metrics),
      AllOf(HasSubstr("hetero_operator_cpu_seconds_total{entry=\"0\",op=\"GaussianBlur\"} 2\n"),
            HasSubstr("hetero_operator_cpu_seconds_total{entry=\"1\",op=\"GaussianBlur\"} 3\n")));
}

TEST_F(MetricsPortTest, ACheckpointHasTheMomentWhenItWasTold) {
  const auto metrics = Open();
  v1::Heartbeat heartbeat;
  heartbeat.mutable_progress()->set_step(1);
  metrics->UpdateRank(heartbeat);
  EXPECT_THAT(PageOf(*metrics), Not(HasSubstr("hetero_last_checkpoint")));
  heartbeat.mutable_progress()->set_checkpoint_step(1);
  clock_.Advance(std::chrono::seconds(60));
  metrics->UpdateRank(heartbeat);
  clock_.Advance(std::chrono::seconds(60));
  metrics->UpdateRank(heartbeat);
  const std::string page = PageOf(*metrics);
  EXPECT_THAT(page, HasSubstr("process_start_time_seconds 1767225600\n"));
  EXPECT_THAT(page, HasSubstr("hetero_last_checkpoint_timestamp_seconds 1767225660\n"));
}

TEST_F(MetricsPortTest, AJobIsInOneState) {
  const auto metrics = Open();
  v1::JobStatus status;
  metrics->UpdateJob(status);
  status.set_state(v1::JobStatus::RUNNING);
  metrics->UpdateJob(status);
  EXPECT_THAT(PageOf(*metrics), AllOf(HasSubstr("hetero_job_state{state=\"Running\"} 1\n"),
                                      HasSubstr("hetero_job_state{state=\"Waiting\"} 0\n"),
                                      HasSubstr("hetero_job_state{state=\"Failed\"} 0\n")));
}

TEST_F(MetricsPortTest, AFindingThatIsOverFallsToZero) {
  const auto metrics = Open();
  v1::JobStatus status;
  metrics->UpdateJob(status);
  EXPECT_THAT(PageOf(*metrics), HasSubstr("hetero_findings_active 0\n"));
  v1::Finding& finding = *status.add_findings();
  finding.set_rule("InputBound");
  finding.set_active(true);
  metrics->UpdateJob(status);
  EXPECT_THAT(PageOf(*metrics), AllOf(HasSubstr("hetero_findings{rule=\"InputBound\"} 1\n"),
                                      HasSubstr("hetero_findings_active 1\n")));
  metrics->UpdateJob(v1::JobStatus());
  EXPECT_THAT(PageOf(*metrics), AllOf(HasSubstr("hetero_findings{rule=\"InputBound\"} 0\n"),
                                      HasSubstr("hetero_findings_active 0\n")));
}

TEST_F(MetricsPortTest, NoMoreRulesGetALabelThanThereMayBe) {
  const auto metrics = Open();
  for (int i = 0; i < 200; ++i) {
    v1::JobStatus status;
    status.add_findings()->set_rule(std::to_string(i));
    metrics->UpdateJob(status);
  }
  const std::string page = PageOf(*metrics);
  EXPECT_THAT(page, HasSubstr("{rule=\"63\"}"));
  EXPECT_THAT(page, Not(HasSubstr("{rule=\"64\"}")));
}

TEST_F(MetricsPortTest, WhatTheReportDoesNotKnowIsLeftOut) {
  const auto metrics = Open();
  metrics->UpdateReport({});
  EXPECT_THAT(PageOf(*metrics),
              AllOf(HasSubstr("hetero_faults_total 0\n"), Not(HasSubstr("hetero_job_"))));
  metrics->UpdateReport(
      {.accuracy = 0.75,
       .workers = {{.role = "cpu", .restarts = 1}, {.role = "cpu", .restarts = 2}},
       .faults = {{.what = "cpu-0 was lost"}},
       .cost_dollars = 12.5});
  EXPECT_THAT(PageOf(*metrics), AllOf(HasSubstr("hetero_member_restarts_total{role=\"cpu\"} 3\n"),
                                      HasSubstr("hetero_faults_total 1\n"),
                                      HasSubstr("hetero_job_accuracy_ratio 0.75\n"),
                                      HasSubstr("hetero_job_spent_dollars 12.5\n")));
}

TEST_F(MetricsPortTest, ServesReadingsOfEachGpu) {
  const auto metrics = Open(HETERO_FAKE_NVML);
  metrics->UpdateRank(v1::Heartbeat());
  const std::string text = PageOf(*metrics);
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_utilization_ratio{gpu="0",name="Fake 0"} 0.75)"));
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_memory_used_bytes{gpu="1",name="Fake 1"} 60)"));
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_memory_total_bytes{gpu="0",name="Fake 0"} 80)"));
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_power_watts{gpu="0",name="Fake 0"} 350.5)"));
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_temperature_celsius{gpu="1",name="Fake 1"} 61)"));
}

TEST_F(MetricsPortTest, IsOptionalAndNamesABadAddress) {
  EXPECT_EQ(*MetricsPort::Open("", clock_), nullptr);
  const absl::Status bad = MetricsPort::Open("localhost", clock_).status();
  EXPECT_THAT(std::string(bad.message()), HasSubstr("localhost"));
  EXPECT_FALSE(MetricsPort::Open("127.0.0.1:99999", clock_).ok());
}

// Pods of a cluster without IPv4 have no other address, and the kubelet asks there whether they are
// ready.
TEST_F(MetricsPortTest, IsReachedByIpv6Too) {
  for (const char* address : {"[::1]:0", "0.0.0.0:0", "[::]:0"}) {
    const auto metrics = MetricsPort::Open(address, clock_);
    if (!metrics.ok()) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
    const httplib::Result answer = httplib::Client("::1", (*metrics)->port()).Get("/healthz");
    if (!answer) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
    EXPECT_EQ(answer->status, 200) << address;
  }
}

TEST_F(MetricsPortTest, SaysThatAPortIsTaken) {
  const auto first = Open();
  const std::string address = "127.0.0.1:" + std::to_string(first->port());
  const absl::Status second = MetricsPort::Open(address, clock_).status();
  EXPECT_THAT(std::string(second.message()), HasSubstr(std::to_string(first->port())));
}

}  // namespace
}  // namespace hetero::process
