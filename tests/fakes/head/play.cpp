#include "tests/fakes/head/play.h"

#include <algorithm>

#include "api/role_type.h"
#include "base/json_access.h"

namespace hetero::testing {
namespace {

constexpr base::Duration kProgressPeriod = std::chrono::milliseconds(500);
constexpr int kMissingNamed = 5;

bool IsGpu(const RoleView& role) { return role.type == api::kGpuWorkerType; }
std::string MemberName(const RoleView& role, int index) {
  return role.name + "-" + std::to_string(index);
}

void FillResult(const nlohmann::json& json, int64_t steps, v1::Result& result) {
  const auto number = [&json](const char* key, auto set) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_number()) set(found->get<double>());
  };
  const auto text = [&json](const char* key, std::string* value) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_string()) *value = found->get<std::string>();
  };
  number("loss", [&](double value) { result.set_loss(value); });
  number("accuracy", [&](double value) { result.set_accuracy(value); });
  number("samplesPerSecond", [&](double value) { result.set_samples_per_second(value); });
  number("costDollars", [&](double value) { result.set_cost_dollars(value); });
  result.set_steps(steps);
  text("streamDigest", result.mutable_stream_digest());
  text("reportUri", result.mutable_report_uri());
  text("checkpointUri", result.mutable_checkpoint_uri());
}

}  // namespace

Play::Action Play::Step(const Scene& scene, const Script& script, base::Instant now) {
  Action action;
  if (scene.attempt != attempt_) NewAttempt(scene.attempt);
  std::string head_uid;
  for (const PodView& pod : scene.pods) {
    for (const RoleView& role : scene.roles) {
      if (role.type == api::kHeadType && role.name == pod.role && pod.running) head_uid = pod.uid;
    }
  }
  if (head_uid != head_uid_) {
    // Another head knows only who registers with it; steps and generation come with them.
    head_uid_ = head_uid;
    members_.clear();
    if (!ended_at_) state_ = v1::JobStatus::WAITING;
  }
  if (head_uid_.empty()) return action;
  if (!ended_at_) {
    UpdateMembers(scene, script, now);
    Advance(scene, script, now, action);
  }
  const v1::JobStatus before = status_;
  FillStatus(scene, script);
  action.ended = ended_at_.has_value();
  const bool silent = script.silent_at && step_ >= *script.silent_at;
  v1::JobStatus compared = status_;
  *compared.mutable_progress() = before.progress();
  const bool news = !told_ || compared.SerializeAsString() != before.SerializeAsString();
  const bool steps = status_.progress().step() != before.progress().step();
  action.publish = !silent && (!action.ended || script.tells_end) &&
                   (news || (steps && now - published_ >= kProgressPeriod));
  if (action.publish) {
    published_ = now;
    told_ = true;
  } else {
    status_ = before;  // what was not told is still news at the next step
  }
  return action;
}

void Play::OnExit(const v1::ExitReport& report) {
  const auto member = members_.find(report.role() + "-" + std::to_string(report.index()));
  if (member == members_.end()) return;
  const bool same = report.incarnation() == 0 || report.incarnation() == member->second.incarnation;
  if (same) member->second.silent = true;
}

void Play::NewAttempt(int attempt) {
  attempt_ = attempt;
  state_ = v1::JobStatus::WAITING;
  ranks_.clear();
  members_.clear();
  step_ = 0;
  ended_at_.reset();
  status_.Clear();
  told_ = false;
}

void Play::UpdateMembers(const Scene& scene, const Script& script, base::Instant now) {
  for (auto& [name, member] : members_) member.connected = false;
  for (const PodView& pod : scene.pods) {
    const auto role = std::find_if(scene.roles.begin(), scene.roles.end(),
                                   [&](const RoleView& one) { return one.name == pod.role; });
    if (role == scene.roles.end() || role->type == api::kHeadType || !pod.running) continue;
    Member& member = members_[pod.member()];
    if (member.uid != pod.uid) {
      member = {.uid = pod.uid, .incarnation = pod.incarnation, .seen = now, .gpu = IsGpu(*role)};
    }
    member.registered |= now - member.seen >= script.registration_delay;
    member.registered &= !script.never_register.contains(pod.member());
    member.connected = member.registered && !member.silent;
  }
}

