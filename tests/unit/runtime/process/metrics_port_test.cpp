#include "runtime/process/metrics_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

namespace hetero::process {
namespace {

using ::testing::HasSubstr;

TEST(MetricsPort, ServesTotalsAndProgress) {
  absl::StatusOr<std::unique_ptr<MetricsPort>> metrics = MetricsPort::Open("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  httplib::Client client("127.0.0.1", (*metrics)->port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  (*metrics)->SetReady();
  EXPECT_EQ(client.Get("/readyz")->status, 200);

  v1::Heartbeat heartbeat;
  heartbeat.mutable_counters()->set_samples(64);
  heartbeat.mutable_progress()->set_step(3);
  (*metrics)->Update(heartbeat);
  heartbeat.mutable_counters()->set_samples(128);
  (*metrics)->Update(heartbeat);
  const std::string text = client.Get("/metrics")->body;
  EXPECT_THAT(text, HasSubstr("hetero_samples_total 128"));
  EXPECT_THAT(text, HasSubstr("hetero_step 3"));
}

TEST(MetricsPort, ServesReadingsOfEachGpu) {
  const auto metrics = MetricsPort::Open("127.0.0.1:0", HETERO_FAKE_NVML);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  (*metrics)->Update(v1::Heartbeat());
  const std::string text = httplib::Client("127.0.0.1", (*metrics)->port()).Get("/metrics")->body;
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_utilization{gpu="0",name="Fake 0"} 0.75)"));
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_memory_used_bytes{gpu="1",name="Fake 1"} 60)"));
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_memory_total_bytes{gpu="0",name="Fake 0"} 80)"));
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_power_watts{gpu="0",name="Fake 0"} 350.5)"));
  EXPECT_THAT(text, HasSubstr(R"(hetero_gpu_temperature_celsius{gpu="1",name="Fake 1"} 61)"));
}

TEST(MetricsPort, IsOptionalAndNamesABadAddress) {
  EXPECT_EQ(*MetricsPort::Open(""), nullptr);
  const absl::Status bad = MetricsPort::Open("localhost").status();
  EXPECT_THAT(std::string(bad.message()), HasSubstr("localhost"));
  EXPECT_FALSE(MetricsPort::Open("127.0.0.1:99999").ok());
}

// Pods of a cluster without IPv4 have no other address, and the kubelet asks there whether they are
// ready.
TEST(MetricsPort, IsReachedByIpv6Too) {
  for (const char* address : {"[::1]:0", "0.0.0.0:0", "[::]:0"}) {
    const auto metrics = MetricsPort::Open(address);
    if (!metrics.ok()) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
    const httplib::Result answer = httplib::Client("::1", (*metrics)->port()).Get("/healthz");
    if (!answer) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
    EXPECT_EQ(answer->status, 200) << address;
  }
}

TEST(MetricsPort, SaysThatAPortIsTaken) {
  const auto first = MetricsPort::Open("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  const absl::Status second = MetricsPort::Open(address).status();
  EXPECT_THAT(std::string(second.message()), HasSubstr(std::to_string((*first)->port())));
}

}  // namespace
}  // namespace hetero::process
