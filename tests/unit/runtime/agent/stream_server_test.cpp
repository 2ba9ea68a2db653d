#include "runtime/agent/stream_server.h"

#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "stream_fixture.h"

namespace hetero::agent {
namespace {

using StreamServerTest = StreamFixture;
using std::chrono::milliseconds;

TEST_F(StreamServerTest, WelcomesAScriptWithWhatTheJobIs) {
  Listen({"pipeline=[{op: HorizontalFlip}, {op: Normalize, mean: [0.5], std: [0.25]}]",
          "training.checkpoint={uri: \"file:///ck\", everySteps: 4}"});
  const auto script = Connect();
  const json welcome = script->Hello();
  ASSERT_EQ(welcome["type"], "welcome") << welcome;
  EXPECT_EQ(welcome["rank"], 0);
  EXPECT_EQ(welcome["world_size"], 1);
  EXPECT_EQ(welcome["seed"], 5);
  EXPECT_EQ(welcome["batch_size"], 16);
  EXPECT_EQ(welcome["epochs"], 2);
  EXPECT_EQ(welcome["total_steps"], 14);
  EXPECT_EQ(welcome["steps_per_epoch"], 7);
  EXPECT_EQ(welcome["samples"], 100);
  EXPECT_EQ(welcome["classes"], 4);
  EXPECT_EQ(welcome["validation_samples"], 30);
  EXPECT_EQ(welcome["image"], json::parse(R"({"shape": [8, 8, 3], "dtype": "uint8"})"));
  EXPECT_EQ(welcome["checkpoint"],
            json::parse(R"({"uri": "file:///ck", "every_steps": 4, "every_seconds": null})"));
  // (x / 255 - 0.5) / 0.25
  EXPECT_EQ(welcome["conversion"]["scale"],
            json(std::vector<double>(3, static_cast<float>(4.0 / 255))));
  EXPECT_EQ(welcome["conversion"]["offset"], json(std::vector<double>(3, -2.0)));
  EXPECT_EQ(welcome["fields"], json::parse(R"([
      {"name": "image", "dtype": "uint8", "shape": [8, 8, 3]},
      {"name": "label", "dtype": "int64", "shape": []}, {"name": "id", "dtype": "int64", "shape": []}])"));
  struct stat there = {};
  ASSERT_EQ(stat(server_->socket_path().c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 0777, 0600u);
  // A script cannot pull the memory away from under its agent.
  EXPECT_EQ(ftruncate(script->passed(), 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_TRUE(server_->standing().said_hello);
  EXPECT_FALSE(server_->standing().begun);
}

TEST_F(StreamServerTest, GivesEverySampleOnceInTheOrderOfTheJob) {
  Listen();
  const auto script = Start();
  job::StreamDigest seen;
  std::map<int64_t, std::set<int64_t>> ids;  // by epoch
  for (int64_t step = 0; step < 14; ++step) {
    const json batch = script->Next();
    ASSERT_EQ(batch["type"], "batch") << batch;
    EXPECT_EQ(batch["step"], step);
    EXPECT_EQ(batch["epoch"], step / 7);
    EXPECT_EQ(batch["step_in_epoch"], step % 7);
    EXPECT_EQ(batch["last_of_epoch"], step % 7 == 6);
    EXPECT_EQ(batch["count"], step % 7 == 6 ? 4 : 16);
    EXPECT_EQ(batch["weight"], 1.0);
    EXPECT_EQ(batch["first_slot"], step % 7 * 16);
    script->AddToDigest(batch, 5, &seen);
    for (int64_t i = 0; i < batch["count"]; ++i) {
      EXPECT_TRUE(ids[step / 7].insert(script->Integer(batch, 2, i)).second);
      EXPECT_EQ(script->Integer(batch, 1, i) % 4, script->Integer(batch, 1, i));
    }
    EXPECT_EQ(script->State()["state"]["digest"], Expected(0, step + 1).ToHex());
    script->Free(batch);
  }
  EXPECT_EQ(ids[0].size(), 100u);
  EXPECT_EQ(ids[1].size(), 100u);
  EXPECT_EQ(seen.ToHex(), Expected(0, 14).ToHex());
  EXPECT_EQ(script->Next()["type"], "end");
  EXPECT_EQ(script->Ask({{"type", "bye"}})["type"], "bye");
  EXPECT_EQ(script->Receive(), nullptr);
  ASSERT_TRUE(Eventually([&] { return !server_->standing().connected; }));
  const StreamServer::Standing standing = server_->standing();
  EXPECT_TRUE(standing.reached_end);
  EXPECT_TRUE(standing.bye);
  EXPECT_EQ(standing.steps_given, 14);
  EXPECT_TRUE(standing.misuse.ok()) << standing.misuse;
  ASSERT_EQ(feed_->steps_.size(), 14u);
  EXPECT_EQ(feed_->steps_.back(), (std::pair<int64_t, int64_t>(14, 4)));
}

TEST_F(StreamServerTest, TwoRanksShareAStepAndWeighTheShortOne) {
  // 100 samples in steps of 32: the last has 4, and with 100 in steps of 99 the second rank none.
  Listen({"roles.2.replicas=2"}, 1);
  const auto script = Start();
  json batch;
  for (int64_t step = 0; step < 4; ++step) {
    batch = script->Next();
    ASSERT_EQ(batch["type"], "batch") << batch;
    script->Free(batch);
  }
  EXPECT_EQ(batch["count"], 2);
  EXPECT_EQ(batch["weight"], 1.0);
  EXPECT_EQ(batch["first_slot"], 98);

  Listen({"roles.2.replicas=3", "training.batchSizePerWorker=33"}, 1);
  const auto other = Start();
  other->Free(other->Next());
  batch = other->Next();
  ASSERT_EQ(batch["type"], "batch") << batch;
  EXPECT_EQ(batch["step"], 1);
  EXPECT_EQ(batch["count"], 0);
  EXPECT_EQ(batch["weight"], 0.0);
  EXPECT_EQ(batch["fields"][0]["shape"], json({0, 8, 8, 3}));
}

TEST_F(StreamServerTest, AccumulatedStepsComeInPartsAndStatesAtTheirEnds) {
  Listen({"training.gradientAccumulationSteps=3", "training.batchSizePerWorker=8"});
  const auto script = Start();
  job::StreamDigest seen;
  for (int64_t step = 0; step < 10; ++step) {
    double weights = 0;
    int64_t count = 0;
    for (int64_t micro = 0; micro < 3; ++micro) {
      const json batch = script->Next();
      ASSERT_EQ(batch["type"], "batch") << batch;
      EXPECT_EQ(batch["step"], step);
      EXPECT_EQ(batch["micro"], micro);
      EXPECT_LE(batch["count"], 8);
      EXPECT_EQ(batch["last_of_epoch"], step % 5 == 4 && micro == 2);
      weights += batch["weight"].get<double>();
      count += batch["count"].get<int64_t>();
      script->AddToDigest(batch, 5, &seen);
      script->Free(batch);
      const json state = script->State();
      EXPECT_EQ(state["type"], micro == 2 ? "state" : "error") << state;
    }
    EXPECT_EQ(count, step % 5 == 4 ? 4 : 24);
    EXPECT_DOUBLE_EQ(weights, 3);
  }
  EXPECT_EQ(seen.ToHex(), Expected(0, 10).ToHex());
  EXPECT_EQ(script->Next()["type"], "end");
}

TEST_F(StreamServerTest, GoesOnFromAStateAndItsDigest) {
  Listen();
  auto script = Start();
  for (int64_t step = 0; step < 9; ++step) script->Free(script->Next());
  const json state = script->State()["state"];
  EXPECT_EQ(state["step"], 9);
  EXPECT_EQ(state["epoch"], 1);
  EXPECT_EQ(state["slot"], 32);
  EXPECT_EQ(state["global_batch"], 16);
  script->Close();
  ASSERT_TRUE(Eventually([&] { return !server_->standing().connected; }));

  server_->Begin(2, 1);
  script = Connect();
  EXPECT_EQ(script->Hello()["restart_count"], 1);
  const json begun = script->Begin(state);
  EXPECT_EQ(begun, json::parse(R"({"type": "begun", "step": 9, "epoch": 1, "step_in_epoch": 2})"));
  EXPECT_EQ(script->State()["state"], state);
  ASSERT_EQ(feed_->positions_.size(), 2u);
  EXPECT_EQ(feed_->positions_[1].digest.ToHex(), Expected(0, 9).ToHex());
  for (int64_t step = 9; step < 14; ++step) {
    const json batch = script->Next();
    EXPECT_EQ(batch["step"], step);
    script->Free(batch);
  }
  EXPECT_EQ(script->State()["state"]["digest"], Expected(0, 14).ToHex());
  EXPECT_EQ(script->Next()["type"], "end");
}

// A batch that was given may be one that the script has not looked at yet.
TEST_F(StreamServerTest, AStateMayBeOfAnEarlierStep) {
  Listen();
  auto script = Start();
  for (int64_t step = 0; step < 5; ++step) script->Free(script->Next());
  const auto at = [&](int64_t step) { return script->Ask({{"type", "state"}, {"step", step}}); };
  EXPECT_EQ(at(4)["state"]["digest"], Expected(0, 4).ToHex());
  EXPECT_EQ(at(0)["state"]["digest"], job::StreamDigest().ToHex());
  EXPECT_EQ(at(6)["kind"], "misuse");
  EXPECT_EQ(at(-1)["kind"], "misuse");
  const json state = at(4)["state"];
  EXPECT_EQ(script->Ask({{"type", "checkpoint"}, {"step", 3}})["save"], true);
  EXPECT_EQ(script->Ask({{"type", "checkpoint"}, {"step", 6}})["save"], false);
  server_->Begin(2, 1);
  script = Start(state);
  EXPECT_EQ(script->Next()["step"], 4);
  EXPECT_EQ(script->Ask({{"type", "state"}, {"step", 3}})["kind"], "misuse");
}

TEST_F(StreamServerTest, AStateWhoseDigestIsNotKnownIsNotProvenFromThereOn) {
  Listen();
  const auto script = Start();
  script->Free(script->Next());
  json state = script->State()["state"];
  state["digest"] = nullptr;
  server_->Begin(2, 1);
  EXPECT_EQ(script->Receive(), nullptr);
  const auto again = Start(state);
  again->Free(again->Next());
  EXPECT_EQ(again->State()["state"]["digest"], nullptr);
  EXPECT_FALSE(feed_->positions_.back().proven);
}

TEST_F(StreamServerTest, ValidatesEachSampleOnceBesideTraining) {
  Listen({"roles.2.replicas=2", "training.batchSizePerWorker=8"}, 1);
  const auto script = Start();
  const json before = script->Next();
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(script->Ask({{"type", "validation"}}),
              json::parse(R"({"type": "validation_begun", "batches": 2})"));
    std::vector<double> weights;
    std::set<int64_t> ids;
    json batch = script->Ask({{"type", "next"}, {"validation", true}});
    for (; batch["type"] == "batch";
         batch = script->Ask({{"type", "next"}, {"validation", true}})) {
      for (int64_t i = 0; i < batch["count"]; ++i) ids.insert(script->Integer(batch, 2, i));
      EXPECT_EQ(batch["step"], static_cast<int64_t>(weights.size()));
      weights.push_back(batch["weight"]);
      script->Free(batch);
    }
    EXPECT_EQ(batch["type"], "end") << batch;
    EXPECT_EQ(weights, (std::vector<double>{1, 1}));  // 8 of 16, 7 of 14
    EXPECT_EQ(ids.size(), 15u);
  }
  EXPECT_EQ(script->Ask({{"type", "next"}, {"validation", true}})["kind"], "misuse");
  const json after = script->Next();
  EXPECT_EQ(after["step"], before["step"].get<int64_t>() + 1);
  script->Free(before);
  script->Free(after);
}

TEST_F(StreamServerTest, WithoutAValidationSetAPassIsEmpty) {
  Listen({"dataset.validation=null"});
  const auto script = Start();
  EXPECT_EQ(script->Ask({{"type", "validation"}})["batches"], 0);
  EXPECT_EQ(script->Ask({{"type", "next"}, {"validation", true}})["type"], "end");
}

TEST_F(StreamServerTest, CheckpointsAndReportsAreOfTheStepGivenLast) {
  Listen();
  const auto script = Start();
  EXPECT_EQ(script->Ask({{"type", "checkpoint"}})["save"], false);  // of nothing
  for (int64_t step = 1; step <= 4; ++step) {
    script->Free(script->Next());
    script->Send({{"type", "report"}, {"values", {{"loss", 1.0 / step}}}});
    EXPECT_EQ(script->Ask({{"type", "checkpoint"}})["save"], step == 3);
  }
  const auto reported = feed_->reported();
  ASSERT_TRUE(reported.contains("loss"));
  EXPECT_EQ(reported.at("loss"), (std::pair<double, int64_t>(0.25, 4)));
}

TEST_F(StreamServerTest, AStopIsAnAnswerAndTheStateCanStillBeTaken) {
  Listen();
  coordinator_.stop_at_ = 2;
  const auto script = Start();
  script->Free(script->Next());
  script->Free(script->Next());
  const json stopped = script->Next();
  EXPECT_EQ(stopped["kind"], "stopped") << stopped;
  EXPECT_EQ(script->State()["state"]["digest"], Expected(0, 2).ToHex());
  EXPECT_TRUE(server_->standing().stopped);
  EXPECT_FALSE(server_->standing().reached_end);
}

TEST_F(StreamServerTest, AnInterruptEndsEveryWait) {
  Listen({}, 0, 1);  // four slots
  const auto script = Start();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(script->Next()["type"], "batch");
  ASSERT_TRUE(script->Send({{"type", "next"}}));
  EXPECT_FALSE(script->HasAnswer(milliseconds(50)));
  server_->Interrupt();
  EXPECT_EQ(script->Receive()["kind"], "stopped");
  EXPECT_EQ(script->Next()["kind"], "stopped");
  server_->Begin(2, 1);
  EXPECT_EQ(script->Receive(), nullptr);
  EXPECT_EQ(Start()->Next()["step"], 0);
}

TEST_F(StreamServerTest, AScriptThatDiesLeavesItsSlotsToTheNextOne) {
  Listen({}, 0, 1);
  for (int generation = 1; generation <= 10; ++generation) {
    server_->Begin(generation, generation - 1);
    const auto script = Start();
    for (int64_t step = 0; step < 3; ++step) EXPECT_EQ(script->Next()["step"], step);
  }
}

TEST_F(StreamServerTest, ADisagreementIsToldToTheScript) {
  Listen();
  coordinator_.agreement_ = absl::FailedPreconditionError("rank 0 is at step 0, rank 1 at step 9");
  const auto script = Connect();
  script->Hello();
  const json answer = script->Begin();
  EXPECT_EQ(answer["kind"], "misuse");
  EXPECT_EQ(answer["message"], "rank 0 is at step 0, rank 1 at step 9");
  EXPECT_EQ(server_->standing().misuse.message(), "rank 0 is at step 0, rank 1 at step 9");
}

}  // namespace
}  // namespace hetero::agent
