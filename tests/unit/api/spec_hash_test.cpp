#include "api/spec_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "api/manifest.h"
#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

std::string HashWith(const std::vector<std::string>& overrides) {
  const ManifestResult result = ParseManifest(kSmallest, overrides);
  EXPECT_EQ(FormatErrors(result.errors), "");
  return SpecHash(result.job.spec);
}

// Jobs run through upgrades of the operator: when this value changes, every one of them would seem
// to have another spec. Raise the scheme's number in spec_hash.cpp together with it.
TEST(SpecHashTest, IsTheSameInEveryVersion) { EXPECT_EQ(HashWith({}), "1-3a7b95ca318b138b"); }

TEST(SpecHashTest, WhatMayChangeWhilePodsRunIsNoPartOfIt) {
  const std::string plain = HashWith({});
  for (const std::vector<std::string>& overrides : std::vector<std::vector<std::string>>{
           {"runPolicy.suspend=true"},
           {"runPolicy.maxRestarts=7", "runPolicy.ttlSecondsAfterFinished=5"},
           {"runPolicy.stopGraceSeconds=7"},
           {"autoscaling=Enabled"},
           {"roles.cpu.replicas=5"},
           {"roles.cpu.minReplicas=0", "roles.cpu.maxReplicas=9"}}) {
    EXPECT_EQ(HashWith(overrides), plain) << ::testing::PrintToString(overrides);
  }
}

TEST(SpecHashTest, AFieldAtItsDefaultIsAsIfItWereAbsent) {
  EXPECT_EQ(HashWith({"training.precision=FP32", "network.tls=Enabled", "training.seed=0",
                      "dataset.shuffle={mode: Full, blockSize: 1024}"}),
            HashWith({}));
}

TEST(SpecHashTest, WhatPodsAreMadeFromChangesIt) {
  std::set<std::string> hashes = {HashWith({})};
  const std::vector<std::vector<std::string>> changes = {
      {"training.batchSizePerWorker=7"},
      {"training.seed=1"},
      {"dataset.samples=63999"},
      {"pipeline=[{op: Normalize}]"},
      {"network.tls=Disabled"},
      {"output={uri: 'file:///out'}"},
      {"storage=[{prefix: 's3://bucket'}]"},
      {"storage=[{prefix: 's3://bucket', secretRef: {name: keys}}]"},
      {"roles.gpu.replicas=2"},
      {"roles.gpu.gpusPerReplica=0"},
      {"training.model=", "training.optimizer=", "training.script={command: [a]}"},
      {"training.model=", "training.optimizer=", "training.script={command: [a, b]}"},
      {"roles.gpu.restartScope=Gang"},
      {"roles.cpu.template={spec: {hostNetwork: true}}"}};
  for (const auto& overrides : changes) hashes.insert(HashWith(overrides));
  EXPECT_EQ(hashes.size(), changes.size() + 1);
}

TEST(SpecHashTest, OnlyItsOwnSchemeCanBeCompared) {
  EXPECT_TRUE(IsComparableSpecHash(HashWith({})));
  EXPECT_FALSE(IsComparableSpecHash(""));
  EXPECT_FALSE(IsComparableSpecHash("2-0123456789abcdef"));
}

}  // namespace
}  // namespace hetero::api
