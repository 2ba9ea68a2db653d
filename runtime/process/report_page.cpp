#include "runtime/process/report_page.h"

#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/process/http_address.h"

namespace hetero::process {
namespace {

constexpr std::string_view kHead = "<head>\n";
constexpr std::string_view kLoadAgain = "<meta http-equiv=\"refresh\" content=\"5\"/>\n";

std::string LivePage(const insight::Report& report) {
  std::string html = insight::ToHtml(report);
  const size_t head = html.find(kHead);
  if (head != std::string::npos) html.insert(head + kHead.size(), kLoadAgain);
  return html;
}

}  // namespace

ReportPage::ReportPage(std::function<insight::Report()> report)
    : report_(std::move(report)), endpoint_(registry_) {
  const auto html = [this](const metrics::HttpRequest&) -> metrics::HttpResponse {
    return {.content_type = "text/html; charset=utf-8", .body = LivePage(report_())};
  };
  endpoint_.Handle("/", html);
  endpoint_.Handle("/report.html", html);
  endpoint_.Handle("/report.json", [this](const metrics::HttpRequest&) -> metrics::HttpResponse {
    return {.content_type = "application/json", .body = insight::ToJson(report_())};
  });
}

absl::StatusOr<std::unique_ptr<ReportPage>> ReportPage::Open(
    const std::string& address, std::function<insight::Report()> report) {
  if (address.empty()) return nullptr;
  HETERO_ASSIGN_OR_RETURN(const HttpAddress parsed, ParseHttpAddress("page", address));
  std::unique_ptr<ReportPage> page(new ReportPage(std::move(report)));
  HETERO_RETURN_IF_ERROR(page->endpoint_.Start(parsed.host, parsed.port));
  log::Info("page served", {{"port", page->port()}});
  return page;
}

}  // namespace hetero::process
