#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "api/manifest.h"
#include "operator/children/children.h"
#include "tests/support/paths.h"

namespace hetero::children {

inline constexpr char kUid[] = "0b8c2c1e-7f0f-4f3e-9d8f-3f1c2f3a4b5c";

// examples/quickstart.yaml as the operator finds it in the cluster.
inline api::HeteroTrainingJob QuickstartJob(const std::vector<std::string>& overrides = {}) {
  std::ifstream file(testing::SourceDir() + "/examples/quickstart.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  api::ManifestResult parsed = api::ParseManifest(text.str(), overrides);
  EXPECT_TRUE(parsed.errors.empty()) << api::FormatErrors(parsed.errors);
  parsed.job.metadata.name_space = "team-a";
  parsed.job.metadata.uid = kUid;
  return parsed.job;
}

inline api::Role& RoleOf(api::HeteroTrainingJob& job, api::RoleType type) {
  for (api::Role& role : job.spec.roles) {
    if (role.type == type) return role;
  }
  return job.spec.roles.at(0);
}

inline PodSlot SlotOf(const api::Role& role) {
  return {.role = &role,
          .index = 1,
          .attempt = 3,
          .incarnation = 1767225600000000001,
          .head_address = "10.96.0.7:7070"};
}

// The pod of a role whose template is `pod_template`.
inline nlohmann::json PodWith(api::RoleType type, const nlohmann::json& pod_template,
                              const Settings& settings = {},
                              api::HeteroTrainingJob job = QuickstartJob()) {
  api::Role& role = RoleOf(job, type);
  role.pod_template = pod_template.is_null() ? "" : pod_template.dump();
  return Pod(job, SlotOf(role), settings);
}

inline const nlohmann::json& RuntimeOf(const nlohmann::json& pod) {
  for (const nlohmann::json& container : pod["spec"]["containers"]) {
    if (container["name"] == "runtime") return container;
  }
  ADD_FAILURE() << "no container named runtime";
  return pod;
}

// The element of a list whose "name" is that; null when there is none.
inline nlohmann::json Named(const nlohmann::json& list, const std::string& name) {
  for (const nlohmann::json& element : list) {
    if (element.is_object() && element.value("name", "") == name) return element;
  }
  return nullptr;
}

}  // namespace hetero::children
