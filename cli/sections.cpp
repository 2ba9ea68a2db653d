#include "cli/sections.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

// On a terminal, messages end there: a screen shows much else.
constexpr size_t kMostOfMessage = 480;
constexpr size_t kMostOfPod = 240;
constexpr size_t kLinesOfLastWords = 20;
constexpr double kMostSeconds = 1e9;  // any longer duration is shown as this one

// Indented, its later lines by two more; with about `most` characters.
std::string Paragraph(const std::string& text, const Style& style, size_t most, int indent = 2) {
  const size_t width = style.width == 0 ? 0 : std::max(style.width - indent, 1);
  const size_t max_lines = width == 0 ? 0 : (most + width - 1) / width;
  std::string lines;
  for (const std::string& line : Wrap(text, width, 2, max_lines)) {
    absl::StrAppend(&lines, std::string(indent, ' '), line, "\n");
  }
  return lines;
}

// A text of several lines keeps them, and the columns in them where they fit.
std::string Lines(const std::string& text, const Style& style) {
  std::string lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string plain = Plain({line.data(), line.size()});
    const bool fits = style.width == 0 || Columns(plain) + 2 <= static_cast<size_t>(style.width);
    lines += fits ? "  " + plain + "\n" : Paragraph(plain, style, kMostOfMessage);
  }
  return lines;
}

// The operator lists missing pods as "a-cpu-0: why; a-cpu-1: why; and 7 more".
std::vector<std::string> SplitPods(const std::string& message, const std::string& job) {
  std::vector<std::string> pods;
  size_t begin = 0;
  for (size_t end = message.find("; "); end != std::string::npos; end = message.find("; ", end)) {
    const size_t next = end + 2;
    if (message.compare(next, job.size() + 1, job + "-") == 0 ||
        message.compare(next, 4, "and ") == 0) {
      pods.push_back(message.substr(begin, end - begin));
      begin = next;
    }
    end = next;
  }
  pods.push_back(message.substr(begin));
  return pods;
}

// Pods that wait for the same are grouped: "a-cpu-0, a-cpu-1: why".
std::string RenderMissing(const JobView& view, const std::string& message, const Style& style) {
  std::vector<std::pair<std::string, std::string>> groups;  // pods, why
  std::string more;
  for (const std::string& item : SplitPods(message, view.name)) {
    const size_t colon = item.find(": ");
    if (item.starts_with("and ") && item.ends_with(" more")) {
      more = item.substr(3);
      more.front() = '+';
      continue;
    }
    const std::string pod = item.substr(0, colon);
    const std::string why = colon == std::string::npos ? "" : item.substr(colon);
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&why](const auto& group) { return group.second == why; });
    if (same == groups.end() || why.empty()) {
      groups.emplace_back(pod, why);
    } else {
      absl::StrAppend(&same->first, ", ", pod);
    }
  }
  std::string text = "Waiting for:\n";
  for (const auto& [pods, why] : groups) text += Paragraph(pods + why, style, kMostOfPod);
  if (!more.empty()) text += Paragraph(more, style, kMostOfPod);
  return text;
}

// "cost 12m30s of training, $0.75; not any more"; empty: there is nothing to say.
std::string RemarkOf(const api::JobFinding& finding) {
  std::vector<std::string> cost;
  if (finding.seconds) {
    cost.push_back(FormatDuration(base::FromSeconds(std::min(*finding.seconds, kMostSeconds))) +
                   " of training");
  }
  if (finding.dollars) cost.push_back(absl::StrFormat("$%.2f", *finding.dollars));
  std::vector<std::string> remarks;
  if (!cost.empty()) remarks.push_back("cost " + absl::StrJoin(cost, ", "));
  if (!finding.active) remarks.emplace_back("not any more");
  return absl::StrJoin(remarks, "; ");
}

}  // namespace

std::string RenderFindings(const JobView& view, const Style& style) {
  if (view.status.findings.empty()) return "";
  std::string text = "What to change:\n";
  for (const api::JobFinding& finding : view.status.findings) {
    std::string what = finding.rule;
    if (!finding.member.empty()) absl::StrAppend(&what, " (", finding.member, ")");
    absl::StrAppend(&what, ": ", finding.message);
    if (const std::string remark = RemarkOf(finding); !remark.empty()) {
      absl::StrAppend(&what, " (", remark, ")");
    }
    text += Paragraph(Plain(what), style, kMostOfMessage);
    if (finding.remedy.empty()) continue;
    text += Paragraph("-> " + Plain(finding.remedy), style, kMostOfMessage, /*indent=*/4);
  }
  return text;
}