bool Play::AllRegistered(const Scene& scene) const {
  for (const RoleView& role : scene.roles) {
    if (role.type == api::kHeadType) continue;
    int connected = 0;
    for (int index = 0; index < role.replicas; ++index) {
      const auto member = members_.find(MemberName(role, index));
      connected += member != members_.end() && member->second.connected;
    }
    if (connected < role.min_replicas) return false;
  }
  return true;
}

bool Play::AllTrainersConnected(const Scene& scene) const {
  for (const RoleView& role : scene.roles) {
    if (!IsGpu(role)) continue;
    for (int index = 0; index < role.replicas; ++index) {
      const auto member = members_.find(MemberName(role, index));
      if (member == members_.end() || !member->second.connected) return false;
    }
  }
  return true;
}

void Play::OpenGeneration() {
  std::map<std::string, std::string> ranks;
  for (const auto& [name, member] : members_) {
    if (member.gpu && member.connected) ranks[name] = member.uid;
  }
  // The same processes under another head go on in their own generation.
  if (ranks != ranks_) ++generation_;
  ranks_ = std::move(ranks);
}

void Play::Advance(const Scene& scene, const Script& script, base::Instant now, Action& action) {
  if (state_ == v1::JobStatus::WAITING && AllRegistered(scene)) {
    OpenGeneration();
    state_ = v1::JobStatus::RUNNING;
    step_since_ = now;
  } else if (state_ == v1::JobStatus::RUNNING && !AllTrainersConnected(scene)) {
    state_ = v1::JobStatus::WAITING;
  }
  if (state_ != v1::JobStatus::RUNNING) return;

  int64_t last = script.steps;
  if (script.hold_at && !scene.go_on) last = std::min(last, *script.hold_at);
  if (script.stall_at) last = std::min(last, *script.stall_at);
  // The job may not end before what is scripted to happen to it has happened.
  if (!script.kill_member.empty() && !killed_) last = std::min(last, script.kill_at);
  if (!script.lose_member.empty() && !lost_) last = std::min(last, script.lose_at);
  const int64_t due = script.step_time.count() > 0 ? (now - step_since_) / script.step_time : last;
  const int64_t taken = std::clamp<int64_t>(due, 0, std::max<int64_t>(0, last - step_));
  step_ += taken;
  step_since_ = step_ == last ? now : step_since_ + taken * script.step_time;

  if (!script.kill_member.empty() && !killed_ && step_ >= script.kill_at) {
    for (const PodView& pod : scene.pods) {
      if (pod.member() != script.kill_member) continue;
      action.kill_pod = pod.name;
      action.kill_uid = pod.uid;
    }
    killed_ = !action.kill_pod.empty();
    if (killed_)
      FallSilent(script.kill_member);  // no step without it, however late its end is seen
  }
  if (!script.lose_member.empty() && !lost_ && step_ >= script.lose_at) {
    lost_ = true;
    FallSilent(script.lose_member);
  }
  if (script.disconnect_at && !disconnected_ && step_ >= *script.disconnect_at) {
    disconnected_ = action.disconnect = true;
  }
  if (step_ >= script.steps && action.kill_pod.empty()) End(script, now);
}

void Play::FallSilent(const std::string& name) {
  const auto member = members_.find(name);
  if (member == members_.end()) return;
  member->second.silent = true;
  member->second.connected = false;
}

void Play::End(const Script& script, base::Instant now) {
  state_ = script.succeeds ? v1::JobStatus::SUCCEEDED : v1::JobStatus::FAILED;
  ended_at_ = now;
}

