#include "tests/fakes/head/script.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

template <typename T>
void Read(const json& object, const char* key, T& value) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) value = found->get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) value = found->get<bool>();
  } else if constexpr (std::is_same_v<T, base::Duration>) {
    if (found->is_number()) value = std::chrono::milliseconds(found->get<int64_t>());
  } else if constexpr (std::is_same_v<T, std::set<std::string>>) {
    if (!found->is_array()) return;
    value.clear();
    for (const json& element : *found) {
      if (element.is_string()) value.insert(element.get<std::string>());
    }
  } else {
    if (found->is_number()) value = found->get<int64_t>();
  }
}

}  // namespace

Script ParseScript(std::string_view text, int attempt) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) object = json::object();
  const auto attempts = object.find("attempts");
  if (attempts != object.end() && attempts->is_object()) {
    const auto own = attempts->find(std::to_string(attempt));
    if (own != attempts->end() && own->is_object()) object.update(json(*own));
  }
  Script script;
  Read(object, "registrationMillis", script.registration_delay);
  Read(object, "neverRegister", script.never_register);
  Read(object, "steps", script.steps);
  Read(object, "stepMillis", script.step_time);
  Read(object, "holdAtStep", script.hold_at);
  Read(object, "stallAtStep", script.stall_at);
  Read(object, "silentAtStep", script.silent_at);
  Read(object, "disconnectAtStep", script.disconnect_at);
  Read(object, "loseMember", script.lose_member);
  Read(object, "loseAtStep", script.lose_at);
  Read(object, "killMember", script.kill_member);
  Read(object, "killAtStep", script.kill_at);
  Read(object, "killExitCode", script.kill_exit_code);
  std::string verdict;
  Read(object, "verdict", verdict);
  script.succeeds = verdict != "Failed";
  Read(object, "message", script.message);
  Read(object, "failedMember", script.failed_member);
  if (object.contains("result") && object["result"].is_object()) script.result = object["result"];
  if (object.contains("findings")) script.findings = object["findings"];
  Read(object, "tellEnd", script.tells_end);
  Read(object, "lingerMillis", script.linger);
  Read(object, "keepRunning", script.keep_running);
  Read(object, "checkpointProblem", script.checkpoint_problem);
  const auto needed = object.find("needed");
  if (needed != object.end() && needed->is_object()) {
    for (const auto& [role, count] : needed->items()) {
      if (count.is_number()) script.needed[role] = count.get<int>();
    }
  }
  return script;
}

}  // namespace hetero::testing
