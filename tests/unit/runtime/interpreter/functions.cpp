#include "tests/unit/runtime/interpreter/functions.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hetero::interpreter {

Functions::Functions(const std::string& source) { Rewrite(source); }

void Functions::Rewrite(const std::string& source) const {
  folder_.Write("functions.py", absl::StrCat("import os, random, signal, time\n"
                                             "import numpy as np\n",
                                             source));
}

void Functions::WriteBeside(const std::string& file, const std::string& source) const {
  folder_.Write(file, source);
}

api::OperatorSpec Functions::Spec(const std::string& name) const {
  return {.op = api::OperatorKind::kPython,
          .path = folder_.path(),
          .module = "functions",
          .function = name,
          .outputs = api::OperatorOutputs{
              .image = {.shape = {kShape.height, kShape.width, kShape.channels}}}};
}

absl::StatusOr<std::unique_ptr<Interpreters>> Functions::Start(
    const std::vector<std::string>& names, Interpreters::Options options) const {
  std::vector<api::OperatorSpec> pipeline;
  for (const std::string& name : names) pipeline.push_back(Spec(name));
  for (char** one = environ; *one != nullptr; ++one) {
    options.host.environment.emplace_back(*one);
  }
  return Interpreters::Start(pipeline, std::move(options));
}

absl::Status Call(const Interpreters& interpreters, int32_t function, int64_t sample,
                  pipeline::Image* out) {
  pipeline::Image in, own;
  in.Reshape(kShape);
  std::fill(in.bytes.begin(), in.bytes.end(), static_cast<uint8_t>(sample));
  if (out == nullptr) out = &own;
  out->Reshape(kShape);
  return interpreters.Call(function, {.seed = 7, .epoch = 1, .sample_id = sample}, true, in.view(),
                           out);
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  for (const auto& thread :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace hetero::interpreter
