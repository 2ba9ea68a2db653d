#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hetero::plan {

// Whose status stream is to be open.
struct HeadTarget {
  std::string address;  // "10.96.0.7:7071"
  std::string job_uid;
  std::string ca_pem;  // empty: plain text
  int32_t attempt = 0;
  std::string pod_uid;      // of the head's pod: another one is dialled again at once
  int64_t incarnation = 0;  // of its process: what an older one says is passed over; 0: not known
  // What the head may speak of: the job's roles, each with the most replicas that it may have, and
  // the processes of them all, ranks counted one by one.
  std::map<std::string, int32_t> replicas;
  int64_t processes = 0;
  bool operator==(const HeadTarget&) const = default;
};

}  // namespace hetero::plan
