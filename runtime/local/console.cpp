#include "runtime/local/console.h"

#include <stdio.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hetero::local {
namespace {

constexpr base::Duration kPlainInterval = std::chrono::seconds(10);
constexpr base::Duration kRedrawInterval = std::chrono::milliseconds(200);

std::string DescribeWaiting(const v1::JobStatus& status) {
  std::string text = "waiting for";
  const char* separator = " ";
  for (const v1::RoleStatus& role : status.roles()) {
    if (role.desired() == 0) continue;
    absl::StrAppend(&text, separator, role.name(), " ", role.registered(), "/", role.desired());
    if (role.missing_size() > 0) {
      absl::StrAppend(&text, " (", absl::StrJoin(role.missing(), ", "), ")");
    }
    separator = ", ";
  }
  return text;
}

std::string DescribeProgress(const v1::JobStatus& status) {
  const v1::Progress& progress = status.progress();
  std::string text =
      absl::StrFormat("step %d/%d  epoch %d/%d", progress.step(), progress.total_steps(),
                      progress.epoch(), progress.total_epochs());
  if (progress.loss() != 0) absl::StrAppendFormat(&text, "  loss %.4f", progress.loss());
  if (status.evaluations_size() > 0) {
    absl::StrAppendFormat(&text, "  accuracy %.4f",
                          status.evaluations(status.evaluations_size() - 1).accuracy());
  }
  absl::StrAppendFormat(&text, "  %.*f samples/s  wait %.1f %%",
                        progress.samples_per_second() < 10 ? 2 : 0, progress.samples_per_second(),
                        progress.data_wait_percent());
  if (status.eta_seconds() > 0) {
    const int64_t seconds = static_cast<int64_t>(status.eta_seconds());
    absl::StrAppendFormat(&text, "  eta %d:%02d", seconds / 60, seconds % 60);
  }
  return text;
}

}  // namespace

Console::Console(base::Clock& clock, std::FILE* output)
    : clock_(clock), output_(output), terminal_(isatty(fileno(output)) == 1) {}

Console::~Console() { Clear(); }

void Console::Line(const std::string& text) {
  if (terminal_) fputs("\r\033[K", output_);
  fputs(text.c_str(), output_);
  fputc('\n', output_);
  if (terminal_) fputs(status_.c_str(), output_);
  fflush(output_);
}

void Console::Status(const std::string& text) {
  const base::Instant now = clock_.Now();
  if (text == status_ || now - printed_ < (terminal_ ? kRedrawInterval : kPlainInterval)) return;
  printed_ = now;
  status_ = text;
  if (terminal_) {
    fputs(absl::StrCat("\r\033[K", text).c_str(), output_);
  } else {
    fputs(absl::StrCat(text, "\n").c_str(), output_);
  }
  fflush(output_);
}

void Console::Clear() {
  if (terminal_ && !status_.empty()) fputs("\r\033[K", output_);
  status_.clear();
  fflush(output_);
}

std::string DescribeStatus(const v1::JobStatus& status) {
  switch (status.state()) {
    case v1::JobStatus::WAITING:
      return DescribeWaiting(status);
    case v1::JobStatus::RUNNING:
      return DescribeProgress(status);
    case v1::JobStatus::SUCCEEDED:
      return "succeeded, writing the report";
    case v1::JobStatus::FAILED:
      return "failed, writing the report";
    case v1::JobStatus::STOPPED:
      return "stopped, writing the report";
    default:
      return "";
  }
}

}  // namespace hetero::local
