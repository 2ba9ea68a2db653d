#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hetero/v1/membership.pb.h"
#include "runtime/head/job_ending.h"
#include "runtime/head/job_record.h"
#include "runtime/head/outbox.h"

namespace hetero::head {

// What `mine` sees otherwise than `theirs`, in words that follow "gpu-1": "has 1499 training
// samples, gpu-0 1500; decodes with libjpeg-turbo 2.1.2, gpu-0 with 2.1.5". The first few,
// long values cut. Empty when all is equal.
std::string Differences(const v1::Ready& mine, const v1::Ready& theirs,
                        const std::string& their_name);

// The same of what Python operators run with: "works with numpy 2.1.0, cpu-0 with 2.0.2".
std::string PythonDifferences(const v1::Ready& mine, const v1::Ready& theirs,
                              const std::string& their_name);

// Whether the members of a job see the same data. A ticket is a place in the order of samples, and
// each makes that order of what it sees itself: two who see different data make different batches
// of one ticket, and two ranks who count different steps wait for each other without end.
//
// Everybody is compared with the first rank that had opened its dataset. A rank that differs fails
// the job. A CPU worker that differs is told so and named in the report, and takes no part; the job
// goes on without it. What Python operators run with is compared with the first CPU worker that
// fitted. Keeps MemberRecord::fits and ::unfit. Not thread-safe.
class Readiness {
 public:
  Readiness(JobRecord& record, JobEnding& ending, Outbox& outbox)
      : record_(record), ending_(ending), outbox_(outbox) {}

  // What the current process of `member` sees. The same again changes nothing, nor does anything
  // that a process says which was found not to fit.
  static void Take(MemberRecord& member, const v1::Ready& ready);
  // Judges those who have said what they see since the last call.
  void Judge(Moment now);

 private:
  struct Reference {
    MemberKey key;
    int64_t incarnation = 0;
    std::string name;
    v1::Ready ready;
  };

  void FindReference();
  // What Python operators of `member` run with otherwise than elsewhere; in words, as above.
  std::string OtherPython(const MemberRecord& member, const MemberKey& key);
  void Refuse(MemberRecord& member, const std::string& reason, const char* remedy, Moment now);

  JobRecord& record_;
  JobEnding& ending_;
  Outbox& outbox_;
  std::optional<Reference> reference_;
  std::optional<Reference> python_reference_;
};

}  // namespace hetero::head
