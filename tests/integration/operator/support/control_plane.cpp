#include "tests/integration/operator/support/control_plane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/labels.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/rest_transport.h"
#include "tests/support/paths.h"

namespace hetero::testing {

namespace {

const char* MustGetenv(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) {
    std::fprintf(stderr, "%s is not set: run this program as tests/cluster/run PROGRAM\n", name);
    std::exit(2);
  }
  return value;
}

}  // namespace

ControlPlane& ControlPlane::Get() {
  static ControlPlane* const plane = new ControlPlane;
  return *plane;
}

ControlPlane::ControlPlane()
    : keys_folder_(std::string(MustGetenv("HETERO_TEST_CLUSTER_DIR")) + "/../keys") {
  MustGetenv("KUBECONFIG");
  char folder[] = "/tmp/hetero-operator-test-XXXXXX";
  folder_ = mkdtemp(folder);
  auto access = kube::DefaultAccess(base::Clock::Real());
  if (!access.ok()) throw std::runtime_error(std::string(access.status().message()));
  server_ = access->server;
  auto transport = kube::MakeRestTransport(*std::move(access));
  if (!transport.ok()) throw std::runtime_error(std::string(transport.status().message()));
  transport_ = *std::move(transport);
  client_ = std::make_unique<kube::Client>(
      *transport_, base::Clock::Real(), registry_,
      kube::Client::Options{.qps = 2000, .burst = 4000, .user_agent = "test"});
}

CommandResult ControlPlane::Kubectl(std::vector<std::string> arguments, const std::string& input,
                                    std::chrono::seconds deadline) {
  arguments.insert(arguments.begin(), "kubectl");
  return RunCommand(arguments, input, deadline);
}

std::string ControlPlane::MustKubectl(std::vector<std::string> arguments,
                                      const std::string& input) {
  const CommandResult result = Kubectl(arguments, input);
  EXPECT_EQ(result.exit_code, 0) << "kubectl " << ::testing::PrintToString(arguments) << "\n"
                                 << result.output;
  return result.output;
}

json ControlPlane::Object(const kube::Resource& resource, const kube::ObjectKey& key) {
  auto object = client_->Get(resource, key);
  return object.ok() ? *std::move(object) : json();
}

std::vector<json> ControlPlane::Objects(const kube::Resource& resource,
                                        const std::string& name_space,
                                        const std::string& label_selector) {
  std::vector<json> objects;
  kube::ListOptions options{.label_selector = label_selector};
  do {
    auto page = client_->List(resource, name_space, options);
    if (!page.ok()) {
      ADD_FAILURE() << "list " << resource.plural << ": " << page.status().message();
      return objects;
    }
    for (json& item : page->items) objects.push_back(std::move(item));
    options.continue_token = page->continue_token;
  } while (!options.continue_token.empty());
  return objects;
}

json ControlPlane::Create(const kube::Resource& resource, const std::string& name_space,
                          const json& object) {
  absl::StatusOr<json> created = absl::UnknownError("");
  int tries = 0;
  WaitFor(
      resource.plural + " are created in " + name_space,
      [&] {
        ++tries;
        created = client_->Create(resource, name_space, object);
        return !absl::IsUnavailable(created.status());
      },
      std::chrono::seconds(60), [&] { return created.status().ToString(); });
  if (created.ok()) return *std::move(created);
  if (tries > 1 && absl::IsAlreadyExists(created.status())) {  // by one without a reply
    return Object(resource, {name_space, object.at("metadata").at("name").get<std::string>()});
  }
  ADD_FAILURE() << "create " << resource.plural << ": " << created.status();
  return json();
}

absl::Status ControlPlane::Delete(const kube::Resource& resource, const kube::ObjectKey& key) {
  absl::Status deleted;
  WaitFor(
      resource.plural + "/" + key.name + " is deleted",
      [&] {
        deleted = client_->Delete(resource, key, {});
        return !absl::IsUnavailable(deleted);
      },
      std::chrono::seconds(60), [&] { return deleted.ToString(); });
  return deleted;
}

