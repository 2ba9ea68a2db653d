#include "runtime/process/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "api/role_type.h"
#include "base/process_usage.h"

namespace hetero::process {
namespace {

using ::testing::HasSubstr;

class IdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("HETERO_ROLE", "cpu", 1);
    setenv("HETERO_INDEX", "3", 1);
    setenv("HETERO_INCARNATION", "1700000000000000001", 1);
    setenv("HETERO_HEAD_ADDRESS", "10.0.0.7:7070", 1);
    setenv("HETERO_JOB_UID", "u-1", 1);
  }
  void TearDown() override {
    for (const char* name : {"HETERO_ROLE", "HETERO_INDEX", "HETERO_INCARNATION",
                             "HETERO_HEAD_ADDRESS", "HETERO_JOB_UID", "HETERO_TLS", "HETERO_TLS_CA",
                             "HETERO_TLS_OPERATOR_CA", "HETERO_CPU_REQUEST_MILLICORES"}) {
      unsetenv(name);
    }
  }
};

TEST_F(IdentityTest, ComesFromTheEnvironment) {
  const absl::StatusOr<Identity> identity = IdentityFromEnvironment();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(MemberName(identity->member), "cpu-3");
  EXPECT_EQ(identity->member.incarnation(), 1700000000000000001);
  EXPECT_EQ(identity->head_address, "10.0.0.7:7070");
  EXPECT_FALSE(identity->tls.plain_text);
}

TEST_F(IdentityTest, NamesWhatIsMissingOrMalformed) {
  setenv("HETERO_INDEX", "three", 1);
  EXPECT_THAT(std::string(IdentityFromEnvironment().status().message()), HasSubstr("HETERO_INDEX"));
  setenv("HETERO_INDEX", "0", 1);
  unsetenv("HETERO_HEAD_ADDRESS");
  EXPECT_THAT(std::string(IdentityFromEnvironment().status().message()),
              HasSubstr("HETERO_HEAD_ADDRESS"));
}

TEST_F(IdentityTest, TlsNeedsTheJobThatCertificatesAreOf) {
  unsetenv("HETERO_JOB_UID");
  EXPECT_THAT(std::string(IdentityFromEnvironment().status().message()),
              HasSubstr("HETERO_JOB_UID"));
  setenv("HETERO_TLS", "plain-text", 1);
  EXPECT_TRUE(IdentityFromEnvironment().ok());
}

TEST_F(IdentityTest, PeersAreNamedByJobAndRole) {
  const base::TlsOptions tls =
      TlsWith({.ca_file = "ca"}, "u-1", {api::kCpuWorkerType, api::kGpuWorkerType});
  EXPECT_EQ(tls.ca_file, "ca");
  EXPECT_THAT(tls.peer_uris,
              ::testing::ElementsAre("hetero://u-1/CPUWorker", "hetero://u-1/GPUWorker"));
}

TEST_F(IdentityTest, TheStatusPortIsTheOperatorsAlone) {
  setenv("HETERO_TLS_CA", "/etc/hetero/ca.crt", 1);
  EXPECT_THAT(std::string(HeadTlsFromEnvironment().status().message()),
              HasSubstr("HETERO_TLS_OPERATOR_CA"));
  setenv("HETERO_TLS_OPERATOR_CA", "/etc/hetero/operator-ca.crt", 1);
  const absl::StatusOr<HeadTls> tls = HeadTlsFromEnvironment();
  ASSERT_TRUE(tls.ok()) << tls.status();
  EXPECT_EQ(tls->members.ca_file, "/etc/hetero/ca.crt");
  EXPECT_THAT(tls->members.peer_uris,
              ::testing::ElementsAre("hetero://u-1/CPUWorker", "hetero://u-1/GPUWorker"));
  EXPECT_EQ(tls->status.ca_file, "/etc/hetero/operator-ca.crt");
  EXPECT_THAT(tls->status.peer_uris, ::testing::ElementsAre("hetero://operator"));
}

TEST_F(IdentityTest, CoresAreThoseOfTheRequestWhenThereIsNoQuota) {
  const int usable = CoresFromEnvironment();
  EXPECT_GE(usable, 1);
  setenv("HETERO_CPU_REQUEST_MILLICORES", "0", 1);  // no request
  EXPECT_EQ(CoresFromEnvironment(), usable);
  setenv("HETERO_CPU_REQUEST_MILLICORES", "1000000", 1);
  EXPECT_EQ(CoresFromEnvironment(), usable);
  if (base::CgroupCpuQuota()) GTEST_SKIP() << "this process has a CPU quota";
  setenv("HETERO_CPU_REQUEST_MILLICORES", "250", 1);
  EXPECT_EQ(CoresFromEnvironment(), 1);
}

TEST(AdvertisedAddress, IsThePodsWhereAnyAddressWasBound) {
  EXPECT_EQ(AdvertisedAddress("0.0.0.0:7080", "10.1.2.3"), "10.1.2.3:7080");
  EXPECT_EQ(AdvertisedAddress("0.0.0.0:7080", "fd00::3"), "[fd00::3]:7080");
  EXPECT_EQ(AdvertisedAddress("[::]:7080", "10.1.2.3"), "10.1.2.3:7080");
  EXPECT_EQ(AdvertisedAddress("127.0.0.1:7080", "10.1.2.3"), "127.0.0.1:7080");
  EXPECT_EQ(AdvertisedAddress("unix:/run/cpu-0.sock", "10.1.2.3"), "unix:/run/cpu-0.sock");
}

TEST(MemberName, HasTheLocalRankWhenThereAreSeveral) {
  v1::Identity identity;
  identity.set_role("gpu");
  identity.set_index(1);
  identity.set_local_rank(2);
  EXPECT_EQ(MemberName(identity), "gpu-1.2");
}

}  // namespace
}  // namespace hetero::process
