#include "runtime/local/attachment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace hetero::local {
namespace {

TEST(ForOneRank, LeavesOneRankAndAllWhoPrepareForIt) {
  api::HeteroTrainingJob job;
  job.spec.roles = {
      {.name = "head", .type = api::RoleType::kHead},
      {.name = "big", .type = api::RoleType::kGpuWorker, .replicas = 2, .gpus_per_replica = 8},
      {.name = "cpu", .type = api::RoleType::kCpuWorker, .replicas = 3},
      {.name = "small", .type = api::RoleType::kGpuWorker, .replicas = 4}};
  const api::HeteroTrainingJob one = ForOneRank(job);
  EXPECT_EQ(one.spec.world_size(), 1);
  std::vector<std::string> roles;
  for (const api::Role& role : one.spec.roles) roles.push_back(role.name);
  EXPECT_THAT(roles, ::testing::ElementsAre("head", "big", "cpu"));
  EXPECT_EQ(one.spec.roles[2].replicas, 3);
}

TEST(NamesTheStream, OnlyTheAgentsOwnLineDoes) {
  EXPECT_TRUE(NamesTheStream("{\"socket\": \"/tmp/hetero-a/stream.sock\"}"));
  EXPECT_FALSE(NamesTheStream("{\"step\": 1}"));
  EXPECT_FALSE(NamesTheStream("loss {\"socket\": "));
  EXPECT_FALSE(NamesTheStream(""));
}

TEST(InputEnded, WhenTheLastWriterIsGone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(InputEnded(ends[0]));
  ASSERT_EQ(write(ends[1], "still here\n", 11), 11);
  EXPECT_FALSE(InputEnded(ends[0])) << "what was written is no end";
  ASSERT_EQ(write(ends[1], "bye\n", 4), 4);
  close(ends[1]);
  EXPECT_TRUE(InputEnded(ends[0]));
  close(ends[0]);
  EXPECT_TRUE(InputEnded(ends[0])) << "a closed one";
}

}  // namespace
}  // namespace hetero::local
