#include "runtime/process/report_page.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/insight/report.h"
#include "runtime/process/http_address.h"

namespace hetero::process {
namespace {

constexpr std::string_view kHead = "<head>\n";
constexpr std::string_view kLoadAgain = "<meta http-equiv=\"refresh\" content=\"5\"/>\n";
constexpr char kInherited[] = "fd:";

std::string PageOf(const insight::Report& report) {
  std::string html = insight::ToHtml(report);
  const size_t head = html.find(kHead);
  if (head != std::string::npos) html.insert(head + kHead.size(), kLoadAgain);
  return html;
}

absl::StatusOr<base::Socket> Inherited(const std::string& address) {
  int file = -1;
  int listens = 0;
  socklen_t size = sizeof listens;
  if (!absl::SimpleAtoi(absl::StripPrefix(address, kInherited), &file) || file < 0 ||
      getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("page address \"", address, "\": that is no socket that listens"));
  }
  fcntl(file, F_SETFD, FD_CLOEXEC);
  return base::Socket(file);
}

}  // namespace

ReportPage::ReportPage(const head::Server& server) : live_(server), endpoint_(registry_) {
  const auto html = [&server](const metrics::HttpRequest&) -> metrics::HttpResponse {
    return {.content_type = "text/html; charset=utf-8", .body = PageOf(server.ReportSoFar())};
  };
  endpoint_.SetGuard(metrics::RefuseUnknownHosts);
  endpoint_.Handle("/", html);
  endpoint_.Handle("/report.html", html);
  endpoint_.Handle("/report.json", [&server](const metrics::HttpRequest&) -> metrics::HttpResponse {
    return {.content_type = "application/json", .body = insight::ToJson(server.ReportSoFar())};
  });
  live_.Register(endpoint_);
}

absl::Status ReportPage::Start(const std::string& address) {
  if (address.starts_with(kInherited)) {
    HETERO_ASSIGN_OR_RETURN(base::Socket listener, Inherited(address));
    return endpoint_.Start(std::move(listener));
  }
  HETERO_ASSIGN_OR_RETURN(const HttpAddress parsed, ParseHttpAddress("page", address));
  return endpoint_.Start(parsed.host, parsed.port);
}

absl::StatusOr<std::unique_ptr<ReportPage>> ReportPage::Open(const std::string& address,
                                                             const head::Server& server) {
  if (address.empty()) return nullptr;
  std::unique_ptr<ReportPage> page(new ReportPage(server));
  HETERO_RETURN_IF_ERROR(page->Start(address));
  log::Info("page served", {{"port", page->port()}});
  return page;
}

}  // namespace hetero::process