std::string RenderMessages(const JobView& view, const Style& style) {
  std::string text;
  for (const api::Condition& condition : view.status.conditions) {
    const bool verdict = (condition.type == api::ConditionType::kFailed ||
                          condition.type == api::ConditionType::kSucceeded) &&
                         condition.status == api::ConditionStatus::kTrue;
    // After the end nobody is waited for any more.
    if (view.status.finished() != verdict) continue;
    const std::string message(absl::StripTrailingAsciiWhitespace(condition.message));
    if (message.empty() || message == "none") continue;
    if (condition.type == api::ConditionType::kRegistered) {
      text += RenderMissing(view, Plain(message), style);
      continue;
    }
    const bool is_queue = condition.type == api::ConditionType::kQueued;
    absl::StrAppend(&text,
                    Cut(absl::StrCat(std::string(api::NameOf(condition.type)),
                                     condition.status == api::ConditionStatus::kTrue ? "" : " not",
                                     ", ", condition.reason,
                                     is_queue && !view.place.empty() ? ", " + view.place : "", ":"),
                        style.width),
                    "\n", Lines(message, style));
  }
  return text;
}

std::string RenderTrouble(const absl::Status& trouble, base::Duration old, const Style& style) {
  std::string text = "Not up to date for " + FormatDuration(old) + ":\n";
  for (const std::string& line : Wrap(Plain(std::string(trouble.message())), style.width, 2)) {
    absl::StrAppend(&text, line, "\n");
  }
  return text + "\n";
}

std::string RenderFailure(const JobView& view, const Style& style) {
  if (!view.status.first_failure) return "";
  const api::FirstFailure& failure = *view.status.first_failure;
  const api::Condition* failed = view.status.Find(api::ConditionType::kFailed);
  // The head's verdict, said again.
  if (failure.pod.empty() && failed != nullptr && failed->message == failure.message) return "";
  std::vector<std::string> pieces = {"First failure"};
  const auto add = [&pieces](const std::string& name, const std::string& value) {
    if (!value.empty()) pieces.push_back(name + Plain(value));
  };
  add("pod ", failure.pod);
  add("role ", failure.role);
  add("node ", failure.node);
  if (failure.exit_code) add("exit code ", absl::StrCat(*failure.exit_code));
  if (failure.signal) add("signal ", absl::StrCat(*failure.signal));
  add("", failure.reason);
  std::string text = Flow(pieces, style.width, 2);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < failure.message.size();) {
    const size_t end = std::min(failure.message.find('\n', begin), failure.message.size());
    lines.push_back(Plain(failure.message.substr(begin, end - begin)));
    begin = end + 1;
  }
  // The end of its last words says the most.
  const size_t left_out =
      style.width > 0 && lines.size() > kLinesOfLastWords ? lines.size() - kLinesOfLastWords : 0;
  if (left_out > 0) absl::StrAppend(&text, "  (", left_out, " lines before)\n");
  for (size_t i = left_out; i < lines.size(); ++i) {
    text += Paragraph(lines[i], style, kMostOfPod);
  }
  return text;
}

std::string RenderResult(const api::JobResult& result, const Style& style) {
  std::vector<Row> rows;
  const auto number = [&](const char* name, const std::optional<double>& value,
                          const auto& format) {
    if (value) rows.push_back({name, absl::StrFormat(format, *value)});
  };
  if (result.steps) rows.push_back({"  steps", absl::StrCat(*result.steps)});
  number("  loss", result.loss, absl::ParsedFormat<'g'>("%.6g"));
  number("  accuracy", result.accuracy, absl::ParsedFormat<'f'>("%.4f"));
  number("  samples/s", result.samples_per_second, absl::ParsedFormat<'f'>("%.1f"));
  number("  cost", result.cost_dollars, absl::ParsedFormat<'f'>("$%.2f"));
  const auto text = [&rows](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, Plain(value)});
  };
  text("  stream digest", result.stream_digest);
  text("  checkpoint", result.checkpoint_uri);
  text("  report", result.report_uri);
  return Table(std::move(rows), style.width);
}

}  // namespace hetero::cli
