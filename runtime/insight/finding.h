#pragma once

#include <optional>
#include <string>

namespace hetero::insight {

// What a rule has found in a job: what is slow and what to change. A value type; the message
// Finding of proto/hetero/v1/finding.proto without what only its keeper knows.
struct Finding {
  std::string rule;     // "InputBound"
  std::string message;  // one sentence with figures, without a full stop
  std::string remedy;   // an instruction that names the manifest's field and a value
  // Of the manifest below `spec`, as --set takes it: "roles.cpu.replicas"; empty: none.
  std::string field;
  std::string member;  // "cpu-0"; empty: the job
  // Of training, lost in the time that the evidence covers; 0: not known. Whoever judges one window
  // after another adds them up.
  double seconds = 0;
  // Likewise; absent: no prices are known, or it costs nothing that could be counted.
  std::optional<double> dollars;

  bool operator==(const Finding&) const = default;
};

}  // namespace hetero::insight
