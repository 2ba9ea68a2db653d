#include "tests/integration/local/local_pods.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "api/labels.h"
#include "api/ports.h"
#include "base/clock.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

constexpr char kJobUid[] = "0b8c2c1e-7f0f-4f3e-9d8f-3f1c2f3a4b5c";

template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  EXPECT_TRUE(value.ok()) << value.status();
  return *std::move(value);
}

const json& RuntimeOf(const json& pod) {
  for (const json& container : pod["spec"]["containers"]) {
    if (container["name"] == "runtime") return container;
  }
  ADD_FAILURE() << "no container named runtime";
  return pod;
}

}  // namespace

LocalPods::LocalPods(api::HeteroTrainingJob job, std::vector<std::string> environment)
    : job_(std::move(job)),
      environment_(std::move(environment)),
      trust_(ValueOrDie(reconcile::IssueJobTrust(kJobUid, base::Clock::Real().WallNow()))),
      operator_(ValueOrDie(reconcile::IssueOperatorIdentity(base::Clock::Real().WallNow()))) {
  job_.metadata.uid = kJobUid;
  job_.metadata.name_space = "team-a";
  if (!job_.spec.output || !absl::StartsWith(job_.spec.output->uri, "s3://")) {
    job_.spec.output.emplace().uri = absl::StrCat("file://", output_folder());
  }
  const bool tls = job_.spec.network.tls == api::Switch::kEnabled;
  const json config =
      children::ConfigMap(job_, {}, tls ? trust_.ca_pem : "", tls ? operator_.ca_pem : "");
  for (const auto& [name, text] : config["data"].items()) {
    WriteFile(folder_ / "config/" + name, text.get<std::string>());
  }
}

void LocalPods::StartAll() {
  for (const api::Role& role : job_.spec.roles) {
    for (int index = 0; index < role.replicas; ++index) Start(role.name, index);
  }
}

// 127.x.y.z with x and y from this process, so that tests beside this one have others.
std::string LocalPods::AddressFor(const std::string& pod) {
  const auto known = pods_.find(pod);
  if (known != pods_.end()) return known->second.address;
  return absl::StrCat("127.", 1 + getpid() / 250 % 250, ".", getpid() % 250, ".", 2 + pods_.size());
}

std::string LocalPods::Here(std::string text, const std::string& pod) const {
  const std::string files = folder_.path();
  return absl::StrReplaceAll(text, {{"/etc/hetero-tls", absl::StrCat(files, "/tls-", pod)},
                                    {"/etc/hetero", absl::StrCat(files, "/config")},
                                    {"/dev/termination-log", absl::StrCat(files, "/last-", pod)},
                                    {"0.0.0.0:", absl::StrCat(pods_.at(pod).address, ":")}});
}

std::optional<std::string> LocalPods::ValueOf(const json& variable, const json& container,
                                              const std::string& pod) const {
  if (variable.contains("value")) return Here(variable["value"], pod);
  const json& from = variable["valueFrom"];
  if (from.contains("fieldRef")) {
    return from["fieldRef"]["fieldPath"] == "status.podIP" ? pods_.at(pod).address : "node-1";
  }
  if (from.contains("secretKeyRef")) {
    const json& wanted = from["secretKeyRef"];
    EXPECT_EQ(wanted["optional"], true) << "else the kubelet would wait for it";
    const auto secret = secrets_.find(wanted["name"]);
    if (secret == secrets_.end()) return std::nullopt;
    const auto key = secret->second.find(wanted["key"]);
    return key == secret->second.end() ? std::nullopt : std::optional(key->second);
  }
  EXPECT_EQ(from["resourceFieldRef"]["resource"], "requests.cpu");
  EXPECT_EQ(from["resourceFieldRef"]["divisor"], "1m");
  const bool worker = container.contains("resources");
  return worker ? "2000" : "0";  // of a container without a request
}

void LocalPods::MountSecret(const json& spec, const std::string& pod) {
  const json secret =
      children::TlsSecret(job_, trust_.head, trust_.cpu_worker, trust_.gpu_worker)["stringData"];
  for (const json& volume : spec["volumes"]) {
    if (!volume.contains("secret")) continue;
    for (const json& item : volume["secret"]["items"]) {
      WriteFile(folder_ / absl::StrCat("tls-", pod, "/", item["path"].get<std::string>()),
                secret[item["key"].get<std::string>()].get<std::string>());
    }
  }
}

std::string LocalPods::HeadAddress() {
  const auto head =
      std::find_if(job_.spec.roles.begin(), job_.spec.roles.end(),
                   [](const api::Role& role) { return role.type == api::RoleType::kHead; });
  const std::string pod = absl::StrCat(head->name, "-0");
  return pods_[pod].address = AddressFor(pod);
}

void LocalPods::Start(const std::string& role_name, int index) {
  const auto role = std::find_if(job_.spec.roles.begin(), job_.spec.roles.end(),
                                 [&](const api::Role& role) { return role.name == role_name; });
  ASSERT_NE(role, job_.spec.roles.end());
  incarnation_ =
      std::max(incarnation_ + 1, base::Clock::Real().WallNow().time_since_epoch().count());
  StartPod(children::Pod(job_,
                         {.role = &*role,
                          .index = index,
                          .attempt = 1,
                          .incarnation = incarnation_,
                          .head_address = absl::StrCat(HeadAddress(), ":", api::kHeadPort)},
                         {}));
}

void LocalPods::StartPod(const json& object) {
  HeadAddress();
  const json& labels = object["metadata"]["labels"];
  const std::string pod = absl::StrCat(labels[api::kRoleLabel].get<std::string>(), "-",
                                       labels[api::kReplicaIndexLabel].get<std::string>());
  pods_[pod].address = AddressFor(pod);
  pods_[pod].termination_log = folder_ / absl::StrCat("last-", pod);
  std::filesystem::remove(pods_[pod].termination_log);

  const json& container = RuntimeOf(object);
  MountSecret(object["spec"], pod);
  std::vector<std::string> arguments;
  for (const json& argument : container["args"]) arguments.push_back(Here(argument, pod));
  std::vector<std::string> environment = environment_;
  for (const json& variable : container["env"]) {
    const std::optional<std::string> value = ValueOf(variable, container, pod);
    if (!value) continue;
    environment.push_back(absl::StrCat(variable["name"].get<std::string>(), "=", *value));
  }
  pods_[pod].run = std::make_unique<ProgramRun>(container["command"][0], arguments, environment);
}

std::string LocalPods::TerminationMessage(const std::string& pod) const {
  const std::string& path = pods_.at(pod).termination_log;
  return std::filesystem::exists(path) ? ReadFileOrDie(path) : "";
}

std::string LocalPods::Fetch(const std::string& pod, int port, const std::string& path) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string last = "no answer";
  while (std::chrono::steady_clock::now() < end) {
    httplib::Client client(pods_.at(pod).address, port);
    const httplib::Result answer = client.Get(path);
    if (answer && answer->status == 200) return answer->body;
    if (answer) last = answer->body;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ADD_FAILURE() << "GET " << path << " of " << pod << ": " << last;
  return "";
}

bool LocalPods::ready(const std::string& pod) const {
  httplib::Client client(pods_.at(pod).address, api::kMetricsPort);
  const httplib::Result answer = client.Get("/readyz");
  return answer && answer->status == 200;
}

}  // namespace hetero::testing
