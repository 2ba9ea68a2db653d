#include "tests/integration/operator/support/world.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <sstream>
#include <thread>
#include <utility>

#include "api/job_resource.h"
#include "api/labels.h"
#include "tests/support/paths.h"

namespace hetero::testing {

const kube::Resource kJobs{api::kGroup, api::kVersion, api::kPlural, true};

namespace {

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

std::string HttpGet(int port, const std::string& path, int* status = nullptr) {
  httplib::Client client("127.0.0.1", port);
  client.set_connection_timeout(1);
  client.set_read_timeout(5);
  auto result = client.Get(path);
  if (status != nullptr) *status = result ? result->status : 0;
  return result ? result->body : "";
}

}  // namespace

namespace {
World* existing_world = nullptr;
}

World& World::Get() {
  static World* const world = existing_world = new World;
  return *world;
}

World* World::Existing() { return existing_world; }

World::World() {
  signal(SIGPIPE, SIG_IGN);
  ControlPlane& plane = ControlPlane::Get();
  const CommandResult install =
      RunCommand({"helm", "install", "hetero", testing::SourceDir() + "/charts/hetero-operator",
                  "--namespace", kSystemNamespace, "--create-namespace", "--set", "replicas=0"},
                 "", std::chrono::seconds(60));
  EXPECT_EQ(install.exit_code, 0) << install.output;
  WaitFor("the kind is served", [&] { return plane.Kubectl({"get", "htj", "-A"}).exit_code == 0; });
  fake_port_ = FreePort();
  fake_heads_ = std::make_unique<BackgroundProgram>(
      std::vector<std::string>{testing::BinDir() + "/hetero-fake-head", "--listen",
                               "127.0.0.1:" + std::to_string(fake_port_)},
      plane.folder() + "/fake-head.log");
  WaitFor("the fake heads answer", [&] { return !HttpGet(fake_port_, "/jobs").empty(); });
}

void World::InstallKueue() {
  if (std::exchange(kueue_installed_, true)) return;
  const CommandResult kueue =
      RunCommand({testing::SourceDir() + "/tests/cluster/kueue"}, "", std::chrono::seconds(180));
  ASSERT_EQ(kueue.exit_code, 0) << kueue.output;
  const CommandResult upgrade =
      RunCommand({"helm", "upgrade", "hetero", testing::SourceDir() + "/charts/hetero-operator",
                  "--namespace", kSystemNamespace, "--reuse-values", "--set", "kueue.enabled=true"},
                 "", std::chrono::seconds(60));
  ASSERT_EQ(upgrade.exit_code, 0) << upgrade.output;
}

void World::InstallPodGroups() {
  if (std::exchange(pod_groups_installed_, true)) return;
  const CommandResult groups = RunCommand({testing::SourceDir() + "/tests/cluster/pod_groups"}, "",
                                          std::chrono::seconds(120));
  ASSERT_EQ(groups.exit_code, 0) << groups.output;
  const CommandResult upgrade =
      RunCommand({"helm", "upgrade", "hetero", testing::SourceDir() + "/charts/hetero-operator",
                  "--namespace", kSystemNamespace, "--reuse-values", "--set",
                  "scheduling.gangs={Volcano,Coscheduling,Native}"},
                 "", std::chrono::seconds(60));
  ASSERT_EQ(upgrade.exit_code, 0) << upgrade.output;
}

json World::FakeHeads() {
  return json::parse(HttpGet(fake_port_, "/jobs"), nullptr, /*allow_exceptions=*/false);
}

json World::FakeHead(const std::string& name_space, const std::string& job) {
  return FakeHeads().value(name_space + "/" + job, json::object());
}

OperatorProcess::OperatorProcess(Options options) : options_(std::move(options)) {
  ControlPlane& plane = ControlPlane::Get();
  kubeconfig_ =
      plane.ServiceAccountKubeconfig(options_.server.empty() ? plane.server() : options_.server,
                                     kSystemNamespace, World::Get().account());
  static std::atomic<int> count = 0;
  log_file_ = plane.folder() + "/operator-" + std::to_string(++count) + ".log";
  port_ = FreePort();
  if (options_.start) Start();
}

OperatorProcess::~OperatorProcess() {
  if (::testing::Test::HasFailure()) {
    std::string text = log();
    if (text.size() > 8000) text = "..." + text.substr(text.size() - 8000);
    std::fprintf(stderr, "--- %s\n%s\n", log_file_.c_str(), text.c_str());
  }
}

void OperatorProcess::Start() {
  std::vector<std::string> arguments = {testing::BinDir() + "/hetero-operator",
                                        "--kubeconfig",
                                        kubeconfig_,
                                        "--operator-namespace",
                                        kSystemNamespace,
                                        "--lease-namespace",
                                        kSystemNamespace,
                                        "--metrics-listen",
                                        "127.0.0.1:" + std::to_string(port_),
                                        "--probes-listen",
                                        "127.0.0.1:0",
                                        "--page-listen",
                                        "none"};
  arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
  std::lock_guard lock(mutex_);
  program_ = std::make_unique<BackgroundProgram>(arguments, log_file_, options_.environment);
}

void OperatorProcess::Kill() {
  std::lock_guard lock(mutex_);
  if (!program_) return;
  program_->Signal(SIGKILL);
  program_->Wait(std::chrono::seconds(10));
}

int OperatorProcess::Stop() {
  std::lock_guard lock(mutex_);
  program_->Signal(SIGTERM);
  return program_->Wait(std::chrono::seconds(35));
}

bool OperatorProcess::running() {
  std::lock_guard lock(mutex_);
  return program_ && program_->running();
}

pid_t OperatorProcess::pid() {
  std::lock_guard lock(mutex_);
  return program_ ? program_->pid() : -1;
}

bool OperatorProcess::ready() {
  int status = 0;
  HttpGet(port_, "/readyz", &status);
  return status == 200;
}

std::string OperatorProcess::metrics() { return HttpGet(port_, "/metrics"); }

double OperatorProcess::Metric(const std::string& series) {
  std::istringstream lines(metrics());
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(series + " ", 0) == 0) return std::stod(line.substr(series.size() + 1));
  }
  return 0;
}

