#include "runtime/agent/script_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace hetero::agent {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

std::map<std::string, std::string> Variables(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    EXPECT_TRUE(variables.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second)
        << entry;
  }
  return variables;
}

// Two pods of two ranks, and one of one, in any order.
v1::Generation FiveRanks() {
  v1::Generation generation;
  const auto add = [&](const char* role, int index, int local, int rank) {
    v1::Rank& added = *generation.add_ranks();
    added.set_role(role);
    added.set_index(index);
    added.set_local_rank(local);
    added.set_rank(rank);
  };
  add("gpu", 1, 1, 3);
  add("gpu", 0, 0, 0);
  add("more", 0, 0, 4);
  add("gpu", 0, 1, 1);
  add("gpu", 1, 0, 2);
  return generation;
}

v1::Identity Member(const char* role, int index, int local) {
  v1::Identity identity;
  identity.set_role(role);
  identity.set_index(index);
  identity.set_local_rank(local);
  return identity;
}

TEST(RankPlaceTest, CountsAsTorchrunDoes) {
  const RankPlace place = PlaceIn(FiveRanks(), Member("gpu", 1, 1));
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.world_size, 5);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world_size, 2);
  EXPECT_EQ(place.group_rank, 1);
  EXPECT_EQ(place.group_world_size, 3);
  const RankPlace last = PlaceIn(FiveRanks(), Member("more", 0, 0));
  EXPECT_EQ(last.rank, 4);
  EXPECT_EQ(last.local_world_size, 1);
  EXPECT_EQ(last.group_rank, 2);
}

ScriptEnvironment Script() {
  return {.place = {.rank = 3,
                    .world_size = 5,
                    .local_rank = 1,
                    .local_world_size = 2,
                    .group_rank = 1,
                    .group_world_size = 3},
          .role = "gpu",
          .run = "uid-7",
          .restart_count = 2,
          .max_restarts = 9,
          .master_host = "10.0.0.4",
          .master_port = 29411,
          .socket = "/tmp/s/script-3.sock",
          .checkpoint_uri = "file:///ck",
          .threads = 4};
}

TEST(ScriptEnvironmentTest, SaysWhatTorchrunSays) {
  const auto variables = Variables(MakeEnvironment({"PATH=/bin", "RANK=17"}, Script()));
  const std::map<std::string, std::string> expected = {
      {"PATH", "/bin"},
      {"RANK", "3"},
      {"LOCAL_RANK", "1"},
      {"WORLD_SIZE", "5"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"},
      {"GROUP_WORLD_SIZE", "3"},
      {"ROLE_NAME", "gpu"},
      {"ROLE_RANK", "3"},
      {"ROLE_WORLD_SIZE", "5"},
      {"MASTER_ADDR", "10.0.0.4"},
      {"MASTER_PORT", "29411"},
      {"TORCHELASTIC_RUN_ID", "uid-7"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_MAX_RESTARTS", "9"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"OMP_NUM_THREADS", "4"},
      {"PYTHONUNBUFFERED", "1"},
      {"HETERO_STREAM_SOCKET", "/tmp/s/script-3.sock"},
      {"HETERO_CHECKPOINT_URI", "file:///ck"}};
  EXPECT_EQ(variables, expected);
}

TEST(ScriptEnvironmentTest, TakesOutWhatIsForTheAgentAlone) {
  const auto variables = Variables(MakeEnvironment(
      {"HETERO_TLS=plain-text", "HETERO_TLS_KEY=/tls/key", "HETERO_TLS_CA=/tls/ca",
       "HETERO_HEAD_ADDRESS=10.0.0.1:7070", "HETERO_PARENT_PID=17", "HETERO_LAST_WORDS=/tmp/x",
       "HETERO_TERMINATION_LOG=/dev/termination-log", "HETERO_INCARNATION=5", "HETERO_RANK=1",
       "HETERO_STORAGE_0_ACCESS_KEY_ID=AKID", "HETERO_STORAGE_15_SECRET_ACCESS_KEY=hidden",
       "HETERO_JOB_NAME=job", "HETERO_JOB_UID=uid-7", "HETERO_LOG_LEVEL=debug"},
      Script()));
  for (const char* name :
       {"HETERO_TLS", "HETERO_TLS_KEY", "HETERO_TLS_CA", "HETERO_HEAD_ADDRESS", "HETERO_PARENT_PID",
        "HETERO_LAST_WORDS", "HETERO_TERMINATION_LOG", "HETERO_INCARNATION",
        "HETERO_STORAGE_0_ACCESS_KEY_ID", "HETERO_STORAGE_15_SECRET_ACCESS_KEY"}) {
    EXPECT_THAT(variables, Not(Contains(Key(name))));
  }
  for (const char* name : {"HETERO_JOB_NAME", "HETERO_JOB_UID", "HETERO_LOG_LEVEL"}) {
    EXPECT_THAT(variables, Contains(Key(name)));
  }
}

// A script reaches the bucket of its checkpoints by itself.
TEST(ScriptEnvironmentTest, LeavesTheCredentialsOfBuckets) {
  const auto variables = Variables(MakeEnvironment(
      {"AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=S", "AWS_SESSION_TOKEN=T"}, Script()));
  EXPECT_EQ(variables.at("AWS_ACCESS_KEY_ID"), "AKID");
  EXPECT_EQ(variables.at("AWS_SECRET_ACCESS_KEY"), "S");
  EXPECT_EQ(variables.at("AWS_SESSION_TOKEN"), "T");
}

TEST(ScriptEnvironmentTest, LeavesWhatTheUserHasSet) {
  const auto variables = Variables(MakeEnvironment(
      {"OMP_NUM_THREADS=2", "PYTHONUNBUFFERED=", "A=1", "A=2", "EMPTY="}, Script()));
  EXPECT_EQ(variables.at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(variables.at("PYTHONUNBUFFERED"), "");
  EXPECT_EQ(variables.at("A"), "1") << "as getenv() takes it";
  EXPECT_EQ(variables.at("EMPTY"), "");
}

TEST(ScriptEnvironmentTest, GivesThePreloadOfTheImageBack) {
  const auto variables = Variables(MakeEnvironment(
      {"HETERO_SCRIPT_LD_PRELOAD=/lib/theirs.so", "LD_PRELOAD=/lib/ours.so"}, Script()));
  EXPECT_EQ(variables.at("LD_PRELOAD"), "/lib/theirs.so");
  EXPECT_THAT(variables, Not(Contains(Key("HETERO_SCRIPT_LD_PRELOAD"))));
}

// Which of the two comes first is up to whoever starts the agent.
TEST(ScriptEnvironmentTest, ThereIsOnePreload) {
  const auto variables = Variables(MakeEnvironment(
      {"LD_PRELOAD=/lib/ours.so", "HETERO_SCRIPT_LD_PRELOAD=/lib/theirs.so"}, Script()));
  EXPECT_EQ(variables.at("LD_PRELOAD"), "/lib/theirs.so");
}

TEST(ScriptEnvironmentTest, WithoutACheckpointThereIsNoPlaceForOne) {
  ScriptEnvironment script = Script();
  script.checkpoint_uri.clear();
  EXPECT_THAT(Variables(MakeEnvironment({"HETERO_CHECKPOINT_URI=file:///old"}, script)),
              Not(Contains(Key("HETERO_CHECKPOINT_URI"))));
}

}  // namespace
}  // namespace hetero::agent
