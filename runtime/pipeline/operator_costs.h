#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "runtime/pipeline/python_functions.h"

namespace hetero::pipeline {

// What one entry of spec.pipeline has cost on some samples.
struct OperatorCost {
  int64_t samples = 0;
  base::Duration cpu{};     // of these samples, interpreters of Python included
  base::Duration python{};  // of it, in interpreters

  OperatorCost& operator+=(const OperatorCost& other);
};

// Measures what the entries of a pipeline cost, on one of so many samples: reading a thread's clock
// takes a fraction of a microsecond, small operators a few. Safe from any thread.
class OperatorCosts {
 public:
  static constexpr int64_t kMeasuredOneOf = 64;
  // A call of Python takes fifty microseconds and more.
  static constexpr int64_t kMeasuredOneOfPython = 8;

  // `python`: who calls the pipeline's functions; null: there are none.
  OperatorCosts(size_t entries, const PythonFunctions* python) : costs_(entries), python_(python) {}

  // One sample on its way through the entries.
  class Sample {
   public:
    // Measures where the numbers of the sample say so, the same everywhere; not (0, 0).
    Sample(OperatorCosts& costs, int64_t epoch, int64_t sample_id);
    // What the thread has done since the last call, or since this object was made, was for `entry`.
    void Spent(size_t entry);
    // The same, for no entry.
    void Skip();
    // The sample is done: it counts.
    void Done();

   private:
    struct Times {
      base::Duration own{}, python{};
    };
    Times Now() const;

    OperatorCosts& costs_;
    std::optional<Times> last_;  // empty: not measured
    std::vector<OperatorCost> spent_;
  };

  std::vector<OperatorCost> all() const;

 private:
  struct Entry {
    std::atomic<int64_t> cpu_ns = 0;
    std::atomic<int64_t> python_ns = 0;
  };
  std::atomic<int64_t> samples_ = 0;
  std::vector<Entry> costs_;
  const PythonFunctions* const python_;
};

}  // namespace hetero::pipeline
