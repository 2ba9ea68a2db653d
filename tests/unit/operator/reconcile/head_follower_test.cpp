#include "operator/reconcile/head_follower.h"

#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/tls.h"
#include "hetero/v1/status.grpc.pb.h"

namespace hetero::reconcile {
namespace {

using State = plan::HeadReport::State;

constexpr auto kLimit = std::chrono::seconds(20);

// A head's status port: every watcher gets the current status and every later one.
class StatusServer : public v1::Status::CallbackService {
 public:
  explicit StatusServer(
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials(),
      int port = 0, std::string host = "127.0.0.1")
      : host_(std::move(host)), current_() {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(host_ + ":" + std::to_string(port), std::move(credentials), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  bool listens() const { return server_ != nullptr && port_ > 0; }
  ~StatusServer() override {
    if (!listens()) return;
    {
      const std::lock_guard lock(mutex_);
      for (Watcher* watcher : watchers_) watcher->End();
    }
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  int port() const { return port_; }
  std::string address() const { return host_ + ":" + std::to_string(port_); }

  void Say(v1::JobStatus status) {
    const std::lock_guard lock(mutex_);
    current_ = std::move(status);
    for (Watcher* watcher : watchers_) watcher->Send(current_);
  }
  std::vector<v1::StopRequest> stops() {
    const std::lock_guard lock(mutex_);
    return stops_;
  }
  std::vector<v1::ExitReport> exits() {
    const std::lock_guard lock(mutex_);
    return exits_;
  }

 private:
  class Watcher : public grpc::ServerWriteReactor<v1::JobStatus> {
   public:
    explicit Watcher(StatusServer& server) : server_(server) {}
    // With the server's mutex held.
    void Send(const v1::JobStatus& status) {
      if (writing_ || ended_) {
        pending_ = true;
        return;
      }
      message_ = status;
      writing_ = true;
      StartWrite(&message_);
    }
    void End() {
      if (!std::exchange(ended_, true)) Finish({grpc::StatusCode::UNAVAILABLE, "closing"});
    }
    void OnWriteDone(bool ok) override {
      const std::lock_guard lock(server_.mutex_);
      writing_ = false;
      if (!ok) return End();
      if (std::exchange(pending_, false)) Send(server_.current_);
    }
    void OnCancel() override {
      const std::lock_guard lock(server_.mutex_);
      End();
    }
    void OnDone() override {
      {
        const std::lock_guard lock(server_.mutex_);
        std::erase(server_.watchers_, this);
      }
      delete this;
    }

   private:
    StatusServer& server_;
    v1::JobStatus message_;
    bool writing_ = false, pending_ = false, ended_ = false;
  };

  grpc::ServerWriteReactor<v1::JobStatus>* Watch(grpc::CallbackServerContext*,
                                                 const v1::WatchRequest*) override {
    auto* watcher = new Watcher(*this);
    const std::lock_guard lock(mutex_);
    watchers_.push_back(watcher);
    watcher->Send(current_);
    return watcher;
  }
  grpc::ServerUnaryReactor* ReportExit(grpc::CallbackServerContext* context,
                                       const v1::ExitReport* report, v1::ExitReply*) override {
    {
      const std::lock_guard lock(mutex_);
      exits_.push_back(*report);
    }
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const v1::StopRequest* request, v1::StopReply*) override {
    {
      const std::lock_guard lock(mutex_);
      stops_.push_back(*request);
    }
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  const std::string host_;
  std::mutex mutex_;  // guards what follows
  v1::JobStatus current_;
  std::vector<Watcher*> watchers_;
  std::vector<v1::ExitReport> exits_;
  std::vector<v1::StopRequest> stops_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Counts what the follower announces, and waits for what a test expects.
class Announcements {
 public:
  HeadFollower::Changed Listener() {
    return [this](const std::string& key) {
      const std::lock_guard lock(mutex_);
      ++counts_[key];
      changed_.notify_all();
    };
  }
  int Count(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return counts_[key];
  }
  // Looks again with every announcement and every 10 ms.
  bool WaitFor(const std::function<bool()>& expected) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (!expected()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
    return true;
  }

 private:
  std::mutex mutex_;  // guards counts_
  std::condition_variable changed_;
  std::map<std::string, int> counts_;
};

v1::JobStatus In(v1::JobStatus::State state, int64_t step = 0) {
  v1::JobStatus status;
  status.set_state(state);
  status.mutable_progress()->set_step(step);
  status.mutable_progress()->set_total_steps(1000);
  return status;
}

// The machine's clock, but whoever asks for the time of day next, after Hold(), waits until
// Release(): what is known of one head is dated under that head's lock.
class HoldingClock : public base::Clock {
 public:
  base::Instant Now() const override { return Real().Now(); }
  base::WallTime WallNow() const override {
    std::unique_lock lock(mutex_);
    if (std::exchange(hold_, false)) {
      holds_ = true;
      changed_.notify_all();
      released_in_time_ = changed_.wait_for(lock, kLimit, [this] { return !holds_; });
    }
    return Real().WallNow();
  }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    return Real().SleepFor(duration, std::move(stop));
  }

  void Hold() {
    const std::lock_guard lock(mutex_);
    hold_ = true;
  }
  bool WaitUntilHeld() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLimit, [this] { return holds_; });
  }
  // False: whoever waited had given up.
  bool Release() {
    const std::lock_guard lock(mutex_);
    holds_ = false;
    changed_.notify_all();
    return released_in_time_;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  mutable bool hold_ = false, holds_ = false, released_in_time_ = true;
};

class HeadFollowerTest : public testing::Test {
 protected:
  HeadFollowerTest()
      : identity_(*IssueOperatorIdentity(base::Clock::Real().WallNow())),
        follower_(std::make_unique<HeadFollower>(base::Clock::Real(), identity_,
                                                 announcements_.Listener())) {}

  plan::HeadTarget Target(const StatusServer& server) {
    return {.address = server.address(), .job_uid = "job-1", .attempt = 1, .pod_uid = "pod-1"};
  }
  bool WaitForState(const std::string& key, State state) {
    return announcements_.WaitFor([&] {
      const auto report = follower_->Report(key);
      return report && report->connected && report->state == state;
    });
  }

  OperatorIdentity identity_;
  Announcements announcements_;
  std::unique_ptr<HeadFollower> follower_;
};

TEST_F(HeadFollowerTest, AHeadThatWasReplacedHasNoSay) {
  StatusServer server;
  plan::HeadTarget target = Target(server);
  target.incarnation = 7;
  v1::JobStatus word = In(v1::JobStatus::RUNNING, 3);
  word.set_head_incarnation(7);
  server.Say(word);
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  word.set_state(v1::JobStatus::FAILED);
  word.set_head_incarnation(6);
  server.Say(word);
  word.set_state(v1::JobStatus::WAITING);
  word.set_head_incarnation(7);
  base::Clock::Real().SleepFor(std::chrono::milliseconds(300));
  EXPECT_EQ(follower_->Report("a/x")->state, State::kRunning);
  server.Say(word);
  EXPECT_TRUE(WaitForState("a/x", State::kWaiting));
}

TEST_F(HeadFollowerTest, AHeadWithNothingToSayIsHeardAndWakesNobody) {
  StatusServer server;
  server.Say(In(v1::JobStatus::RUNNING, 3));
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  const base::WallTime before = follower_->Report("a/x")->silent_since;
  // Nothing else was underway when the count has stood still.
  base::Clock::Real().SleepFor(std::chrono::milliseconds(300));
  const int count = announcements_.Count("a/x");
  v1::JobStatus unchanged = In(v1::JobStatus::RUNNING, 3);
  unchanged.set_unchanged(true);
  server.Say(unchanged);
  EXPECT_TRUE(
      announcements_.WaitFor([&] { return follower_->Report("a/x")->silent_since > before; }));
  EXPECT_EQ(announcements_.Count("a/x"), count);
}

TEST_F(HeadFollowerTest, HearsAHeadAndForgetsIt) {
  StatusServer server;
  EXPECT_EQ(follower_->Report("a/x"), std::nullopt);
  follower_->Follow("a/x", Target(server));
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  server.Say(In(v1::JobStatus::RUNNING));
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  EXPECT_EQ(follower_->streams(), 1u);
  follower_->Follow("a/x", std::nullopt);
  EXPECT_EQ(follower_->Report("a/x"), std::nullopt);
  EXPECT_EQ(follower_->streams(), 0u);
}

TEST_F(HeadFollowerTest, HearsAHeadOfAnIpv6Cluster) {
  StatusServer server(grpc::InsecureServerCredentials(), 0, "[::1]");
  if (!server.listens()) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
  follower_->Follow("a/x", Target(server));
  EXPECT_TRUE(WaitForState("a/x", State::kWaiting));
}

TEST_F(HeadFollowerTest, ProgressIsNotAnnouncedWithEveryMessage) {
  StatusServer server;
  follower_->Follow("a/x", Target(server));
  server.Say(In(v1::JobStatus::RUNNING));
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  const auto begin = std::chrono::steady_clock::now();
  const int before = announcements_.Count("a/x");
  for (int step = 1; step <= 300; ++step) {
    server.Say(In(v1::JobStatus::RUNNING, step));
    ASSERT_TRUE(announcements_.WaitFor([&] { return true; }));
  }
  ASSERT_TRUE(announcements_.WaitFor([&] {
    const auto report = follower_->Report("a/x");
    return report->progress && report->progress->step == 300;
  }));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(announcements_.Count("a/x") - before, took / std::chrono::milliseconds(200) + 2);
  ASSERT_TRUE(announcements_.WaitFor([&] { return announcements_.Count("a/x") > before; }));
}

TEST_F(HeadFollowerTest, ReportsAnExit) {
  StatusServer server;
  plan::ReportExit exit;
  exit.role = "gpu";
  exit.index = 3;
  exit.exit_code = 137;
  exit.replaced = true;
  follower_->ReportExit("a/x", exit);  // nobody to tell: nothing happens
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  follower_->ReportExit("a/x", exit);
  ASSERT_TRUE(announcements_.WaitFor([&] { return server.exits().size() == 1; }));
  EXPECT_EQ(server.exits()[0].role(), "gpu");
  EXPECT_EQ(server.exits()[0].index(), 3);
  EXPECT_EQ(server.exits()[0].exit_code(), 137);
  EXPECT_TRUE(server.exits()[0].replaced());
}

TEST_F(HeadFollowerTest, AHeadIsToldWhyItsJobHasFailed) {
  StatusServer server;
  const plan::StopHead end{.failure = "DeadlineExceeded", .reason = "it has run for 60 s"};
  follower_->Stop("a/x", end);  // nobody to tell: nothing happens
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  EXPECT_FALSE(follower_->Report("a/x")->told_to_end);
  follower_->Stop("a/x", end);
  ASSERT_TRUE(announcements_.WaitFor([&] { return follower_->Report("a/x")->told_to_end; }));
  ASSERT_EQ(server.stops().size(), 1u);
  EXPECT_EQ(server.stops()[0].failure(), "DeadlineExceeded");
  EXPECT_EQ(server.stops()[0].reason(), "it has run for 60 s");
}

TEST_F(HeadFollowerTest, DialsAHeadThatWentAndCameBack) {
  auto server = std::make_unique<StatusServer>();
  const plan::HeadTarget target = Target(*server);
  const int port = server->port();
  server->Say(In(v1::JobStatus::RUNNING, 4));
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  server.reset();
  ASSERT_TRUE(announcements_.WaitFor([&] { return !follower_->Report("a/x")->connected; }));
  EXPECT_EQ(follower_->Report("a/x")->state, State::kRunning) << "its last words still count";
  server = std::make_unique<StatusServer>(grpc::InsecureServerCredentials(), port);
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
}

// Each dial costs milliseconds of certificates, and a thousand jobs may end together.
TEST_F(HeadFollowerTest, AHeadThatHasSaidTheEndIsNotDialledAgain) {
  auto server = std::make_unique<StatusServer>();
  const plan::HeadTarget target = Target(*server);
  const int port = server->port();
  server->Say(In(v1::JobStatus::SUCCEEDED, 7));
  follower_->Follow("a/ended", target);
  ASSERT_TRUE(WaitForState("a/ended", State::kSucceeded));
  server.reset();
  ASSERT_TRUE(announcements_.WaitFor([&] { return !follower_->Report("a/ended")->connected; }));
  // Another that waits for its head finds it there.
  follower_->Follow("a/runs", target);
  server = std::make_unique<StatusServer>(grpc::InsecureServerCredentials(), port);
  ASSERT_TRUE(WaitForState("a/runs", State::kWaiting));
  EXPECT_EQ(follower_->Report("a/ended")->state, State::kSucceeded);
  EXPECT_FALSE(follower_->Report("a/ended")->connected);
  EXPECT_EQ(follower_->Report("a/ended")->progress->step, 7);
}

TEST_F(HeadFollowerTest, AnotherHeadOfTheSameRunTakesOverAndAnotherRunBeginsAnew) {
  StatusServer first, second;
  first.Say(In(v1::JobStatus::RUNNING, 4));
  second.Say(In(v1::JobStatus::RUNNING, 5));
  plan::HeadTarget target = Target(first);
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  target.address = second.address();
  target.pod_uid = "pod-2";
  follower_->Follow("a/x", target);
  EXPECT_EQ(follower_->Report("a/x")->progress->step, 4);
  ASSERT_TRUE(
      announcements_.WaitFor([&] { return follower_->Report("a/x")->progress->step == 5; }));
  target.attempt = 2;
  follower_->Follow("a/x", target);
  const auto report = follower_->Report("a/x");
  EXPECT_EQ(report->attempt, 2);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
}

// The head's side of the pair that a job's Secret and ConfigMap make.
std::shared_ptr<grpc::ServerCredentials> HeadCredentials(const OperatorIdentity& identity,
                                                         const children::Leaf& leaf) {
  return *base::MakePeerServerCredentials({.ca_pem = identity.ca_pem,
                                           .certificate_pem = leaf.certificate_pem,
                                           .key_pem = leaf.key_pem,
                                           .allowed_uris = {kOperatorUri}});
}

TEST_F(HeadFollowerTest, SpeaksMutualTls) {
  const JobTrust trust = *IssueJobTrust("job-1", base::Clock::Real().WallNow());
  StatusServer server(HeadCredentials(identity_, trust.head));
  plan::HeadTarget target = Target(server);
  target.ca_pem = trust.ca_pem;
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
}

TEST_F(HeadFollowerTest, HeadsDialledAfterARenewalAreShownTheNewCertificate) {
  const base::WallTime now = base::Clock::Real().WallNow();
  // As if the operator had led for longer than its certificate is good for.
  const OperatorIdentity expired = *IssueOperatorIdentity(now - std::chrono::hours(24 * 400));
  const JobTrust trust = *IssueJobTrust("job-1", now);
  StatusServer server(HeadCredentials(expired, trust.head));
  plan::HeadTarget target = Target(server);
  target.ca_pem = trust.ca_pem;
  follower_ =
      std::make_unique<HeadFollower>(base::Clock::Real(), expired, announcements_.Listener());
  follower_->Follow("a/early", target);
  follower_->UseCertificate(RenewOperatorIdentity(expired, now)->leaf);
  follower_->Follow("a/x", target);
  EXPECT_TRUE(WaitForState("a/x", State::kWaiting));
  EXPECT_TRUE(WaitForState("a/early", State::kWaiting)) << "it is dialled again by itself";
}

TEST_F(HeadFollowerTest, RefusesAnotherIdentity) {
  const JobTrust trust = *IssueJobTrust("job-1", base::Clock::Real().WallNow());
  StatusServer worker(HeadCredentials(identity_, trust.cpu_worker));
  StatusServer head(HeadCredentials(identity_, trust.head));
  plan::HeadTarget wrong_role = Target(worker);
  wrong_role.ca_pem = trust.ca_pem;
  plan::HeadTarget wrong_job = Target(head);
  wrong_job.ca_pem = trust.ca_pem;
  wrong_job.job_uid = "job-2";
  plan::HeadTarget right = Target(head);
  right.ca_pem = trust.ca_pem;
  follower_->Follow("a/role", wrong_role);
  follower_->Follow("a/job", wrong_job);
  follower_->Follow("a/right", right);
  ASSERT_TRUE(WaitForState("a/right", State::kWaiting));
  EXPECT_FALSE(follower_->Report("a/role")->connected);
  EXPECT_FALSE(follower_->Report("a/job")->connected);
  EXPECT_EQ(announcements_.Count("a/role"), 0);
}

TEST_F(HeadFollowerTest, TwoHundredStreamsEndWithTheFollower) {
  StatusServer server;
  server.Say(In(v1::JobStatus::RUNNING, 1));
  for (int i = 0; i < 200; ++i) follower_->Follow("a/" + std::to_string(i), Target(server));
  ASSERT_TRUE(announcements_.WaitFor([&] {
    int connected = 0;
    for (int i = 0; i < 200; ++i) {
      connected += follower_->Report("a/" + std::to_string(i))->connected;
    }
    return connected == 200;
  }));
  EXPECT_EQ(follower_->streams(), 200u);
  follower_.reset();
  int at_end = announcements_.Count("a/7");
  server.Say(In(v1::JobStatus::SUCCEEDED, 2));
  EXPECT_EQ(announcements_.Count("a/7"), at_end);
}

v1::JobStatus OfBytes(size_t bytes) {
  v1::JobStatus status = In(v1::JobStatus::RUNNING);
  status.set_verdict(std::string(bytes, 'x'));
  return status;
}

// The head's image is the user's, and gRPC takes 4 MiB by default.
TEST_F(HeadFollowerTest, AStatusLargerThanTheJobCanHaveIsNotTakenIn) {
  StatusServer server, neighbour;
  server.Say(OfBytes(100'000));
  neighbour.Say(OfBytes(60'000));
  follower_->Follow("a/hostile", Target(server));
  follower_->Follow("a/neighbour", Target(neighbour));
  ASSERT_TRUE(WaitForState("a/neighbour", State::kRunning));
  EXPECT_EQ(follower_->Report("a/hostile")->state, State::kUnknown);
  server.Say(OfBytes(10));
  EXPECT_TRUE(WaitForState("a/hostile", State::kRunning)) << "it is dialled again";
}

TEST_F(HeadFollowerTest, AJobThatGrowsMaySayMore) {
  StatusServer server;
  plan::HeadTarget target = Target(server);
  target.replicas = {{"cpu", 1}};
  target.processes = 1;
  server.Say(In(v1::JobStatus::WAITING));
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  target.replicas = {{"cpu", 1000}};
  target.processes = 1000;
  follower_->Follow("a/x", target);
  v1::JobStatus status = OfBytes(100'000);
  v1::MemberStatus* member = status.add_members();
  member->set_role("cpu");
  member->set_index(999);
  server.Say(status);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  EXPECT_EQ(follower_->Report("a/x")->members.count("cpu-999"), 1u);
}

TEST_F(HeadFollowerTest, AJobThatShrinksKeepsItsStream) {
  StatusServer server;
  plan::HeadTarget target = Target(server);
  target.replicas = {{"cpu", 1000}};
  target.processes = 1000;
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  target.replicas = {{"cpu", 1}};
  target.processes = 1;
  follower_->Follow("a/x", target);
  EXPECT_TRUE(follower_->Report("a/x")->connected);
}

// Back-pressure: the stream stays, the head waits, and what it says last is heard.
TEST_F(HeadFollowerTest, AHeadThatTalksAllTheTimeIsReadAtAPaceAndKept) {
  StatusServer server;
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  // Three of these take up what may be read at once.
  for (int step = 1; step <= 6; ++step) {
    v1::JobStatus status = OfBytes(60'000);
    status.mutable_progress()->set_step(step);
    status.mutable_progress()->set_total_steps(6);
    server.Say(std::move(status));
  }
  ASSERT_TRUE(announcements_.WaitFor([&] {
    const auto report = follower_->Report("a/x");
    return report->progress && report->progress->step == 6;
  }));
  EXPECT_TRUE(follower_->Report("a/x")->connected);
  follower_.reset();  // also while a read waits
}

// A status of ten thousand members takes a while to take in, and a loud head says one after the
// other. Other jobs' workers and heads all once waited for that.
TEST_F(HeadFollowerTest, AHeadWhoseStatusTakesLongHoldsUpNoOtherJob) {
  HoldingClock clock;
  follower_ = std::make_unique<HeadFollower>(clock, identity_, announcements_.Listener());
  StatusServer large, other, third;
  follower_->Follow("team/large", Target(large));
  follower_->Follow("team/other", Target(other));
  for (StatusServer* server : {&large, &other}) server->Say(In(v1::JobStatus::RUNNING));
  ASSERT_TRUE(WaitForState("team/large", State::kRunning));
  ASSERT_TRUE(WaitForState("team/other", State::kRunning));

  clock.Hold();
  large.Say(In(v1::JobStatus::SUCCEEDED, 1000));
  ASSERT_TRUE(clock.WaitUntilHeld());
  other.Say(In(v1::JobStatus::FAILED, 7));
  EXPECT_TRUE(WaitForState("team/other", State::kFailed));
  third.Say(In(v1::JobStatus::RUNNING));
  follower_->Follow("team/third", Target(third));
  EXPECT_TRUE(WaitForState("team/third", State::kRunning));
  follower_->ReportExit("team/third", {.role = "gpu", .index = 1});
  EXPECT_TRUE(announcements_.WaitFor([&] { return third.exits().size() == 1; }));

  EXPECT_TRUE(clock.Release());
  EXPECT_TRUE(WaitForState("team/large", State::kSucceeded));
  follower_.reset();  // before its clock
}

TEST_F(HeadFollowerTest, EndsWhileItDials) {
  StatusServer server;
  const plan::HeadTarget nobody = {.address = "127.0.0.1:1", .job_uid = "job-1"};
  for (int i = 0; i < 100; ++i) {
    follower_->Follow("a/" + std::to_string(i), i % 2 == 0 ? nobody : Target(server));
  }
  follower_.reset();
}

}  // namespace
}  // namespace hetero::reconcile
