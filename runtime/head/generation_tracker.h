#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "runtime/head/job_record.h"

namespace hetero::head {

// Which generation a job is in and which process plays each of its ranks. Ranks are fixed for the
// job; who plays them is fixed for a generation, so a rank with a new process needs the next one,
// and so does a process group that broke between living processes. Decides only: the caller opens
// the generations, and says so with Begin(). Not thread-safe.
class GenerationTracker {
 public:
  // How a job's generations begin in this head process.
  struct Beginning {
    int64_t number = 0;
    bool taken_over = false;  // its members work in it already
  };

  // A broken group has `broken_grace` from its first word until the next generation: the cause is
  // most often a death that shows a moment later. Twice as long after each generation in a row
  // without a completed step, up to kLongestGrace.
  explicit GenerationTracker(base::Duration broken_grace) : broken_grace_(broken_grace) {}

  // Once every rank has joined and sees the same data: the generation that all of them work in, as
  // this head took another's place, or else the one after the newest that any of them knows (1 in a
  // new job). Call before the first Begin() only.
  std::optional<Beginning> First(const JobRecord& record) const;
  // The number of the next generation, once every rank is connected, sees the same data, and one
  // needs it. Call after
  // the first Begin() only.
  std::optional<int64_t> Next(const JobRecord& record, base::Instant now);
  // Makes `number` the record's generation, played by the processes it names now. Every rank must
  // have joined.
  void Begin(int64_t number, JobRecord& record);

  // The scripts of the current generation all begin at `step`, where they may have been before.
  void BeginAt(int64_t step);

  // How many generations in a row, the current one included, have not completed a step yet.
  int fruitless() const { return stepped_ ? 0 : fruitless_ + 1; }

  // Whether this very process of `trainer` is one of the current generation's.
  bool Plays(const MemberRecord& trainer) const;

 private:
  static constexpr base::Duration kLongestGrace = std::chrono::seconds(30);

  bool GroupBroken(const JobRecord& record, base::Instant now);
  // Whether a process of this generation has told of a step that it has done in it.
  bool AnyStep(const JobRecord& record) const;

  const base::Duration broken_grace_;
  std::vector<int64_t> incarnations_;  // of the processes, by rank
  std::vector<int64_t> steps_;         // that each was known to have done when it began
  bool stepped_ = false;               // since then
  int fruitless_ = 0;                  // generations in a row before this one
  std::optional<base::Instant> broken_since_;
};

}  // namespace hetero::head
