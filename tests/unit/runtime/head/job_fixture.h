#pragma once

#include <string>
#include <variant>
#include <vector>

#include "runtime/handshake/build.h"
#include "runtime/head/state.h"

namespace hetero::head {

// One head, `cpu` x2 (at least 1), `gpu` x1 with two local ranks, `big` x1 with one rank.
inline api::HeteroTrainingJob MakeJob() {
  api::HeteroTrainingJob job;
  job.metadata.name = "blur";
  job.spec.dataset.max_bad_samples = 2;
  job.spec.training.seed = 7;
  job.spec.run_policy.member_timeout_seconds = 5;
  job.spec.run_policy.startup_deadline_seconds = 60;
  api::Role head;
  head.name = "head";
  head.type = api::RoleType::kHead;
  api::Role cpu;
  cpu.name = "cpu";
  cpu.type = api::RoleType::kCpuWorker;
  cpu.replicas = 2;
  cpu.min_replicas = 1;
  cpu.max_replicas = 3;
  api::Role gpu;
  gpu.name = "gpu";
  gpu.type = api::RoleType::kGpuWorker;
  gpu.gpus_per_replica = 2;
  api::Role big;
  big.name = "big";
  big.type = api::RoleType::kGpuWorker;
  job.spec.roles = {head, cpu, gpu, big};
  return job;
}

inline v1::Hello MakeHello(const std::string& role, int index, int local = 0,
                           int64_t incarnation = 1) {
  v1::Hello hello;
  hello.set_version(handshake::ThisBuild().version);
  hello.set_protocol(handshake::ThisBuild().protocol);
  hello.mutable_identity()->set_role(role);
  hello.mutable_identity()->set_index(index);
  hello.mutable_identity()->set_local_rank(local);
  hello.mutable_identity()->set_incarnation(incarnation);
  hello.set_address(role + std::to_string(index) + "." + std::to_string(local));
  return hello;
}

inline v1::Ready MakeReady(int64_t samples) {
  v1::Ready ready;
  ready.set_fingerprint("print of " + std::to_string(samples));
  ready.set_samples(samples);
  (*ready.mutable_environment())["libjpeg-turbo"] = "2.1.5";
  return ready;
}

// Drives a State with a time of its own, in ticks of 100 ms like the server.
class Drive {
 public:
  explicit Drive(api::HeteroTrainingJob job = MakeJob())
      : state({.job = std::move(job), .job_json = "{}", .created = Time().wall}, Time()) {}

  std::vector<Action> Apply(const Event& event) { return state.Apply(event, Time()); }
  // A member that joins with its dataset open.
  std::vector<Action> Hello(StreamId stream, const v1::Hello& hello,
                            const v1::Ready& ready = MakeReady(100)) {
    std::vector<Action> actions = Apply(HelloReceived{stream, hello});
    Collect(Apply(ReadyReceived{stream, ready}), actions);
    return actions;
  }
  // All members but cpu-1 join on streams 10 (cpu-0), 20, 21 (gpu-0.*) and 30 (big-0).
  std::vector<Action> JoinAll() {
    Hello(10, MakeHello("cpu", 0));
    Hello(20, MakeHello("gpu", 0, 0));
    Hello(21, MakeHello("gpu", 0, 1));
    return Hello(30, MakeHello("big", 0));
  }
  // Ticks for `duration`; streams in `alive` send a heartbeat each time.
  std::vector<Action> Pass(base::Duration duration, const std::vector<StreamId>& alive = {}) {
    std::vector<Action> all;
    const base::Duration until = elapsed + duration;
    while (elapsed < until) {
      elapsed += std::chrono::milliseconds(100);
      for (const StreamId stream : alive) Collect(Apply(HeartbeatReceived{stream, {}}), all);
      Collect(Apply(Tick{}), all);
    }
    return all;
  }
  std::vector<Action> Finish(StreamId stream, bool ok, bool stopped = false,
                             const std::string& message = "") {
    v1::Finished finished;
    finished.set_ok(ok);
    finished.set_stopped(stopped);
    finished.set_message(message);
    return Apply(FinishedReceived{stream, finished});
  }

  Moment Time() const {
    return {base::Instant(std::chrono::hours(1) + elapsed),
            base::WallTime(std::chrono::seconds(1'700'000'000)) +
                std::chrono::duration_cast<base::WallTime::duration>(elapsed)};
  }

  base::Duration elapsed{0};
  State state;

 private:
  static void Collect(std::vector<Action> from, std::vector<Action>& to) {
    to.insert(to.end(), from.begin(), from.end());
  }
};

template <typename T>
std::vector<T> Only(const std::vector<Action>& actions) {
  std::vector<T> found;
  for (const Action& action : actions) {
    if (const T* match = std::get_if<T>(&action)) found.push_back(*match);
  }
  return found;
}

// Streams that are told to stop.
inline std::vector<StreamId> Stopped(const std::vector<Action>& actions) {
  std::vector<StreamId> streams;
  for (const Send& send : Only<Send>(actions)) {
    if (send.message.has_command() && send.message.command().kind() == v1::Command::STOP) {
      streams.push_back(send.stream);
    }
  }
  return streams;
}

// "cpu-0 cpu-1" of the last roster sent; "none" without one.
inline std::string LastRoster(const std::vector<Action>& actions) {
  const auto rosters = Only<BroadcastRoster>(actions);
  if (rosters.empty()) return "none";
  std::string names;
  for (const v1::CpuWorker& worker : rosters.back().roster.cpu_workers()) {
    if (!names.empty()) names += " ";
    names += worker.role() + "-" + std::to_string(worker.index());
  }
  return names;
}

}  // namespace hetero::head
