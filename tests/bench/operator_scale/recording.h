#pragma once

#include <string>
#include <vector>

namespace hetero::bench {

// One write of the operator, as the API server's audit log has it.
struct Write {
  std::string method;
  std::string uri;
  std::string content_type;
  std::string body;
  std::string job;     // "namespace/name" of the job it was for
  double seconds = 0;  // since the first write
};

struct Recording {
  std::vector<Write> writes;  // in order
  int64_t reads = 0;          // gets and lists
  int64_t watches = 0;        // opened
  double seconds = 0;         // from the first write to the last one's end
  // Uid of each job, to be replaced by those of the cluster that the writes are replayed on.
  std::vector<std::pair<std::string, std::string>> uids;  // job, uid
};

// Reads what `user` did from the audit log (level RequestResponse for writes). Leases are left out.
Recording ReadAuditLog(const std::string& file, const std::string& user);

void Save(const Recording& recording, const std::string& file);
Recording Load(const std::string& file);

}  // namespace hetero::bench
