#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hetero/v1/membership.pb.h"
#include "runtime/head/job_record.h"

// What happens to State, and what State wants done about it.
namespace hetero::head {

struct HelloReceived {
  StreamId stream = 0;
  v1::Hello hello;
  std::vector<std::string> certified_as;  // URIs of its certificate (peer_roles.h)
};
struct ReadyReceived {
  StreamId stream = 0;
  v1::Ready ready;
};
struct HeartbeatReceived {
  StreamId stream = 0;
  v1::Heartbeat heartbeat;
};
struct FinishedReceived {
  StreamId stream = 0;
  v1::Finished finished;
};
// Of a rank that has a script.
struct ScriptWordReceived {
  StreamId stream = 0;
  v1::ScriptWord word;
};
struct StreamClosed {
  StreamId stream = 0;
  bool process_gone = false;  // known to have ended: a process of this machine without a pid
};
struct Tick {};
struct StopRequested {
  std::string reason;   // a sentence
  std::string failure;  // one word: the job fails for it. Empty: it is stopped
};
// A launcher saw the process of `member` ("gpu-0") die, and nobody replaces it.
struct FailureReported {
  std::string member;
  std::string message;
};
// Whoever creates the processes saw that of `member` end: with exit code 0 (`ok`), or otherwise and
// another takes its place. What it came to is in its last word alone.
struct ProcessEnded {
  std::string member;
  bool ok = false;
  int64_t incarnation = 0;  // 0: unknown
  std::string message;
  std::optional<v1::Finished> last_word;
};
// All machines that are about to go now.
struct NoticesReceived {
  v1::Notices notices;
};
using Event = std::variant<HelloReceived, ReadyReceived, HeartbeatReceived, FinishedReceived,
                           ScriptWordReceived, StreamClosed, Tick, StopRequested, FailureReported,
                           ProcessEnded, NoticesReceived>;

struct Send {
  StreamId stream = 0;
  v1::HeadMessage message;
};
// The job begins, or goes on with other ranks. CPU workers need no more of it than its number.
struct OpenGeneration {
  std::vector<StreamId> trainers, workers;
  v1::Generation generation;
};
// To the trainers.
struct BroadcastRoster {
  std::vector<StreamId> streams;
  v1::Roster roster;
};
// The stream is closed after this message.
struct Refuse {
  StreamId stream = 0;
  v1::Refused refused;
};
// The same process has dialled again; its older stream is of no more use.
struct CloseStream {
  StreamId stream = 0;
};
struct Note {
  bool warning = false;
  std::string message;
  std::string member;  // empty: the job
};
// The record is complete: write the report, tell those who wait. Once per job.
struct EndJob {};
// A newer head has taken this one's place: leave, tell nobody, write nothing.
struct StepDown {};
using Action = std::variant<Send, OpenGeneration, BroadcastRoster, Refuse, CloseStream, Note,
                            EndJob, StepDown>;

}  // namespace hetero::head
