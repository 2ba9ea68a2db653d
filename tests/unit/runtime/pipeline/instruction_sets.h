#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hwy/highway.h"

namespace hetero::pipeline {

// Makes Highway's dispatch use one instruction set while it lives.
class InstructionSet {
 public:
  explicit InstructionSet(int64_t target) : target_(target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~InstructionSet() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  InstructionSet(const InstructionSet&) = delete;
  InstructionSet& operator=(const InstructionSet&) = delete;

  std::string name() const { return hwy::TargetName(target_); }

  // All that this machine has and the kernels are compiled for.
  static std::vector<int64_t> All() {
    std::vector<int64_t> all;
    for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
      all.push_back(rest & -rest);
    }
    return all;
  }

 private:
  int64_t target_;
};

}  // namespace hetero::pipeline
