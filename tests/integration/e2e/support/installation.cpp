#include "tests/integration/e2e/support/installation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

namespace {

using std::chrono::seconds;

constexpr char kDeployment[] = "hetero-hetero-operator";

void EnforceRestricted(const std::string& name_space) {
  ControlPlane::Get().MustKubectl({"label", "--overwrite", "namespace", name_space,
                                   "pod-security.kubernetes.io/enforce=restricted"});
}

// A volume over a folder of the node; nobody provisions volumes here.
json Volume(const std::string& name_space, const std::string& folder) {
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"metadata", {{"name", name_space}}},
          {"spec",
           {{"capacity", {{"storage", "1Gi"}}},
            {"accessModes", {"ReadWriteMany"}},
            {"persistentVolumeReclaimPolicy", "Retain"},
            {"storageClassName", ""},
            {"hostPath", {{"path", folder}, {"type", "Directory"}}},
            {"claimRef", {{"namespace", name_space}, {"name", "data"}}}}}};
}

json Claim(const std::string& name_space) {
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"metadata", {{"name", "data"}, {"namespace", name_space}}},
          {"spec",
           {{"accessModes", {"ReadWriteMany"}},
            {"storageClassName", ""},
            {"volumeName", name_space},
            {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}};
}

}  // namespace

Installation& Installation::Get() {
  static Installation* const installation = new Installation;
  return *installation;
}

Installation::Installation() {
  if (std::getenv("HETERO_E2E_INSTALLED") != nullptr) return;
  ControlPlane& plane = ControlPlane::Get();
  // Both may be there: on a cluster that somebody keeps, this program runs more than once.
  plane.Kubectl({"create", "namespace", kSystemNamespace});
  EnforceRestricted(kSystemNamespace);
  const CommandResult install = RunCommand(
      {"helm", "upgrade", "--install", "hetero", testing::SourceDir() + "/charts/hetero-operator",
       // Enforced here: what the operator may not reach it does not reach.
       "--set", "networkPolicy.egress.enabled=true", "--namespace", kSystemNamespace, "--wait",
       "--timeout", "180s"},
      "", seconds(200));
  EXPECT_EQ(install.exit_code, 0)
      << install.output << plane.Kubectl({"describe", "pods", "-n", kSystemNamespace}).output
      << OperatorLog();
}

void Installation::ScaleOperator(int replicas) {
  ControlPlane& plane = ControlPlane::Get();
  const std::string wanted = std::to_string(replicas);
  plane.MustKubectl(
      {"scale", "deployment", kDeployment, "-n", kSystemNamespace, "--replicas=" + wanted});
  WaitFor(
      wanted + " pods of the operator",
      [&] {
        int ready = 0, all = 0;
        for (const json& pod : plane.Objects(kube::kPods, kSystemNamespace,
                                             "app.kubernetes.io/name=hetero-operator")) {
          ++all;
          for (const json& condition : pod["status"].value("conditions", json::array())) {
            ready += condition["type"] == "Ready" && condition["status"] == "True";
          }
        }
        return all == replicas && ready == replicas;
      },
      seconds(120));
}

std::string Installation::OperatorLog() const {
  return ControlPlane::Get()
      .Kubectl(
          {"logs", "-n", kSystemNamespace, "deployment/" + std::string(kDeployment), "--tail=2000"})
      .output;
}

JobNamespace::JobNamespace(const std::string& prefix) : space_(prefix) {
  EnforceRestricted(space_.name());
  if (SharedFolder().empty()) return;
  folder_ = SharedFolder() + "/" + space_.name();
  std::filesystem::create_directory(folder_);
  // Pods run as a user that this machine does not have.
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  ControlPlane& plane = ControlPlane::Get();
  const json both = {
      {"apiVersion", "v1"},
      {"kind", "List"},
      {"items",
       {Volume(space_.name(), SharedFolderInNodes() + "/" + space_.name()), Claim(space_.name())}}};
  plane.MustKubectl({"apply", "-f", "-"}, both.dump());
}

JobNamespace::~JobNamespace() {
  if (folder_.empty()) return;
  ControlPlane::Get().Kubectl({"delete", "persistentvolume", space_.name(), "--wait=false"});
}

json& PodSpecOf(json& job, const std::string& role) {
  return RoleOf(job, role)["template"]["spec"];
}

json& RuntimeOf(json& job, const std::string& role) {
  json& containers = PodSpecOf(job, role)["containers"];
  if (containers.empty()) containers = json::array({{{"name", "runtime"}}});
  return containers[0];
}

