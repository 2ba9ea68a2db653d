#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "hetero/v1/membership.pb.h"

namespace hetero::head {

// The newest lines that the members of a job have printed, as they told. Bounded, whoever tells:
// when all together are too many bytes, the member with the most loses its oldest. A value type;
// not thread-safe.
class LogTails {
 public:
  static constexpr size_t kLinesOfMember = 200;
  static constexpr size_t kMostBytes = size_t{4} << 20;  // of all texts
  static constexpr size_t kNewest = 100;                 // of all members, in the order they came
  static constexpr int kMostTold = 60;                   // of one message

  struct Line {
    int64_t number = 0;  // counts all lines of the job, from 1
    std::string member;  // "cpu-0"
    int64_t unix_ns = 0;
    std::string text;
  };

  void Take(const std::string& member, const v1::Heartbeat& heartbeat);
  // Of all members, the newest last.
  const std::deque<Line>& newest() const { return newest_; }
  // Of one; empty: it has told none.
  std::vector<Line> Of(const std::string& member) const;

 private:
  struct Tail {
    std::deque<Line> lines;
    size_t bytes = 0;
  };
  void Add(Line line);
  void DropOldest(Tail& tail);

  std::map<std::string, Tail> tails_;  // by member
  std::deque<Line> newest_;
  size_t bytes_ = 0;
  int64_t count_ = 0;
};

}  // namespace hetero::head
