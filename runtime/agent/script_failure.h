#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/agent/script_process.h"
#include "runtime/agent/stream_server.h"

namespace hetero::agent {

// What the head is told of a script that ended as it should not have. The last line of its message
// is the last one that the script printed, where it printed any.
struct EndedScript {
  int32_t rank = 0;
  int64_t generation = 0;
  ScriptExit exit;
  StreamServer::Standing standing;
  std::string tail;  // of what it printed
};

// Whether an end with exit code 0 is none: a script that never asked for a batch has not trained.
bool HasTrained(const StreamServer::Standing& standing);
v1::ScriptFailure DescribeFailure(const EndedScript& script);

// Of one that was ended because it has asked for no batch within `deadline`.
v1::ScriptFailure DescribeSilence(int32_t rank, int64_t generation, base::Duration deadline,
                                  const std::string& tail);

// Of a script that could not be started.
v1::ScriptFailure DescribeStartFailure(int32_t rank, int64_t generation, const absl::Status& why);

}  // namespace hetero::agent
