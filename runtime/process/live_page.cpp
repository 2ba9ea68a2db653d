#include "runtime/process/live_page.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "runtime/insight/live/merge_patch.h"
#include "runtime/insight/live/page.h"
#include "runtime/insight/live/snapshot_json.h"

namespace hetero::process {
namespace {

constexpr char kJson[] = "application/json";

std::string Parameter(const metrics::HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

}  // namespace

LivePage::LivePage(const head::Server& server)
    : server_(server),
      stream_({.whole = [this] { return live::ToText(value_); },
               .change = [this] { return Change(); }}) {}

std::string LivePage::Change() {
  nlohmann::json now = live::ToJson(server_.Look(builder_));
  const nlohmann::json patch = live::MergePatch(value_, now);
  value_ = std::move(now);
  return patch.empty() ? "" : live::ToText(patch);
}

void LivePage::Register(metrics::HttpEndpoint& endpoint) {
  endpoint.Handle("/live", [](const metrics::HttpRequest&) -> metrics::HttpResponse {
    return {.content_type = "text/html; charset=utf-8",
            .body = live::Page(),
            .headers = {{"Content-Security-Policy", live::PagePolicy()},
                        {"Cache-Control", "no-store"},
                        {"Referrer-Policy", "no-referrer"},
                        {"X-Content-Type-Options", "nosniff"}}};
  });
  endpoint.HandleStream("/live/events", stream_);
  endpoint.Handle("/live/member.json",
                  [this](const metrics::HttpRequest& request) { return Member(request); });
}

metrics::HttpResponse LivePage::Member(const metrics::HttpRequest& request) const {
  double after = 0;
  if (!absl::SimpleAtod(Parameter(request, "after"), &after)) after = 0;
  const std::optional<live::MemberDetail> detail =
      server_.LookAt(Parameter(request, "name"), Parameter(request, "span") == "whole", after);
  if (!detail) {
    return {.status = 404, .body = "the job has no member of that name (yet): name=cpu-0\n"};
  }
  return {.content_type = kJson,
          .body = live::ToText(*detail),
          .headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}}};
}

}  // namespace hetero::process
