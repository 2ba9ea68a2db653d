// A head that is replaced, as servers: what the first leaves in its file and on the status stream.
#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/atomic_file.h"
#include "hetero/v1/status.grpc.pb.h"
#include "runtime/head/channel.h"
#include "runtime/head/history_codec.h"
#include "tests/unit/runtime/head/server_fixture.h"

namespace hetero::head {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class HistoryFileTest : public ServerTest {
 protected:
  HistoryFileTest() { created_ = base::Clock::Real().WallNow() - std::chrono::seconds(100); }

  std::unique_ptr<Server> StartWithHistory(const std::string& run = "run") {
    Server::Options options = MakeOptions(socket());
    options.created = created_;
    options.history = {
        .run = run, .attempt = {.number = 1, .began = created_}, .file = folder + "/history.txt"};
    auto server = Server::Start(std::move(options), base::Clock::Real());
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  // Until the file has a history for which `there` holds.
  v1::History WaitForFile(const std::function<bool(const v1::History&)>& there) {
    const base::Instant end = base::Clock::Real().Now() + std::chrono::seconds(20);
    while (base::Clock::Real().Now() < end) {
      const auto text = base::ReadFile(folder + "/history.txt");
      if (text.ok()) {
        const auto history = DecodeHistory(*text, "run", 1);
        if (history.ok() && there(*history)) return *history;
      }
      base::Clock::Real().SleepFor(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << "the history was not written";
    return {};
  }

  base::WallTime created_;
};

TEST_F(HistoryFileTest, TheNextHeadGoesOnWhereTheFirstWasKilled) {
  auto server = StartWithHistory();
  Joined gpu = Join(server->address(), MakeHello("gpu", 0));
  EXPECT_EQ(gpu.inbox->Next(), "welcome");
  Joined newer = Join(server->address(), MakeHello("gpu", 0, 0, 2));
  EXPECT_EQ(newer.inbox->Next(), "welcome");
  EXPECT_EQ(gpu.inbox->Next(), "superseded");
  WaitForFile([](const v1::History& history) { return history.faults_size() == 1; });
  server.reset();
  server = StartWithHistory();
  const insight::Report report = server->ReportSoFar();
  EXPECT_GE(*report.wall_seconds, 100);
  ASSERT_THAT(report.faults, SizeIs(2));
  EXPECT_THAT(report.faults[0].what, HasSubstr("gpu-0 was replaced by a new process"));
  EXPECT_THAT(report.faults[1].what, HasSubstr("the head was lost"));
}

TEST_F(HistoryFileTest, TheFileOfAnotherRunIsPassedOver) {
  auto server = StartWithHistory();
  WaitForFile([](const v1::History&) { return true; });
  server.reset();
  server = StartWithHistory("another");
  EXPECT_THAT(server->ReportSoFar().faults, SizeIs(0));
}

TEST_F(HistoryFileTest, AFileThatNoHeadWroteCostsNoJob) {
  std::ofstream(folder + "/history.txt") << "torn";
  const auto server = StartWithHistory();
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(server->status().state(), v1::JobStatus::WAITING);
}

TEST_F(HistoryFileTest, AStatusStreamCarriesEachHistoryOnce) {
  const auto server = StartWithHistory();
  WaitForFile([](const v1::History&) { return true; });
  const auto stub = v1::Status::NewStub(*DialHead(server->status_address(), PlainText()));
  grpc::ClientContext context;
  context.set_deadline(base::Clock::Real().WallNow() + std::chrono::seconds(20));
  const auto reader = stub->Watch(&context, {});
  v1::JobStatus status;
  ASSERT_TRUE(reader->Read(&status));
  const auto history = DecodeHistory(status.history(), "run", 1);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->members_size(), 0);
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  std::vector<std::string> told;
  while (reader->Read(&status)) {
    if (!status.history().empty()) told.push_back(status.history());
    if (told.empty()) continue;
    server->Stop("test");
  }
  ASSERT_GE(told.size(), 1u);
  EXPECT_EQ(DecodeHistory(told[0], "run", 1)->members_size(), 1);
}

// They were in no history: a job that was suspended in good order lost up to 20 s of figures.
TEST_F(HistoryFileTest, TheLastWordsOfASuspendedJobAreInTheLastHistory) {
  const auto server = StartWithHistory();
  Joined cpu = Join(server->address(), MakeHello("cpu", 0));
  Joined gpu = Join(server->address(), MakeHello("gpu", 0));
  EXPECT_EQ(cpu.inbox->Next(), "welcome");
  EXPECT_EQ(gpu.inbox->Next(), "welcome");
  const auto stub = v1::Status::NewStub(*DialHead(server->status_address(), PlainText()));
  grpc::ClientContext context;
  context.set_deadline(base::Clock::Real().WallNow() + std::chrono::seconds(20));
  const auto reader = stub->Watch(&context, {});
  v1::JobStatus status;
  ASSERT_TRUE(reader->Read(&status));
  server->Stop("suspended");
  v1::Finished word;
  word.set_stopped(true);
  for (Joined* member : {&cpu, &gpu}) {
    word.mutable_last()->mutable_counters()->set_samples(member == &cpu ? 300 : 400);
    EXPECT_TRUE(member->member->Finish(word, std::chrono::seconds(5)).ok());
  }
  std::string last;
  do {
    if (!status.history().empty()) last = status.history();
  } while (reader->Read(&status));
  EXPECT_EQ(status.state(), v1::JobStatus::STOPPED);
  const auto history = DecodeHistory(last, "run", 1);
  ASSERT_TRUE(history.ok()) << history.status();
  ASSERT_EQ(history->members_size(), 2);
  EXPECT_EQ(history->members(0).now().samples(), 300);
  EXPECT_EQ(history->members(1).now().samples(), 400);
}

TEST_F(HistoryFileTest, AStopWithAFailureIsAFailedJobWithItsReport) {
  Server::Options options = MakeOptions(socket());
  options.output_folder = folder + "/out";
  const auto server = Server::Start(options, base::Clock::Real());
  ASSERT_TRUE(server.ok());
  const auto stub = v1::Status::NewStub(*DialHead((*server)->status_address(), PlainText()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(base::Clock::Real().WallNow() + std::chrono::seconds(20));
  v1::StopRequest request;
  request.set_failure("DeadlineExceeded");
  request.set_reason("the job has run for 60 s");
  v1::StopReply reply;
  EXPECT_TRUE(stub->Stop(&context, request, &reply).ok());
  const v1::JobStatus status = (*server)->Wait();
  EXPECT_EQ(status.state(), v1::JobStatus::FAILED);
  EXPECT_EQ(status.first_failure().message(), "DeadlineExceeded: the job has run for 60 s");
  EXPECT_EQ(status.result().report_uri(), "file://" + folder + "/out/report.json");
}

}  // namespace
}  // namespace hetero::head