std::vector<std::string> ControlPlane::Children(const std::string& name_space,
                                                const std::string& job_uid) {
  std::vector<std::string> children;
  for (const kube::Resource& resource : {kube::kPods, kube::kServices, kube::kConfigMaps,
                                         kube::kSecrets, kube::kNetworkPolicies, kube::kLeases}) {
    for (const json& object : Objects(resource, name_space)) {
      const json& metadata = object.at("metadata");
      bool ours = metadata.value("labels", json::object()).value(api::kJobUidLabel, "") == job_uid;
      for (const json& owner : metadata.value("ownerReferences", json::array())) {
        ours |= owner.at("uid") == job_uid;
      }
      if (ours) children.push_back(resource.plural + "/" + metadata.at("name").get<std::string>());
    }
  }
  return children;
}

void ControlPlane::Patch(const kube::Resource& resource, const kube::ObjectKey& key,
                         const json& patch, const std::string& subresource) {
  auto result = client_->Patch(resource, key, kube::PatchType::kMerge, patch, subresource);
  EXPECT_TRUE(result.ok()) << "patch " << resource.plural << "/" << key.name << ": "
                           << result.status().message();
}

void ControlPlane::Annotate(const kube::Resource& resource, const kube::ObjectKey& key,
                            const std::string& name, const std::string& value) {
  Patch(resource, key, {{"metadata", {{"annotations", {{name, value}}}}}});
}

void ControlPlane::LoseNode(const std::string& name) {
  const CommandResult result =
      RunCommand({testing::SourceDir() + "/tests/cluster/node", "lose", name});
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

void ControlPlane::BringBackNode(const std::string& name) {
  const CommandResult result =
      RunCommand({testing::SourceDir() + "/tests/cluster/node", "return", name});
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

void ControlPlane::Component(const std::string& action, const std::string& name) {
  const CommandResult result =
      RunCommand({testing::SourceDir() + "/tests/cluster/component", action, name}, "",
                 std::chrono::seconds(60));
  EXPECT_EQ(result.exit_code, 0) << action << " " << name << ":\n" << result.output;
}

std::string ControlPlane::ServiceAccountKubeconfig(const std::string& server,
                                                   const std::string& name_space,
                                                   const std::string& account) {
  const json token = Create({"", "v1", "serviceaccounts/" + account + "/token", true}, name_space,
                            {{"spec", {{"expirationSeconds", 4 * 3600}}}});
  static std::atomic<int> count = 0;  // lanes ask side by side
  const std::string file = folder_ + "/kubeconfig-" + std::to_string(++count);
  const json cluster = {{"server", server}, {"certificate-authority", keys_folder_ + "/ca.crt"}};
  const json config = {
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"clusters", json::array({{{"name", "c"}, {"cluster", cluster}}})},
      {"users",
       json::array({{{"name", "u"},
                     {"user", {{"token", token.is_null() ? json() : token["status"]["token"]}}}}})},
      {"contexts",
       json::array({{{"name", "c"},
                     {"context", {{"cluster", "c"}, {"user", "u"}, {"namespace", name_space}}}}})},
      {"current-context", "c"}};
  std::ofstream(file) << config.dump(1);
  return file;
}

ApiProxy::Options ControlPlane::ProxyOptions() const {
  const std::string address = server_.substr(server_.find("//") + 2);
  const size_t colon = address.find(':');
  return {.upstream_host = address.substr(0, colon),
          .upstream_port = std::stoi(address.substr(colon + 1)),
          .certificate_file = keys_folder_ + "/kube-apiserver.crt",
          .key_file = keys_folder_ + "/kube-apiserver.key"};
}

bool WaitFor(const std::string& what, const std::function<bool()>& holds,
             std::chrono::seconds deadline, const std::function<std::string()>& describe) {
  deadline = std::max(deadline, kPatience);
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "not within " << deadline.count() << " s: " << what << "\n"
                    << (describe ? describe() : "");
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace hetero::testing
