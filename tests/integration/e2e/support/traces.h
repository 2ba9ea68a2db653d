#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/operator/support/command.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

// What a namespace shows to whoever may not read its Secrets, from now on, also of what is soon
// gone: pods and their ConfigMap go with the job.
//  - logs of all containers of its pods, and of the operator, as the nodes have them;
//  - each state of its ConfigMaps, events, jobs and pods;
//  - core files that are written on the nodes, where the kernel gives them to no program.
// Only where Nodes::reachable(). Used by one thread.
class Traces {
 public:
  explicit Traces(std::string name_space);
  ~Traces();
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  // Adds all objects that the namespace has at this moment, which is given a name, but its Secrets.
  void TakeObjects(const std::string& moment) const;
  // Adds something that is kept elsewhere, such as a report.
  void Add(const std::string& name, std::string_view bytes) const;
  // Takes the objects once more, ends the gathering and returns what FindSecrets() finds. Fails the
  // test where something was not gathered. Once.
  std::vector<std::string> Search(const std::vector<std::string>& tokens = {});

 private:
  // A program that gathers as long as it runs: a kind's objects, or a node's files.
  struct Gatherer {
    std::string of;
    std::unique_ptr<BackgroundProgram> program;
  };

  void EndWatches();
  void CollectFromNodes();
  void ExpectLogsOfAllPods() const;

  const std::string name_space_;
  const std::string folder_;           // of this machine, and of all nodes
  const std::string folder_in_nodes_;  // the same
  TemporaryFolder logs_of_nodes_;      // what `nodes_` say, for failed tests
  std::vector<Gatherer> watches_;
  std::vector<Gatherer> nodes_;
};

}  // namespace hetero::testing
