#include "runtime/pipeline/operator_costs.h"

namespace hetero::pipeline {

OperatorCost& OperatorCost::operator+=(const OperatorCost& other) {
  samples += other.samples;
  cpu += other.cpu;
  python += other.python;
  return *this;
}

OperatorCosts::Sample::Sample(OperatorCosts& costs, int64_t epoch, int64_t sample_id)
    : costs_(costs) {
  const int64_t every = costs.python_ != nullptr ? kMeasuredOneOfPython : kMeasuredOneOf;
  if (costs.costs_.empty() || (epoch % every + sample_id % every) % every != every - 1) {
    return;
  }
  spent_.resize(costs.costs_.size());
  last_ = Now();
}

OperatorCosts::Sample::Times OperatorCosts::Sample::Now() const {
  return {base::ThreadCpuTime(),
          costs_.python_ != nullptr ? costs_.python_->ThreadCpu() : base::Duration{}};
}

void OperatorCosts::Sample::Spent(size_t entry) {
  if (!last_) return;
  const Times now = Now();
  const base::Duration python = now.python - last_->python;
  spent_[entry].cpu += now.own - last_->own + python;
  spent_[entry].python += python;
  last_ = now;
}

void OperatorCosts::Sample::Skip() {
  if (last_) last_ = Now();
}

void OperatorCosts::Sample::Done() {
  if (!last_) return;
  for (size_t i = 0; i < spent_.size(); ++i) {
    costs_.costs_[i].cpu_ns += spent_[i].cpu.count();
    costs_.costs_[i].python_ns += spent_[i].python.count();
  }
  ++costs_.samples_;
}

std::vector<OperatorCost> OperatorCosts::all() const {
  std::vector<OperatorCost> all;
  for (const Entry& entry : costs_) {
    all.push_back({.samples = samples_,
                   .cpu = base::Duration(entry.cpu_ns),
                   .python = base::Duration(entry.python_ns)});
  }
  return all;
}

}  // namespace hetero::pipeline
