#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/head/member.h"
#include "runtime/head/server.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {

inline constexpr base::TlsOptions PlainText() { return {.plain_text = true}; }

// What a member hears, in order; waits with a deadline.
class Inbox {
 public:
  Member::Callbacks MakeCallbacks() {
    Member::Callbacks callbacks;
    callbacks.on_welcome = [this](const v1::Welcome&) { Put("welcome"); };
    callbacks.on_generation = [this](const v1::Generation& g) {
      Put("generation " + std::to_string(g.number()) + " ranks " + std::to_string(g.ranks_size()));
    };
    callbacks.on_roster = [this](const v1::Roster& r) {
      Put("roster " + std::to_string(r.cpu_workers_size()));
    };
    callbacks.on_command = [this](const v1::Command& c) {
      Put("command " + v1::Command::Kind_Name(c.kind()));
    };
    callbacks.on_not_admitted = [this](const v1::NotAdmitted&) { Put("not admitted"); };
    callbacks.on_refused = [this](const v1::Refused& r) {
      Put(r.superseded() ? "superseded" : "refused: " + r.reason());
    };
    callbacks.on_head_lost = [this](const absl::Status&) { Put("head lost"); };
    return callbacks;
  }

  // The next thing heard; "nothing" after 5 s.
  std::string Next() {
    std::unique_lock lock(mutex_);
    if (!heard_.wait_for(lock, std::chrono::seconds(5), [this] { return !messages_.empty(); })) {
      return "nothing";
    }
    std::string message = messages_.front();
    messages_.pop_front();
    return message;
  }

 private:
  void Put(std::string message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    heard_.notify_all();
  }

  std::mutex mutex_;  // guards messages_
  std::condition_variable heard_;
  std::deque<std::string> messages_;
};

struct Joined {
  std::unique_ptr<Inbox> inbox = std::make_unique<Inbox>();
  std::unique_ptr<Member> member;
};

inline Joined Join(const std::string& address, v1::Hello hello) {
  Joined joined;
  joined.member = Member::Start(
      {.head_address = address,
       .tls = PlainText(),
       .hello = std::move(hello),
       .heartbeat = std::chrono::milliseconds(50),
       .head_timeout = std::chrono::milliseconds(200)},
      joined.inbox->MakeCallbacks(), [] { return v1::Heartbeat(); }, base::Clock::Real());
  joined.member->SetReady({});
  return joined;
}

// A folder of its own, and a job of one CPU worker and one rank.
class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    std::string name = (std::filesystem::temp_directory_path() / "head-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    job = MakeJob();
    job.spec.roles[1].replicas = 1;
    job.spec.roles[2].gpus_per_replica = 0;
    job.spec.roles.pop_back();
  }
  ~ServerTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  Server::Options MakeOptions(const std::string& address) const {
    return {.job = job,
            .listen_address = address,
            .tls = PlainText(),
            .created = base::Clock::Real().WallNow(),
            .stop_grace = std::chrono::milliseconds(300)};
  }
  std::unique_ptr<Server> StartServer() const {
    auto server = Server::Start(MakeOptions(socket()), base::Clock::Real());
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  std::string socket() const { return "unix:" + folder + "/head.sock"; }

  std::string folder;
  api::HeteroTrainingJob job;
};

}  // namespace hetero::head