std::string OperatorProcess::log() const {
  std::lock_guard lock(mutex_);
  return program_ ? program_->log() : "";
}

TestNamespace::TestNamespace(const std::string& prefix) {
  static std::atomic<int> count = 0;
  name_ = prefix + "-" + std::to_string(++count);
  ControlPlane& plane = ControlPlane::Get();
  plane.Create(kube::kNamespaces, "", {{"metadata", {{"name", name_}}}});
  // Pods are refused until the controller manager has made it.
  WaitFor("the default ServiceAccount of " + name_, [&] {
    return !plane.Object({"", "v1", "serviceaccounts", true}, {name_, "default"}).is_null();
  });
}

// A test may have deleted it.
TestNamespace::~TestNamespace() {
  (void)ControlPlane::Get().Delete(kube::kNamespaces, {"", name_});
}

json MakeJob(const std::string& name, const json& script, int cpu, int gpu) {
  return {
      {"apiVersion", "training.hetero.dev/v1alpha1"},
      {"kind", "HeteroTrainingJob"},
      {"metadata", {{"name", name}, {"annotations", {{"fake.hetero.dev/script", script.dump()}}}}},
      {"spec",
       {{"dataset",
         {{"uri", "synthetic://"},
          {"samples", 640},
          {"classes", 10},
          {"image", {{"height", 8}, {"width", 8}, {"channels", 3}}}}},
        {"pipeline", json::array({{{"op", "Normalize"}}})},
        {"training", {{"model", {{"name", "mlp"}}}, {"batchSizePerWorker", 32}, {"epochs", 1}}},
        {"roles", json::array({{{"name", "head"}, {"type", "Head"}},
                               {{"name", "cpu"}, {"type", "CPUWorker"}, {"replicas", cpu}},
                               {{"name", "gpu"},
                                {"type", "GPUWorker"},
                                {"replicas", gpu},
                                {"gpusPerReplica", 0}}})}}}};
}

json& RoleOf(json& job, const std::string& role) {
  for (json& entry : job["spec"]["roles"]) {
    if (entry["name"] == role) return entry;
  }
  throw std::out_of_range("no role " + role);
}

void AnnotatePods(json& job, const std::string& role, const std::string& name,
                  const std::string& value) {
  RoleOf(job, role)["template"]["metadata"]["annotations"][name] = value;
}

JobUnderTest::JobUnderTest(const std::string& name_space, json job)
    : key_{name_space, job["metadata"]["name"].get<std::string>()} {
  job["metadata"]["namespace"] = name_space;
  json created = Get();  // as kubectl apply: a test may have made it
  if (created.is_null()) created = ControlPlane::Get().Create(kJobs, name_space, job);
  if (created.is_object()) uid_ = created["metadata"]["uid"].get<std::string>();
}

