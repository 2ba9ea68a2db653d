#include "tests/integration/e2e/support/traces.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/integration/e2e/support/nodes.h"
#include "tests/integration/operator/support/control_plane.h"
#include "tests/integration/operator/support/secret_search.h"
#include "tests/integration/operator/support/world.h"

namespace hetero::testing {

namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr const char* kWatched[] = {"configmaps", "events", "heterotrainingjobs", "pods"};

// Runs in a node: FOLDER NAMESPACE... A second link keeps a file's content, to which its writer may
// still add, after the kubelet has removed the first. Numbers: a log that is rotated leaves its
// name to another. Core files lie where containers work, at the top of their root or of a volume.
// Ends when there is FOLDER/stop, after one more look.
constexpr char kKeepFiles[] = R"(
shopt -s nullglob
kept=$1
shift
rm -rf "$kept"
mkdir -p "$kept"
keep() {
  local number=0 copy=$kept/$1
  while [[ -e $copy.$number && ! $2 -ef $copy.$number ]]; do number=$((number + 1)); done
  [[ -e $copy.$number ]] && return
  mkdir -p "${copy%/*}"
  ln "$2" "$copy.$number" 2>/dev/null  # it may be gone
}
last=
until [[ $last ]]; do
  [[ -e $kept/stop ]] && last=1
  for name_space in "$@"; do
    for log in /var/log/pods/"$name_space"_*/*/*; do
      [[ $log == *.gz ]] || keep "${log#/var/log/}" "$log"
    done
  done
  for core in /var/lib/kubelet/pods/*/volumes/*/*/core{,.*} \
      /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs/core{,.*}; do
    [[ -f $core && ! -L $core ]] && keep "core_files${core#/var/lib}" "$core"
  done
  ((SECONDS < 1800)) || exit 1  # nobody waits any more
  sleep 0.2
done
exit 0
)";

std::string KeptInNodes(const std::string& name_space) { return "/var/log/kept-" + name_space; }

// Of what `kubectl get --watch -o json` has printed.
std::vector<json> ObjectsIn(const std::string& printed) {
  std::vector<json> objects;
  std::istringstream lines(printed);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    text += line + "\n";
    if (line != "}") continue;
    objects.push_back(json::parse(text, nullptr, /*allow_exceptions=*/false));
    EXPECT_FALSE(objects.back().is_discarded()) << text;
    text.clear();
  }
  return objects;
}

bool HasRun(const json& pod) {
  const json status = pod.value("status", json::object());
  for (const json& container : status.value("containerStatuses", json::array())) {
    if (!container.value("containerID", "").empty()) return true;
  }
  return false;
}

}  // namespace

Traces::Traces(std::string name_space)
    : name_space_(std::move(name_space)),
      folder_(SharedFolder() + "/traces-of-" + name_space_),
      folder_in_nodes_(SharedFolderInNodes() + "/traces-of-" + name_space_) {
  fs::remove_all(folder_);  // of a program that was killed
  fs::create_directory(folder_);
  for (const std::string& node : Nodes::Workers()) {
    nodes_.push_back({node, std::make_unique<BackgroundProgram>(
                                std::vector<std::string>{
                                    "docker", "exec", node, "bash", "-c", kKeepFiles, "keep_files",
                                    KeptInNodes(name_space_), name_space_, kSystemNamespace},
                                logs_of_nodes_ / node)});
  }
  for (const std::string kind : kWatched) {
    watches_.push_back({kind, std::make_unique<BackgroundProgram>(
                                  std::vector<std::string>{"kubectl", "get", kind, "-n",
                                                           name_space_, "--watch", "-o", "json"},
                                  folder_ + "/states-of-" + kind)});
  }
  // Every namespace has a ConfigMap from the start. Before a watch has listed what is there, it
  // does not see what goes.
  WaitFor("the namespace is watched", [this] {
    return watches_.front().program->log().find("\"kube-root-ca.crt\"") != std::string::npos;
  });
}

Traces::~Traces() {
  for (const Gatherer& node : nodes_) {
    Nodes::Run(node.of, {"touch", KeptInNodes(name_space_) + "/stop"});
  }
  if (KeepsFolders()) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Traces::TakeObjects(const std::string& moment) const {
  Add("objects-" + moment, ObjectsWithoutSecrets(name_space_));
}

void Traces::Add(const std::string& name, std::string_view bytes) const {
  EXPECT_FALSE(bytes.empty()) << name;
  WriteFile(folder_ + "/" + name, bytes);
}

std::vector<std::string> Traces::Search(const std::vector<std::string>& tokens) {
  TakeObjects("at-the-end");
  EndWatches();
  CollectFromNodes();
  ExpectLogsOfAllPods();
  return FindSecrets(folder_, tokens);
}

void Traces::EndWatches() {
  for (const Gatherer& watch : watches_) {
    const std::string states = watch.program->log();
    EXPECT_TRUE(watch.program->running()) << watch.of << ": " << states;
    EXPECT_NE(states.find("\"namespace\": \"" + name_space_ + "\""), std::string::npos)
        << "no " << watch.of << " were seen: " << states;
  }
  watches_.clear();
}

void Traces::CollectFromNodes() {
  const std::string kept = KeptInNodes(name_space_);
  bool of_operator = false;
  for (const Gatherer& node : nodes_) {
    Nodes::MustRun(node.of, {"touch", kept + "/stop"});
    EXPECT_EQ(node.program->Wait(seconds(60)), 0) << node.of << ": " << node.program->log();
    const std::string copy = folder_in_nodes_ + "/" + node.of;
    Nodes::MustRun(node.of, {"cp", "-r", kept, copy});
    Nodes::MustRun(node.of, {"chmod", "-R", "a+rX", copy});
    Nodes::Run(node.of, {"rm", "-rf", kept});
    for (const auto& entry : fs::recursive_directory_iterator(folder_ + "/" + node.of)) {
      of_operator |= entry.is_regular_file() && entry.file_size() > 0 &&
                     entry.path().string().find(std::string("/pods/") + kSystemNamespace + "_") !=
                         std::string::npos;
    }
  }
  EXPECT_TRUE(of_operator) << "the operator's log was not kept";
  nodes_.clear();
}

void Traces::ExpectLogsOfAllPods() const {
  std::set<std::string> pods;
  for (const json& pod : ObjectsIn(ReadFileOrDie(folder_ + "/states-of-pods"))) {
    if (!pod.is_object() || !HasRun(pod)) continue;
    const json& metadata = pod.at("metadata");
    pods.insert(name_space_ + "_" + metadata.value("name", "") + "_" + metadata.value("uid", ""));
  }
  EXPECT_FALSE(pods.empty());
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const fs::path logs = entry.path() / "pods";
    if (!fs::exists(logs)) continue;
    for (const auto& pod : fs::directory_iterator(logs)) pods.erase(pod.path().filename());
  }
  EXPECT_TRUE(pods.empty()) << "no logs were kept of " << ::testing::PrintToString(pods);
}

}  // namespace hetero::testing
