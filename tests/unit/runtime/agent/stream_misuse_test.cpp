#include <array>
#include <random>

#include "runtime/agent/stream_server.h"
#include "stream_fixture.h"

// What scripts must not do, and what is no script at all.
namespace hetero::agent {
namespace {

class StreamMisuseTest : public StreamFixture {
 protected:
  // A state after three steps.
  json StateOfThree() {
    const auto script = Start();
    for (int i = 0; i < 3; ++i) script->Free(script->Next());
    json state = script->State()["state"];
    script->Ask({{"type", "bye"}});
    EXPECT_TRUE(Eventually([&] { return !server_->standing().connected; }));
    server_->Begin(++generation_, 1);
    return state;
  }
  // What `begin` says to a state; a script of its own each time.
  std::string Refusal(const json& state) {
    server_->Begin(++generation_, 1);
    const auto script = Connect();
    script->Hello();
    const json answer = script->Begin(state);
    EXPECT_EQ(answer.value("kind", ""), "misuse") << answer;
    // It may go on without.
    EXPECT_EQ(script->Begin()["type"], "begun");
    return answer.value("message", "");
  }

  int64_t generation_ = 1;
};

TEST_F(StreamMisuseTest, AStateOfAnotherStreamIsRefusedWithWhatDiffers) {
  Listen();
  const json state = StateOfThree();
  json other = state;
  other["seed"] = 6;
  EXPECT_NE(Refusal(other).find("its seed is 6, training.seed is 5"), std::string::npos);
  other = state;
  other["global_batch"] = 32;
  const std::string batch = Refusal(other);
  EXPECT_NE(batch.find("its steps have 32 samples, the job's have 16"), std::string::npos) << batch;
  EXPECT_NE(batch.find("another number of ranks"), std::string::npos) << batch;
  other = state;
  other["step"] = 15;
  EXPECT_NE(Refusal(other).find("it is after step 15, the job has 14"), std::string::npos);
  other["step"] = -1;
  EXPECT_NE(Refusal(other).find("it is after step -1"), std::string::npos);
  other = state;
  other["slot"] = 16;
  EXPECT_NE(Refusal(other).find("after step 3 comes slot 48 of epoch 0, it says slot 16"),
            std::string::npos);
  const auto with = [&](const std::vector<std::string>& overrides) {
    Listen(overrides);
    return Refusal(state);
  };
  EXPECT_NE(with({"dataset.samples=101"}).find("another dataset"), std::string::npos);
  EXPECT_NE(with({"dataset.shuffle={mode: None}"}).find("dataset.shuffle Full, the job's is None"),
            std::string::npos);
  EXPECT_NE(with({"training.lastBatch=Drop"}).find("training.lastBatch Keep"), std::string::npos);
  EXPECT_NE(with({"pipeline=[]"}).find("another pipeline"), std::string::npos);
  const std::string all = with({"training.seed=9", "pipeline=[]"});
  EXPECT_NE(all.find("another pipeline"), std::string::npos) << all;
  EXPECT_NE(all.find("training.seed is 9"), std::string::npos) << all;
}

TEST_F(StreamMisuseTest, OtherRanksWithTheSameStepsAreTheSameStream) {
  Listen();
  const json state = StateOfThree();
  Listen({"roles.2.replicas=2", "training.batchSizePerWorker=8"}, 1);
  EXPECT_EQ(Start(state)->Next()["step"], 3);
  Listen({"training.epochs=5"});
  EXPECT_EQ(Start(state)->Next()["step"], 3);
}

TEST_F(StreamMisuseTest, WhatIsNoStateIsRefused) {
  Listen();
  const json state = StateOfThree();
  for (const char* name :
       {"format", "fingerprint", "seed", "epoch", "step", "slot", "global_batch"}) {
    json broken = state;
    broken.erase(name);
    EXPECT_NE(Refusal(broken).find("this is no state of a stream"), std::string::npos) << name;
    broken[name] = json::array();
    EXPECT_NE(Refusal(broken).find("this is no state of a stream"), std::string::npos) << name;
  }
  json broken = state;
  for (const json& digest : {json("0x"), json(7), json(std::string(32, 'G')),
                             json("0x" + std::string(30, '0')), json(std::string(31, '0'))}) {
    broken["digest"] = digest;
    EXPECT_NE(Refusal(broken).find("digest"), std::string::npos) << digest;
  }
  broken = state;
  broken["format"] = 2;
  EXPECT_NE(Refusal(broken).find("its `format` is not 1"), std::string::npos);
  broken["step"] = 1e300;
  EXPECT_NE(Refusal(broken), "");
  EXPECT_NE(Refusal("a text").find("it is no dictionary"), std::string::npos);
}

TEST_F(StreamMisuseTest, QuestionsOutOfOrderAreMisuse) {
  Listen();
  const auto script = Connect();
  script->Hello();
  EXPECT_EQ(script->Next()["kind"], "misuse");
  EXPECT_EQ(script->State()["kind"], "misuse");
  EXPECT_EQ(script->Ask({{"type", "checkpoint"}})["save"], false);
  EXPECT_EQ(script->Begin()["type"], "begun");
  const json again = script->Begin();
  EXPECT_EQ(again["kind"], "misuse");
  EXPECT_NE(again["message"].get<std::string>().find("has begun at step 0"), std::string::npos);
  EXPECT_EQ(script->Next()["step"], 0);
  EXPECT_NE(server_->standing().misuse.message().find("has begun at step 0"), std::string::npos);
}

TEST_F(StreamMisuseTest, AStateThatDidNotFitIsForgottenOnceAnotherOneDoes) {
  Listen();
  const auto script = Connect();
  script->Hello();
  EXPECT_EQ(script->Begin({{"format", 1}})["kind"], "misuse");
  EXPECT_FALSE(server_->standing().misuse.ok());
  EXPECT_EQ(script->Begin()["type"], "begun");
  EXPECT_TRUE(server_->standing().misuse.ok()) << server_->standing().misuse;
}

TEST_F(StreamMisuseTest, NothingComesAfterTheEnd) {
  Listen({"training.epochs=null", "training.maxSteps=2"});
  const auto script = Start();
  script->Free(script->Next());
  EXPECT_EQ(script->Next()["last_of_epoch"], true);
  EXPECT_EQ(script->Next()["type"], "end");
  const json after = script->Next();
  EXPECT_EQ(after["kind"], "misuse");
  EXPECT_NE(after["message"].get<std::string>().find("has ended with step 2"), std::string::npos);
  EXPECT_EQ(script->State()["state"]["step"], 2);
}

TEST_F(StreamMisuseTest, ASecondConnectionIsRefusedByName) {
  Listen();
  const auto script = Start();
  const auto second = Connect();
  const json refused = second->Hello();
  EXPECT_EQ(refused["kind"], "misuse");
  const std::string message = refused["message"];
  EXPECT_NE(message.find("in use by process " + std::to_string(getpid())), std::string::npos)
      << message;
  EXPECT_NE(message.find("num_workers=0"), std::string::npos) << message;
  EXPECT_EQ(second->Receive(), nullptr);
  EXPECT_EQ(script->Next()["step"], 0);  // the first one has lost nothing
  EXPECT_TRUE(server_->standing().misuse.ok());
  // Once it was begun, a stream is not there a second time in the same run of the script.
  script->Ask({{"type", "bye"}});
  ASSERT_TRUE(Eventually([&] { return !server_->standing().connected; }));
  const json late = Connect()->Hello();
  EXPECT_NE(late["message"].get<std::string>().find("has had its stream"), std::string::npos)
      << late;
}

TEST_F(StreamMisuseTest, WhoHasNotBegunMayComeAgain) {
  Listen();
  Connect()->Hello();  // as a check of the installation does
  const auto script = Start();
  EXPECT_EQ(script->Next()["step"], 0);
}

TEST_F(StreamMisuseTest, NobodyIsLetInBeforeAGenerationBegins) {
  feed_ = std::make_unique<LocalFeed>(ScriptJob(), 0, 1 << 20);
  options_.socket_path = folder_ / "early";
  server_ = *StreamServer::Listen(options_, *feed_, coordinator_, base::Clock::Real());
  const auto script = Connect();
  script->Send({{"type", "hello"}, {"protocol", 1}, {"pid", 1}});
  EXPECT_FALSE(script->HasAnswer(std::chrono::milliseconds(100)));
  server_->Begin(1, 0);
  EXPECT_EQ(script->Receive()["type"], "welcome");
}

TEST_F(StreamMisuseTest, AnotherProtocolIsRefusedWithBothVersions) {
  Listen();
  const auto script = Connect();
  const json answer =
      script->Ask({{"type", "hello"}, {"protocol", 2}, {"package", "9.9.9"}, {"pid", 1}});
  EXPECT_EQ(answer["kind"], "protocol");
  const std::string message = answer["message"];
  EXPECT_NE(message.find("hetero 9.9.9 speaks protocol 2, this runtime speaks 1"),
            std::string::npos)
      << message;
  EXPECT_EQ(script->Receive(), nullptr);
}

TEST_F(StreamMisuseTest, MessagesThatAreNoneCloseTheConnection) {
  Listen();
  const auto bytes = [](uint32_t length, const std::string& text) {
    std::string message;
    for (int i = 0; i < 4; ++i) message.push_back(static_cast<char>(length >> (8 * i)));
    return message + text;
  };
  const std::string deep(100'000, '[');
  for (const std::string& message :
       {bytes(0, ""), bytes(0xffffffff, ""), bytes((1 << 20) + 1, "{}"), bytes(3, "{]}"),
        bytes(2, "[]"), bytes(4, "null"), bytes(100'000, deep), bytes(2, "{}"),
        bytes(14, R"({"type":"fly"})"), bytes(12, R"({"type": 17})"), bytes(2, "\xff\xfe"),
        bytes(15, R"({"type":"next"})"), bytes(15, R"({"type":"free"})"),
        bytes(16, R"({"type":"hello"})")}) {
    const auto script = Connect();
    EXPECT_TRUE(script->SendBytes(message));
    const json answer = script->Receive();
    EXPECT_EQ(answer.value("kind", ""), "protocol") << message.substr(0, 40) << answer;
    EXPECT_EQ(script->Receive(), nullptr);
  }
  EXPECT_EQ(Start()->Next()["step"], 0);
}

TEST_F(StreamMisuseTest, GarbageEndsNothingButItsConnection) {
  Listen();
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const auto script = Connect();
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (i % 3 == 0 && bytes.size() > 4) bytes.replace(0, 4, {'\x20', '\0', '\0', '\0'});
    script->SendBytes(bytes);
    if (i % 2 == 0) script->Close();
  }
  EXPECT_EQ(Start()->Next()["step"], 0);
}

TEST_F(StreamMisuseTest, AHalfMessageWaitsForItsRest) {
  Listen();
  const auto script = Start();
  const std::string text = R"({"type": "next"})";
  const std::string message = std::string("\x10\0\0\0", 4) + text;
  for (const char byte : message) {
    EXPECT_FALSE(script->HasAnswer(std::chrono::milliseconds(1)));
    script->SendBytes(std::string(1, byte));
  }
  EXPECT_EQ(script->Receive()["step"], 0);
}

TEST_F(StreamMisuseTest, ASecondQuestionBeforeTheAnswerIsRefused) {
  Listen({}, 0, 1);
  const auto script = Start();
  for (int i = 0; i < 4; ++i) script->Next();
  script->Send({{"type", "next"}});  // waits: the script holds all slots
  script->Send({{"type", "next"}});
  json answer = script->Receive();
  if (answer["kind"] == "stopped") answer = script->Receive();
  EXPECT_EQ(answer["kind"], "protocol") << answer;
  EXPECT_NE(answer["message"].get<std::string>().find("one thread at a time"), std::string::npos);
  EXPECT_EQ(script->Receive(), nullptr);
}

TEST_F(StreamMisuseTest, ASlotThatIsNotHeldIsNotFreed) {
  Listen({}, 0, 1);
  const auto script = Start();
  const json batch = script->Next();
  for (const int64_t slot : {int64_t{-1}, int64_t{99}, int64_t{1} << 60}) {
    script->Send({{"type", "free"}, {"slot", slot}});
  }
  script->Free(batch);
  script->Free(batch);
  EXPECT_EQ(script->Next()["step"], 1);
  EXPECT_NE(server_->standing().misuse.message().find("slot -1 is freed"), std::string::npos);
}

TEST_F(StreamMisuseTest, ReportsAreBounded) {
  Listen();
  json values;
  for (int i = 0; i < 64; ++i) values["name" + std::to_string(i)] = i;
  auto script = Start();
  script->Send({{"type", "report"}, {"values", values}, {"step", 1'000'000}});
  EXPECT_EQ(script->Next()["step"], 0);
  EXPECT_EQ(feed_->reported().size(), 64u);
  EXPECT_EQ(feed_->reported().at("name7"), (std::pair<double, int64_t>(7, 0)));
  for (const json& too_many : {json{{"one", 1}, {std::string(65, 'x'), 1}}, json{{"text", "1"}},
                               json{{"", 1}}, json("all")}) {
    server_->Begin(++generation_, 1);
    script = Start();
    script->Send({{"type", "report"}, {"values", too_many}});
    EXPECT_EQ(script->Receive()["kind"], "protocol") << too_many;
  }
}

TEST_F(StreamMisuseTest, APathThatIsTooLongOrTakenIsNamed) {
  feed_ = std::make_unique<LocalFeed>(ScriptJob(), 0, 1 << 20);
  options_.socket_path = folder_ / std::string(200, 's');
  auto server = StreamServer::Listen(options_, *feed_, coordinator_, base::Clock::Real());
  EXPECT_NE(server.status().message().find("choose a shorter folder"), std::string::npos);
  options_.socket_path = folder_.Write("file", "mine");
  server = StreamServer::Listen(options_, *feed_, coordinator_, base::Clock::Real());
  EXPECT_NE(server.status().message().find("is no socket"), std::string::npos);
  EXPECT_EQ(testing::ReadFileOrDie(folder_ / "file"), "mine");
}

}  // namespace
}  // namespace hetero::agent