json JobUnderTest::Get() const { return ControlPlane::Get().Object(kJobs, key_); }

json JobUnderTest::Status() const {
  const json object = Get();
  return object.is_object() ? object.value("status", json::object()) : json::object();
}

namespace {

json Condition(const json& status, const std::string& type) {
  for (const json& condition : status.value("conditions", json::array())) {
    if (condition["type"] == type) return condition;
  }
  return json::object();
}

}  // namespace

bool JobUnderTest::Is(const std::string& condition) const {
  return Condition(Status(), condition).value("status", "") == "True";
}
std::string JobUnderTest::Reason(const std::string& condition) const {
  return Condition(Status(), condition).value("reason", "");
}
std::string JobUnderTest::Message(const std::string& condition) const {
  return Condition(Status(), condition).value("message", "");
}

bool JobUnderTest::WaitIs(const std::string& condition, std::chrono::seconds deadline) const {
  return WaitFor(
      key_.ToString() + " is " + condition, [&] { return Is(condition); }, deadline,
      [&] { return Describe(); });
}

std::vector<std::string> JobUnderTest::Children() const {
  return ControlPlane::Get().Children(key_.name_space, uid_);
}

bool JobUnderTest::WaitGone(std::chrono::seconds deadline) const {
  return WaitFor(
      "every child of " + key_.ToString() + " is gone", [&] { return Children().empty(); },
      deadline, [&] { return Describe(); });
}

bool JobUnderTest::WaitPods(int count, std::chrono::seconds deadline) const {
  return WaitFor(
      std::to_string(count) + " pods of " + key_.ToString() + " run",
      [&] {
        int running = 0;
        for (const json& pod : ControlPlane::Get().Objects(
                 kube::kPods, key_.name_space, std::string(api::kJobUidLabel) + "=" + uid_)) {
          running += pod["status"].value("phase", "") == "Running" &&
                     !pod["metadata"].contains("deletionTimestamp");
        }
        return running == count;
      },
      deadline, [&] { return Describe(); });
}

json JobUnderTest::Pod(const std::string& role, int index) const {
  return ControlPlane::Get().Object(kube::kPods, PodKey(role, index));
}

kube::ObjectKey JobUnderTest::PodKey(const std::string& role, int index) const {
  return {key_.name_space, key_.name + "-" + role + "-" + std::to_string(index)};
}

std::string JobUnderTest::PodUid(const std::string& role, int index) const {
  const json pod = Pod(role, index);
  return pod.is_object() ? pod["metadata"]["uid"].get<std::string>() : "";
}

void JobUnderTest::EndPod(const std::string& role, int index, int exit_code,
                          const std::string& message, const std::string& reason) const {
  json annotations = {{"fake.hetero.dev/exit-code", std::to_string(exit_code)}};
  if (!message.empty()) annotations["fake.hetero.dev/message"] = message;
  if (!reason.empty()) annotations["fake.hetero.dev/reason"] = reason;
  ControlPlane::Get().Patch(kube::kPods, PodKey(role, index),
                            {{"metadata", {{"annotations", annotations}}}});
}

void JobUnderTest::EvictPod(const std::string& role, int index) const {
  ControlPlane::Get().Annotate(kube::kPods, PodKey(role, index), "fake.hetero.dev/evicted",
                               "The node was low on resource: memory.");
}

void JobUnderTest::Continue() const {
  ControlPlane::Get().Annotate(kJobs, key_, "fake.hetero.dev/continue", "yes");
}

void JobUnderTest::PatchSpec(const json& spec) const {
  ControlPlane::Get().Patch(kJobs, key_, {{"spec", spec}});
}

void JobUnderTest::Delete() const {
  const absl::Status deleted = ControlPlane::Get().Delete(kJobs, key_);
  EXPECT_TRUE(deleted.ok()) << key_.name << ": " << deleted;
}

std::string JobUnderTest::Describe() const {
  ControlPlane& plane = ControlPlane::Get();
  std::string text = "status: " + Status().dump(1) +
                     "\nchildren: " + ::testing::PrintToString(Children()) + "\nevents:\n" +
                     plane.Kubectl({"events", "-n", key_.name_space}).output;
  if (World* world = World::Existing()) {
    text += "\nfake head: " + world->FakeHead(key_.name_space, key_.name).dump(1);
  }
  return text;
}

}  // namespace hetero::testing