// As a real head: any index may join, the wanted ones are missed.
void Play::FillRole(const RoleView& role) {
  v1::RoleStatus& counts = *status_.add_roles();
  counts.set_name(role.name);
  counts.set_desired(role.replicas);
  const auto is_missing = [this, &role](int index) {
    const auto found = members_.find(MemberName(role, index));
    return found == members_.end() || !found->second.connected;
  };
  for (int index = 0; index < role.replicas && counts.missing_size() < kMissingNamed; ++index) {
    if (is_missing(index)) counts.add_missing(MemberName(role, index));
  }
  for (const auto& [name, member] : members_) {
    if (!member.registered || !name.starts_with(role.name + "-")) continue;
    if (member.connected) counts.set_registered(counts.registered() + 1);
    v1::MemberStatus& entry = *status_.add_members();
    entry.set_role(role.name);
    entry.set_index(std::stoi(name.substr(role.name.size() + 1)));
    entry.set_connected(member.connected);
    entry.set_incarnation(member.incarnation);
    entry.set_lost(member.silent);
  }
}

void Play::FillAdvice(const Script& script) {
  status_.clear_sizing();
  for (const auto& [role, needed] : script.needed) {
    v1::RoleSizing& sizing = *status_.add_sizing();
    sizing.set_role(role);
    sizing.set_needed_replicas(needed);
    sizing.set_reason("as the script says");
  }
  status_.set_checkpoint_problem(script.checkpoint_problem);
}

// Each is a finding as status.findings has one.
void Play::FillFindings(const Script& script) {
  status_.clear_findings();
  if (step_ == 0 || !script.findings.is_array()) return;
  for (const nlohmann::json& from : script.findings) {
    v1::Finding& finding = *status_.add_findings();
    finding.set_rule(base::TextOf(from, "rule"));
    finding.set_message(base::TextOf(from, "message"));
    finding.set_remedy(base::TextOf(from, "remedy"));
    finding.set_field(base::TextOf(from, "field"));
    finding.set_member(base::TextOf(from, "member"));
    const nlohmann::json& seconds = base::FieldOf(from, "seconds");
    const nlohmann::json& dollars = base::FieldOf(from, "dollars");
    if (seconds.is_number()) finding.set_seconds(seconds.get<double>());
    if (dollars.is_number()) finding.set_dollars(dollars.get<double>());
    if (const auto since = api::ParseTime(base::TextOf(from, "since")); since.ok()) {
      finding.set_first_unix_ns(base::Duration(since->time_since_epoch()).count());
    }
    finding.set_active(!from.contains("active") || base::IsTrue(from, "active"));
  }
}

void Play::FillStatus(const Scene& scene, const Script& script) {
  status_.set_state(state_);
  status_.set_generation(generation_);
  status_.clear_roles();
  status_.clear_members();
  for (const RoleView& role : scene.roles) {
    if (role.type != api::kHeadType) FillRole(role);
  }
  FillAdvice(script);
  FillFindings(script);
  v1::Progress& progress = *status_.mutable_progress();
  progress.set_step(step_);
  progress.set_total_steps(script.steps);
  progress.set_epoch(1);
  progress.set_loss(2.3 / static_cast<double>(1 + step_));
  if (!ended_at_) return;
  if (script.succeeds) {
    FillResult(script.result, step_, *status_.mutable_result());
  } else {
    status_.mutable_first_failure()->set_member(script.failed_member);
    status_.mutable_first_failure()->set_message(script.message);
  }
  status_.set_summary(script.message);
  status_.set_verdict(script.message);
}

api::Verdict Play::verdict(const Script& script, const std::string& job_name) const {
  api::Verdict verdict{.succeeded = state_ == v1::JobStatus::SUCCEEDED, .message = script.message};
  if (!verdict.succeeded) {
    verdict.failure.message = script.message;
    if (!script.failed_member.empty()) verdict.failure.pod = job_name + "-" + script.failed_member;
    return verdict;
  }
  v1::Result result;
  FillResult(script.result, step_, result);
  if (result.has_loss()) verdict.result.loss = result.loss();
  if (result.has_accuracy()) verdict.result.accuracy = result.accuracy();
  if (result.has_samples_per_second()) {
    verdict.result.samples_per_second = result.samples_per_second();
  }
  if (result.has_cost_dollars()) verdict.result.cost_dollars = result.cost_dollars();
  verdict.result.steps = result.steps();
  verdict.result.stream_digest = result.stream_digest();
  verdict.result.report_uri = result.report_uri();
  verdict.result.checkpoint_uri = result.checkpoint_uri();
  return verdict;
}

}  // namespace hetero::testing
