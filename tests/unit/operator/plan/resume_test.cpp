// What changes while a job is suspended, seen or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

// kubectl patch suspend=true, kubectl replace with another spec: no pass came between the two.
TEST(Resume, ASpecChangedInASuspensionThatNoPassSawBeginsANewAttempt) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const auto old_config = cluster.config_map->uid;
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster.ChangeSpec([](api::Spec& spec) {
    spec.run_policy.suspend = false;
    spec.training.batch_size_per_worker = 7;
  });
  cluster.Pass();
  EXPECT_EQ(cluster.State(ConditionType::kSuspended), "False/SpecChanged");
  cluster.HeadSays(HeadReport::State::kStopped);
  cluster.Settle();
  cluster.VanishTerminating();
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_NE(cluster.config_map->uid, old_config) << "the pods would read the old spec";
  for (const auto& [name, pod] : cluster.pods) EXPECT_EQ(pod->attempt, 2) << name;
  EXPECT_EQ(cluster.State(ConditionType::kSuspended), "False/Resumed");
}

TEST(Resume, WhatMayChangeWhilePodsRunBeginsNoAttempt) {
  ModelCluster cluster{Job().Cpus(2)};
  cluster.RunJob();
  cluster.ChangeSpec([](api::Spec& spec) {
    spec.roles[1].replicas = 3;
    spec.roles[1].min_replicas = 1;
    spec.run_policy.max_restarts = 9;
    spec.autoscaling = api::Switch::kEnabled;
  });
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.status().observed_generation, 2);
  EXPECT_THAT(cluster.calls, Not(Contains("delete pods")));
}

// An operator that kept no hash began it.
TEST(Resume, AJobOfAnEarlierOperatorIsNotRestarted) {
  for (const char* hash : {"", "0-ffff"}) {
    ModelCluster cluster{Job()};
    cluster.RunJob();
    const std::string kept = cluster.status().spec_hash;
    EXPECT_THAT(kept, StartsWith("1-"));
    cluster.Change([&](ObservedJob& job) { job.status.spec_hash = hash; });
    cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.max_restarts = 9; });
    cluster.Settle();
    EXPECT_EQ(cluster.status().attempt, 1);
    EXPECT_EQ(cluster.status().spec_hash, kept);
  }
}

// The Service selects pods by the head role's name, the NetworkPolicy lets in the operator of then.
TEST(Resume, NoObjectOfTheEarlierSpecStays) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const std::string service = cluster.service->uid, policy = cluster.network_policy->uid,
                    config = cluster.config_map->uid;
  cluster.Suspend();
  cluster.ChangeSpec([](api::Spec& spec) {
    spec.roles[0].name = "leader";
    spec.run_policy.suspend = false;
  });
  cluster.Settle();
  ASSERT_TRUE(cluster.Has("vit-leader-0"));
  EXPECT_NE(cluster.service->uid, service);
  EXPECT_NE(cluster.network_policy->uid, policy);
  EXPECT_NE(cluster.config_map->uid, config);
}

TEST(Resume, ANetworkPolicyThatWasDisabledMeanwhileIsGone) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Suspend();
  cluster.ChangeSpec([](api::Spec& spec) {
    spec.network = {.network_policy = api::Switch::kDisabled, .tls = api::Switch::kDisabled};
    spec.run_policy.suspend = false;
  });
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.pods.size(), 4u);
  EXPECT_EQ(cluster.network_policy, nullptr) << "the condition says that the ports are open";
  EXPECT_FALSE(cluster.secret) << "nobody would delete it any more";
}

}  // namespace
}  // namespace hetero::plan
