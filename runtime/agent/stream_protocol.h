#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/job/stream_digest.h"
#include "runtime/pipeline/pipeline.h"

// What a script and the agent of its rank say to one another, version 1 (python/hetero is the other
// side). Over a Unix stream socket, whose path is in $HETERO_STREAM_SOCKET. A message is its
// length, four bytes, little-endian, and as many bytes of a JSON object in UTF-8; a file descriptor
// goes with the first byte of its message (SCM_RIGHTS).
//
// The script asks, one question at a time, and the agent answers each in order. `free` and `report`
// have no answer and may be sent at any time, also while a question is open.
//   {"type": "hello", "protocol": 1, "package": "0.3.0", "pid": 17, "python": "3.11.7",
//    "numpy": "2.1.0", "torch": "2.11.0" or null, "one_file": false}        -> welcome, and a memfd
//   {"type": "begin", "position": null or a state}                          -> begun
//   {"type": "next"}, {"type": "next", "validation": true}                  -> batch or end;
//                                                        a memfd with a batch that names a new one
//   {"type": "free", "slot": 3}                       once for each batch that was given in the
//   slot
//   {"type": "checkpoint", "step": 12}                                      -> checkpoint
//   {"type": "state", "step": 12}                                           -> state
//   {"type": "report", "values": {"loss": 0.5}, "step": 12}
//   {"type": "validation"}                                                  -> validation_begun
//   {"type": "bye"}                                                         -> bye
// Any answer may be {"type": "error", "kind": K, "message": M} instead: `misuse`, the script did
// what it must not, and may go on without; `protocol`, the message is none, and the connection is
// closed; `failed`, there will be no more batches; `stopped`, all ranks stop here; `timeout`.
//
// Steps that are called "steps done" count a batch that was given out as done.
namespace hetero::agent {

inline constexpr int64_t kProtocolVersion = 1;
inline constexpr uint32_t kMaxRequestBytes = 1u << 20;
inline constexpr uint32_t kMaxAnswerBytes = 16u << 20;
inline constexpr size_t kMaxReportedValues = 64;
inline constexpr size_t kMaxReportedName = 64;

// state_dict(): where a script stood, and in which stream.
struct StreamState {
  static constexpr int64_t kFormat = 1;
  std::string fingerprint;  // StreamFingerprint()
  int64_t seed = 0;
  int64_t epoch = 0;  // of the next batch
  int64_t step = 0;   // steps done
  int64_t slot = 0;   // of `epoch`, where the next step begins
  int64_t global_batch = 0;
  std::optional<job::StreamDigest> digest;  // of the whole job up to there; absent: not proven
  bool operator==(const StreamState&) const = default;
};

struct HelloRequest {
  int64_t protocol = 0;
  std::string package, python, numpy, torch;  // versions; "": none
  int64_t pid = 0;
  bool one_file = false;  // batches all in the memfd that comes with the welcome
};
struct BeginRequest {
  std::optional<StreamState> state;  // absent: from the beginning
};
struct NextRequest {
  bool validation = false;
};
struct FreeRequest {
  int64_t slot = 0;
};
// Steps done by the script, which may have been given more batches than it has looked at; absent:
// all that were given.
struct CheckpointRequest {
  std::optional<int64_t> step;
};
struct StateRequest {
  std::optional<int64_t> step;
};
struct ReportRequest {
  std::map<std::string, double> values;
  std::optional<int64_t> step;  // absent: of the latest batch
};
struct ValidationRequest {};
struct ByeRequest {};
using Request =
    std::variant<HelloRequest, BeginRequest, NextRequest, FreeRequest, CheckpointRequest,
                 StateRequest, ReportRequest, ValidationRequest, ByeRequest>;

// kInvalidArgument: no such message, the connection has to be closed. kFailedPrecondition: a
// `begin` with what is no state, `misuse`.
absl::StatusOr<Request> ParseRequest(std::string_view text);

// Takes messages out of what comes from a socket, in whatever pieces. Not thread-safe.
class MessageReader {
 public:
  explicit MessageReader(uint32_t most_bytes) : most_bytes_(most_bytes) {}
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message; absent while there is none. kInvalidArgument when one is announced that
  // is longer than it may be, or empty: nothing from there on can be read.
  absl::StatusOr<std::optional<std::string>> Next();
  size_t waiting() const { return buffer_.size() - used_; }

 private:
  const uint32_t most_bytes_;
  std::string buffer_;
  size_t used_ = 0;
};

// A tensor of a batch, in its slot or in another file.
struct FieldLayout {
  std::string name;   // "image", what samples have besides (batch_layout.h), "id"
  std::string dtype;  // as numpy calls it: "uint8", "int64", "float32"
  std::vector<int64_t> shape;
  int64_t offset = 0;  // bytes from the beginning of the slot, or the file; a multiple of 64
  int64_t bytes = 0;
  int64_t file = 0;  // number of the file; 0: in the slot
};

// A file that goes with the answer and has this number from then on.
struct NewFile {
  int64_t number = 0;
  int64_t bytes = 0;
};

struct BatchAnswer {
  int64_t slot = 0;  // of the arena: its bytes begin at slot x slot_bytes
  int64_t step = 0;  // from 0; of a validation pass: the batch's number in it
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  bool last_of_epoch = false;
  // Factor for the mean loss of this batch (job::StepPlan::LossScale): 1 but in a short last step.
  double weight = 1;
  int64_t first_slot = 0, count = 0;  // of the epoch's permutation: its samples
  int64_t micro = 0;                  // of the step's gradientAccumulationSteps batches, from 0
  std::vector<FieldLayout> fields;
  std::optional<NewFile> new_file;
  std::vector<int64_t> forgotten;  // files in which no batch lies any more, and none will
};

struct WelcomeAnswer {
  int32_t rank = 0, world_size = 1, local_rank = 0;
  int restart_count = 0;
  std::string fingerprint;
  int64_t seed = 0;
  int64_t batch_size = 0, accumulation = 1;
  int64_t epochs = 0;  // that have a step
  int64_t total_steps = 0, steps_per_epoch = 0;
  int64_t samples = 0;  // of an epoch
  int64_t classes = 0;
  api::ImageShape image;                                   // one picture
  const pipeline::TensorConversion* conversion = nullptr;  // null: the script gets bytes
  // The same of the views beside the image, by their names.
  std::map<std::string, const pipeline::TensorConversion*> views;
  std::vector<FieldLayout> fields;  // offsets and sizes are left out
  int64_t validation_samples = 0;
  std::optional<api::Checkpoint> checkpoint;
  // The arena: as many slots are in the memfd, one behind the other; a batch has one of its own.
  int64_t slots = 0;
  int64_t slot_bytes = 0;  // a multiple of the page size
  int64_t may_hold = 0;    // slots that the script may have at a time; it waits for more
};

enum class ErrorKind { kMisuse, kProtocol, kFailed, kStopped, kTimeout };

nlohmann::json ToJson(const StreamState& state);
nlohmann::json ToJson(const BatchAnswer& batch);
nlohmann::json ToJson(const WelcomeAnswer& welcome);
nlohmann::json ErrorAnswer(ErrorKind kind, std::string_view message);
// With its length in front. Text that is no UTF-8 is replaced.
std::string EncodeMessage(const nlohmann::json& message);

}  // namespace hetero::agent
