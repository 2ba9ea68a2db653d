#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/job_status.h"
#include "base/clock.h"
#include "hetero/v1/status.pb.h"
#include "tests/fakes/head/script.h"

namespace hetero::testing {

struct RoleView {
  std::string name;
  std::string type;  // Head, CPUWorker, GPUWorker
  int replicas = 0;
  int min_replicas = 0;  // without which it does not train
};

struct PodView {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string job_uid;
  std::string role;
  int index = 0;
  int attempt = 0;
  int64_t incarnation = 0;
  bool running = false;  // its container `runtime` does
  std::string member() const { return role + "-" + std::to_string(index); }
};

// One job's life as its script has it: members register, generations open, steps are counted, the
// end comes. No I/O and no clock of its own. Not thread-safe.
class Play {
 public:
  struct Scene {
    int attempt = 0;
    std::vector<RoleView> roles;
    std::vector<PodView> pods;  // of this attempt
    bool go_on = false;         // the annotation `continue` is there
  };
  struct Action {
    bool publish = false;     // status() has news that watchers should see now
    bool disconnect = false;  // break all streams
    std::string kill_pod;     // name of a pod to end with Script::kill_exit_code
    std::string kill_uid;     // its uid: no other pod of that name is meant
    bool ended = false;       // the verdict is there; after Script::linger the pods exit
  };

  Action Step(const Scene& scene, const Script& script, base::Instant now);
  // A member's process is gone, as the operator reports it.
  void OnExit(const v1::ExitReport& report);

  const v1::JobStatus& status() const { return status_; }
  int64_t generation() const { return generation_; }
  int64_t step() const { return step_; }
  // The next Step has news, whatever it brings: watchers may not have heard the last.
  void TellAgain() { told_ = false; }
  // Once ended: the head's last words.
  api::Verdict verdict(const Script& script, const std::string& job_name) const;
  std::optional<base::Instant> ended_at() const { return ended_at_; }

 private:
  struct Member {
    std::string uid;
    int64_t incarnation = 0;
    base::Instant seen;
    bool registered = false;
    bool connected = false;
    bool silent = false;  // until another pod takes its place
    bool gpu = false;
  };
  void NewAttempt(int attempt);
  void UpdateMembers(const Scene& scene, const Script& script, base::Instant now);
  bool AllRegistered(const Scene& scene) const;
  bool AllTrainersConnected(const Scene& scene) const;
  void OpenGeneration();
  void Advance(const Scene& scene, const Script& script, base::Instant now, Action& action);
  void FallSilent(const std::string& member);  // until another pod takes its place
  void End(const Script& script, base::Instant now);
  void FillStatus(const Scene& scene, const Script& script);
  void FillRole(const RoleView& role);
  void FillAdvice(const Script& script);
  void FillFindings(const Script& script);

  int attempt_ = -1;
  std::string head_uid_;
  v1::JobStatus::State state_ = v1::JobStatus::WAITING;
  int64_t generation_ = 0;
  std::map<std::string, std::string> ranks_;  // trainers of this generation: member -> pod uid
  std::map<std::string, Member> members_;
  int64_t step_ = 0;
  base::Instant step_since_;
  std::optional<base::Instant> ended_at_;
  base::Instant published_;
  bool told_ = false;
  bool killed_ = false;
  bool lost_ = false;
  bool disconnected_ = false;
  v1::JobStatus status_;
};

}  // namespace hetero::testing
