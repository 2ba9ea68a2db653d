// A head that was thought dead and replaced comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/head/report_claim.h"
#include "tests/unit/runtime/head/server_fixture.h"

namespace hetero::head {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kOlder = 100, kNewer = 200;

v1::Hello Knowing(v1::Hello hello, int64_t head) {
  hello.set_head_incarnation(head);
  return hello;
}

State MakeState(int64_t incarnation, const Drive& drive) {
  return State({.job = MakeJob(), .job_json = "{}", .incarnation = incarnation}, drive.Time());
}

TEST(SupersededTest, AHeadThatHearsOfItsSuccessorTellsNobodyAnything) {
  Drive drive;
  State state = MakeState(kOlder, drive);
  state.Apply(HelloReceived{20, MakeHello("gpu", 0, 0)}, drive.Time());
  const auto actions =
      state.Apply(HelloReceived{21, Knowing(MakeHello("gpu", 0, 1), kNewer)}, drive.Time());
  EXPECT_THAT(Only<StepDown>(actions), SizeIs(1));
  EXPECT_THAT(Only<Send>(actions), IsEmpty());
  EXPECT_TRUE(state.superseded());
  EXPECT_THAT(state.Apply(FailureReported{"gpu-0", "x"}, drive.Time()), IsEmpty());
  EXPECT_THAT(state.Apply(StopRequested{"x"}, drive.Time()), IsEmpty());
  EXPECT_FALSE(state.ended());
}

TEST(SupersededTest, OnlyARankIsBelievedThatThereIsANewerHead) {
  Drive drive;
  State state = MakeState(kOlder, drive);
  state.Apply(HelloReceived{10, Knowing(MakeHello("cpu", 0), kNewer)}, drive.Time());
  EXPECT_FALSE(state.superseded());
  state.Apply(HelloReceived{20, Knowing(MakeHello("gpu", 0, 0), kOlder)}, drive.Time());
  EXPECT_FALSE(state.superseded()) << "that is this one";
  state.Apply(HelloReceived{11, Knowing(MakeHello("gpu", 77), kNewer)}, drive.Time());
  EXPECT_FALSE(state.superseded()) << "no rank of this job";
}

class SupersededServerTest : public ServerTest {
 protected:
  std::unique_ptr<Server> Start(int64_t incarnation, const std::string& address,
                                const std::string& output = "") {
    Server::Options options = MakeOptions(address);
    options.incarnation = incarnation;
    options.job_uid = "job-1";
    options.output_folder = output;
    auto server = Server::Start(options, base::Clock::Real());
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
};

// The address leads to the newer head first and then, after a partition heals, to the older one.
TEST_F(SupersededServerTest, ARankLeavesTheOlderHeadAndItLeavesTheJob) {
  auto newer = Start(kNewer, socket());
  Joined gpu = Join(newer->address(), MakeHello("gpu", 0));
  EXPECT_EQ(gpu.inbox->Next(), "welcome");
  newer.reset();
  EXPECT_EQ(gpu.inbox->Next(), "head lost");
  const auto older = Start(kOlder, socket(), folder + "/out");
  EXPECT_EQ(older->Wait().state(), v1::JobStatus::WAITING) << "left as it is";
  EXPECT_FALSE(std::filesystem::exists(folder + "/out/report.json"));
}

TEST_F(SupersededServerTest, ACpuWorkerPassesTheOlderHeadOver) {
  auto newer = Start(kNewer, socket());
  Joined cpu = Join(newer->address(), MakeHello("cpu", 0));
  EXPECT_EQ(cpu.inbox->Next(), "welcome");
  newer.reset();
  EXPECT_EQ(cpu.inbox->Next(), "head lost");
  auto older = Start(kOlder, socket());
  older->Stop("to see who hears it");
  EXPECT_EQ(older->Wait().state(), v1::JobStatus::STOPPED);
  older.reset();
  newer = Start(kNewer, socket());
  newer->Stop("this one counts");
  EXPECT_EQ(cpu.inbox->Next(), "command STOP") << "the first it hears";
}

TEST_F(SupersededServerTest, AnOlderHeadDoesNotWriteOverTheReport) {
  const std::string output = folder + "/out";
  const auto older = Start(kOlder, "unix:" + folder + "/older.sock", output);
  const auto newer = Start(kNewer, "unix:" + folder + "/newer.sock", output);
  newer->Stop("done");
  EXPECT_EQ(newer->Wait().state(), v1::JobStatus::STOPPED);
  const auto written = std::filesystem::last_write_time(output + "/report.json");
  older->Fail("gpu-0", "nobody is here");
  const v1::JobStatus status = older->Wait();
  EXPECT_EQ(status.report_uri(), "");
  EXPECT_EQ(std::filesystem::last_write_time(output + "/report.json"), written);
}

TEST_F(SupersededServerTest, AStatusNamesItsHead) {
  const auto server = Start(kNewer, socket());
  EXPECT_EQ(server->status().head_incarnation(), kNewer);
}

TEST_F(SupersededServerTest, AClaimIsTheNewestHeadsOfTheJob) {
  const std::unique_ptr<ReportPlace> place = ReportFolder(folder);
  EXPECT_TRUE(ReportClaim(place.get(), "job-1", kNewer).Take().ok());
  const absl::Status refused = ReportClaim(place.get(), "job-1", kOlder).Take();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(folder));
  ReportClaim same(place.get(), "job-1", kNewer);
  EXPECT_TRUE(same.Take().ok());
  EXPECT_TRUE(same.Check().ok());
  EXPECT_TRUE(ReportClaim(place.get(), "job-2", kOlder).Take().ok())
      << "the next job in the folder";
  EXPECT_TRUE(absl::IsFailedPrecondition(same.Check()));
  std::ofstream(folder + "/.head") << "no claim at all";
  EXPECT_TRUE(ReportClaim(place.get(), "job-1", kOlder).Take().ok());
  EXPECT_TRUE(ReportClaim(nullptr, "job-1", kOlder).Take().ok());
}

}  // namespace
}  // namespace hetero::head
