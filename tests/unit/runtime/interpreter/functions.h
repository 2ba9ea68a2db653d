#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/interpreter/interpreters.h"
#include "tests/support/temporary_folder.h"

// Functions for interpreters, in a module of their own, and calls of them.
namespace hetero::interpreter {

inline constexpr api::ImageShape kShape{4, 5, 3};

class Functions {
 public:
  // `source`: the module's, after `import`s of what the functions here use.
  explicit Functions(const std::string& source);

  void Rewrite(const std::string& source) const;
  void WriteBeside(const std::string& file, const std::string& source) const;
  absl::StatusOr<std::unique_ptr<Interpreters>> Start(const std::vector<std::string>& names,
                                                      Interpreters::Options options = {}) const;
  // The pipeline's entry that calls `name`.
  api::OperatorSpec Spec(const std::string& name) const;

 private:
  testing::TemporaryFolder folder_;
};

// Of the picture whose every byte is `sample`, modulo 256; what came is in `*out`.
absl::Status Call(const Interpreters& interpreters, int32_t function, int64_t sample,
                  pipeline::Image* out = nullptr);

// Direct children of a process.
std::vector<pid_t> ChildrenOf(pid_t pid);

}  // namespace hetero::interpreter
