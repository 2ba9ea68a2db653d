#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetero/v1/membership.pb.h"

namespace hetero::agent {

// Where one rank stands among the others of its job, as torchrun counts.
struct RankPlace {
  int32_t rank = 0;
  int32_t world_size = 1;
  int32_t local_rank = 0;        // in its pod
  int32_t local_world_size = 1;  // ranks of its pod
  int32_t group_rank = 0;  // of its pod among the pods with ranks, in the order of their ranks
  int32_t group_world_size = 1;
};

// Of the rank that is `self` in `generation`, which has it.
RankPlace PlaceIn(const v1::Generation& generation, const v1::Identity& self);

// Of this process, "NAME=value" each.
std::vector<std::string> OwnEnvironment();

// What a script is told.
struct ScriptEnvironment {
  RankPlace place;
  std::string role;           // the role's name in the manifest
  std::string run;            // of the job, the same in all its processes
  int32_t restart_count = 0;  // scripts of this job before this one, at this rank
  int32_t max_restarts = 0;
  std::string master_host;  // of rank 0
  int32_t master_port = 0;
  std::string socket;          // of the stream
  std::string checkpoint_uri;  // empty: not set
  int threads = 1;             // OMP_NUM_THREADS, where `base` has none
};

// `base` ("NAME=value", an agent's own environment) without what is for the agent alone, with the
// variables by which torchrun tells a script its place, and HETERO_STREAM_SOCKET and
// HETERO_CHECKPOINT_URI. Pure.
std::vector<std::string> MakeEnvironment(const std::vector<std::string>& base,
                                         const ScriptEnvironment& script);

}  // namespace hetero::agent
