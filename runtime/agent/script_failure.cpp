#include "runtime/agent/script_failure.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "runtime/head/text_limits.h"

namespace hetero::agent {
namespace {

// The end of `text`, from the beginning of a character.
std::string Ending(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  text.remove_prefix(text.size() - most);
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0) == 0x80) {
    text.remove_prefix(1);
  }
  return std::string(text);
}

std::string_view Trimmed(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

std::string What(const EndedScript& script) {
  const StreamServer::Standing& standing = script.standing;
  if (script.exit.signal != 0) return absl::StrCat("was ", script.exit.ToString());
  if (!script.exit.ok()) return absl::StrCat("ended with ", script.exit.ToString());
  if (!standing.said_hello) {
    return "ended with exit code 0 and has not opened a stream: it has to take its batches from "
           "hetero.Stream()";
  }
  return "ended with exit code 0 and has asked for no batch of its stream to train on";
}

std::string WithTail(std::string what, const std::string& tail) {
  const std::string printed = base::ToUtf8(Trimmed(tail));
  if (printed.empty()) {
    absl::StrAppend(&what, "; it printed nothing");
  } else {
    absl::StrAppend(&what, "\n");
    const size_t room = head::kMaxText - std::min(what.size(), head::kMaxText);
    absl::StrAppend(&what, Ending(printed, room));
  }
  return base::ToUtf8(what, head::kMaxText);
}

}  // namespace

bool HasTrained(const StreamServer::Standing& standing) { return standing.begun; }

v1::ScriptFailure DescribeFailure(const EndedScript& script) {
  v1::ScriptFailure failure;
  failure.set_generation(script.generation);
  failure.set_rank(script.rank);
  failure.set_step(script.standing.steps_given);
  failure.set_exit_code(script.exit.code);
  failure.set_signal(script.exit.signal);
  // What it did wrong once it does again.
  failure.set_fatal(!script.standing.misuse.ok() || script.exit.ok());
  std::string what = absl::StrCat("the script of rank ", script.rank, " ", What(script));
  if (script.standing.steps_given > 0) {
    absl::StrAppend(&what, " in step ", script.standing.steps_given);
  }
  if (!script.standing.misuse.ok()) absl::StrAppend(&what, ": ", script.standing.misuse.message());
  failure.set_message(WithTail(std::move(what), script.tail));
  return failure;
}

v1::ScriptFailure DescribeSilence(int32_t rank, int64_t generation, base::Duration deadline,
                                  const std::string& tail) {
  v1::ScriptFailure failure;
  failure.set_generation(generation);
  failure.set_rank(rank);
  failure.set_exit_code(-1);
  failure.set_message(
      WithTail(absl::StrCat("the script of rank ", rank, " has asked for no batch within ",
                            std::chrono::duration_cast<std::chrono::seconds>(deadline).count(),
                            " s (runPolicy.startupDeadlineSeconds) and was ended"),
               tail));
  return failure;
}

v1::ScriptFailure DescribeStartFailure(int32_t rank, int64_t generation, const absl::Status& why) {
  v1::ScriptFailure failure;
  failure.set_generation(generation);
  failure.set_rank(rank);
  failure.set_exit_code(127);
  // What comes from the job (ScriptProcess::Start); anything else may be otherwise the next time.
  failure.set_fatal(absl::IsNotFound(why) || absl::IsPermissionDenied(why) ||
                    absl::IsFailedPrecondition(why));
  failure.set_message(
      base::ToUtf8(absl::StrCat("the script of rank ", rank, " did not start: ", why.message()),
                   head::kMaxText));
  return failure;
}

}  // namespace hetero::agent
