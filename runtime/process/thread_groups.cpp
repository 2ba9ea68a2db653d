#include "runtime/process/thread_groups.h"

#include <utility>

namespace hetero::process {
namespace {

using insight::ThreadGroup;

// How names begin. Threads that LibTorch makes without a name have that of the trainer's program.
constexpr std::pair<std::string_view, ThreadGroup> kBeginnings[] = {
    {"make-", ThreadGroup::kPipeline},       {"feed", ThreadGroup::kFeed},
    {"rank-", ThreadGroup::kFeed},           {"script-", ThreadGroup::kFeed},
    {"hetero-trainer", ThreadGroup::kTrain}, {"pt_", ThreadGroup::kTrain},
    {"cuda", ThreadGroup::kTrain},           {"form-group", ThreadGroup::kTrain},
    {"checkpoint", ThreadGroup::kTrain},     {"ckpt-", ThreadGroup::kTrain},
    {"python", ThreadGroup::kPython},        {"read-ahead", ThreadGroup::kStorage},
    {"scan", ThreadGroup::kStorage},         {"grpc", ThreadGroup::kGrpc},
    {"nexting_thread", ThreadGroup::kGrpc},  {"default-execut", ThreadGroup::kGrpc},
    {"resolver-execu", ThreadGroup::kGrpc},  {"event_engine", ThreadGroup::kGrpc},
    {"timer_manager", ThreadGroup::kGrpc},
};

}  // namespace

insight::ThreadGroup GroupOfThread(std::string_view name) {
  for (const auto& [beginning, group] : kBeginnings) {
    if (name.starts_with(beginning)) return group;
  }
  return ThreadGroup::kOther;
}

}  // namespace hetero::process
