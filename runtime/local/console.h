#pragma once

#include <cstdio>
#include <string>

#include "base/clock.h"
#include "hetero/v1/status.pb.h"

namespace hetero::local {

// The launcher's terminal: lines that scroll, and on a terminal one status line that is redrawn in
// place. Without a terminal the status is printed as a line every ten seconds. One thread uses it.
class Console {
 public:
  Console(base::Clock& clock, std::FILE* output);
  ~Console();

  void Line(const std::string& text);
  void Status(const std::string& text);
  // Removes the status line.
  void Clear();

 private:
  base::Clock& clock_;
  std::FILE* const output_;
  const bool terminal_;
  std::string status_;
  base::Instant printed_{};
};

// One line for a person: what the job waits for, or how far it is.
//   "waiting for cpu 1/2 (cpu-1), gpu 2/2"
//   "step 120/188  epoch 3/4  loss 0.412  210 samples/s  wait 3 %  eta 0:42"
std::string DescribeStatus(const v1::JobStatus& status);

}  // namespace hetero::local
