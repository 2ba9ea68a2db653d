#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fakes/head/play.h"

// What the fake heads read of the API's objects. Pure; wrong shapes read as empty.
namespace hetero::testing {

struct JobView {
  std::string uid;
  std::vector<RoleView> roles;
  bool tls = true;
  std::string script;
  bool go_on = false;
};

struct ServiceView {
  std::string job_uid;
  std::string cluster_ip;
};

std::shared_ptr<const JobView> ViewJob(const nlohmann::json& object);
std::shared_ptr<const PodView> ViewPod(const nlohmann::json& object);  // null: not a job's pod
std::shared_ptr<const ServiceView> ViewService(const nlohmann::json& object);

// A value of a Secret (base64) or of a ConfigMap; empty when it is not there.
std::string SecretValue(const nlohmann::json& secret, const std::string& key);
std::string ConfigValue(const nlohmann::json& config_map, const std::string& key);

}  // namespace hetero::testing