json SlowJob(const std::string& name) {
  json job = {{"apiVersion", "training.hetero.dev/v1alpha1"},
              {"kind", "HeteroTrainingJob"},
              {"metadata", {{"name", name}}},
              {"spec",
               {{"dataset",
                 {{"uri", "synthetic://"},
                  {"samples", 1536},
                  {"classes", 10},
                  {"image", {{"height", 16}, {"width", 16}, {"channels", 3}}}}},
                {"pipeline", json::array({{{"op", "HorizontalFlip"}},
                                          {{"op", "Delay"}, {"milliseconds", 20}},
                                          {{"op", "Normalize"}}})},
                {"training",
                 {{"model", {{"name", "mlp"}}},
                  {"batchSizePerWorker", 8},
                  {"epochs", 2},
                  {"optimizer", {{"name", "SGD"}, {"learningRate", 0.01}}}}},
                {"roles", json::array({{{"name", "head"}, {"type", "Head"}},
                                       {{"name", "cpu"}, {"type", "CPUWorker"}, {"replicas", 2}},
                                       {{"name", "gpu"},
                                        {"type", "GPUWorker"},
                                        {"replicas", 2},
                                        {"gpusPerReplica", 0}}})}}}};
  for (const char* role : {"head", "cpu", "gpu"}) {
    RuntimeOf(job, role)["resources"]["requests"] = {{"cpu", "50m"}, {"memory", "32Mi"}};
  }
  return job;
}

void MountData(json& job) {
  for (const json& entry : job["spec"]["roles"]) {
    const std::string role = entry["name"];
    RuntimeOf(job, role)["volumeMounts"] =
        json::array({{{"name", "data"}, {"mountPath", "/data"}}});
    PodSpecOf(job, role)["volumes"] =
        json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}});
  }
}

json LocalReport(const json& job, const std::string& dataset_folder) {
  static auto* const reports = new std::map<std::string, json>;
  json spec = job["spec"];
  spec.erase("runPolicy");
  spec.erase("network");
  spec.erase("output");
  for (json& role : spec["roles"]) role.erase("template");
  json pipeline = json::array();
  for (const json& step : spec["pipeline"]) {
    if (step["op"] != "Delay") pipeline.push_back(step);
  }
  spec["pipeline"] = pipeline;
  json& report = (*reports)[spec.dump()];
  if (!report.is_null()) return report;
  const json local = {{"apiVersion", job["apiVersion"]},
                      {"kind", job["kind"]},
                      {"metadata", {{"name", "local"}}},
                      {"spec", spec}};
  TemporaryFolder folder;
  WriteFile(folder / "job.yaml", local.dump());
  std::vector<std::string> command = {testing::BinDir() + "/hetero-runtime", "local",
                                      folder / "job.yaml", "--output", folder / "out"};
  if (!dataset_folder.empty()) {
    for (const std::string& set : {"dataset.uri=file://" + dataset_folder + "/train",
                                   "dataset.validation.uri=file://" + dataset_folder + "/val"}) {
      command.insert(command.end(), {"--set", set});
    }
  }
  const CommandResult run = RunCommand(command, "", seconds(600));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  if (run.exit_code == 0) report = json::parse(ReadFileOrDie(folder / "out/report.json"));
  return report;
}

int64_t StepOf(const JobUnderTest& job) {
  return job.Status().value("progress", json::object()).value("step", int64_t{0});
}

bool WaitStep(const JobUnderTest& job, int64_t step) {
  return WaitFor(
      job.key().ToString() + " is at step " + std::to_string(step),
      [&] { return StepOf(job) >= step; }, seconds(180), [&] { return job.Describe(); });
}

bool WaitReplaced(const JobUnderTest& job, const std::string& role, int index,
                  const std::string& old_uid) {
  return WaitFor(
      "another pod " + job.PodKey(role, index).name,
      [&] {
        const json pod = job.Pod(role, index);
        return pod.is_object() && pod["metadata"]["uid"] != old_uid &&
               pod["status"].value("phase", "") == "Running";
      },
      seconds(120), [&] { return job.Describe(); });
}

void ExpectSucceededWithDigest(const JobUnderTest& job, const std::string& digest) {
  const auto over = [&] { return job.Is("Succeeded") || job.Is("Failed"); };
  if (!WaitFor(job.key().ToString() + " is over", over, seconds(300),
               [&] { return job.Describe(); })) {
    return;
  }
  const json status = job.Status();
  EXPECT_TRUE(job.Is("Succeeded")) << job.Describe();
  EXPECT_EQ(status.value("result", json::object()).value("streamDigest", ""), digest)
      << status.dump(1);
  job.WaitGone(seconds(120));
}

std::string Logs(const JobUnderTest& job, const std::string& role, int index) {
  return ControlPlane::Get()
      .Kubectl({"logs", "-n", job.key().name_space, job.PodKey(role, index).name, "-c", "runtime"})
      .output;
}

}  // namespace hetero::testing
