#include "operator/kube/client.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "base/either_stop.h"
#include "base/json_access.h"
#include "base/status_macros.h"
#include "operator/kube/api_error.h"
#include "operator/kube/rate_limit.h"
#include "operator/kube/resource.h"
#include "operator/kube/slim_json.h"

namespace hetero::kube {
namespace {

using nlohmann::json;

constexpr int kMaxRetries = 10;
constexpr base::Duration kWatchGrace = std::chrono::seconds(10);
// A log that is followed may say nothing and go on for as long as its reader wants it.
constexpr base::Duration kForAsLongAsWanted = std::chrono::hours(24);

std::string_view PropagationName(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
  }
  return "";
}

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
  }
  return "";
}

std::string DeleteBody(const DeleteOptions& options) {
  json body = {{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"propagationPolicy", PropagationName(options.propagation)}};
  if (options.grace_period_seconds.has_value()) {
    body["gracePeriodSeconds"] = *options.grace_period_seconds;
  }
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  return body.dump();
}

// Text that is not UTF-8 is replaced rather than thrown about: it may stem from a log.
std::string Dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string CallOf(const Request& request) { return request.method + " " + request.path; }

// A request for the object `key`; a name that is missing would turn it into one for all of them.
absl::StatusOr<Request> ForObject(std::string method, const Resource& resource,
                                  const ObjectKey& key, const std::string& subresource = "") {
  if (key.name.empty() || (resource.namespaced && key.name_space.empty())) {
    return absl::InvalidArgumentError(method + " of " + resource.plural + " \"" + key.ToString() +
                                      "\": its name or namespace is empty");
  }
  return Request{.method = std::move(method),
                 .path = ResourcePath(resource, key.name_space, key.name, subresource)};
}

void SetBody(Request& request, std::string body, std::string_view content_type) {
  request.body = std::move(body);
  request.content_type = content_type;
}

absl::StatusOr<json> ParseObject(const Request& request, const Response& response) {
  json object = ParseWithoutManagedFields(response.body);
  if (object.is_object()) return object;
  return absl::UnavailableError(CallOf(request) + ": the reply (status " +
                                std::to_string(response.status) + ", " +
                                std::to_string(response.body.size()) + " bytes) is no JSON object");
}

}  // namespace

struct Client::Impl {
  Impl(Transport& t, base::Clock& c, metrics::Registry& r, Options o)
      : transport(t),
        clock(c),
        registry(r),
        options(std::move(o)),
        limit(c, options.qps, options.burst) {}

  // One call: the rate limit, then as many tries as the server asks for.
  absl::StatusOr<Response> Call(Request request, std::stop_token stop);
  absl::StatusOr<json> CallForObject(Request request, std::stop_token stop);
  // Waits for the rate limit. Never past `deadline`; nothing is sent after a stop.
  absl::Status Admit(const std::string& call, base::Instant deadline, std::stop_token stop);
  absl::Status Stream(Request request, base::Duration idle, base::Duration limit,
                      const Transport::OnLine& on_line, std::stop_token stop);
  void Count(const std::string& method, const absl::StatusOr<Response>& result);

  Transport& transport;
  base::Clock& clock;
  metrics::Registry& registry;
  Options options;
  RateLimit limit;
};

void Client::Impl::Count(const std::string& method, const absl::StatusOr<Response>& result) {
  registry
      .GetCounter("rest_client_requests_total",
                  "Number of HTTP requests, partitioned by status code, method, and host.",
                  {{"code", result.ok() ? std::to_string(result->status) : "<error>"},
                   {"method", method},
                   {"host", transport.host()}})
      .Add();
}

absl::Status Client::Impl::Admit(const std::string& call, base::Instant deadline,
                                 std::stop_token stop) {
  if (stop.stop_requested()) return absl::CancelledError(call + ": stopped");
  const base::Duration wait = limit.Reserve();
  if (clock.Now() + wait > deadline) {
    limit.Return();
    return absl::ResourceExhaustedError(
        call + ": the client's own limit of " + std::to_string(options.qps) +
        " calls per second leaves no room within the deadline; raise the limit");
  }
  if (wait > base::Duration::zero() && !clock.SleepFor(wait, stop)) {
    return absl::CancelledError(call + ": stopped");
  }
  return absl::OkStatus();
}

absl::StatusOr<Response> Client::Impl::Call(Request request, std::stop_token stop) {
  const std::string call = CallOf(request);
  const base::Instant deadline = clock.Now() + options.timeout;
  request.user_agent = options.user_agent;
  for (int retries = 0;; ++retries) {
    HETERO_RETURN_IF_ERROR(Admit(call, deadline, stop));
    absl::StatusOr<Response> response =
        transport.Send(request, std::max(deadline - clock.Now(), base::Duration(1)), stop);
    Count(request.method, response);
    if (!response.ok()) return response.status();
    if (response->status >= 200 && response->status < 300) return response;

    const absl::Status error = ErrorOfResponse(call, *response);
    const bool overloaded = response->status == 429 || response->status >= 500;
    const std::optional<base::Duration> wait = RetryAfter(error);
    if (!overloaded || !wait.has_value() || retries == kMaxRetries ||
        clock.Now() + *wait >= deadline) {
      return error;
    }
    if (!clock.SleepFor(*wait, stop)) return absl::CancelledError(call + ": stopped");
  }
}

absl::StatusOr<json> Client::Impl::CallForObject(Request request, std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(const Response response, Call(request, std::move(stop)));
  return ParseObject(request, response);
}

absl::Status Client::Impl::Stream(Request request, base::Duration idle, base::Duration limit_of_all,
                                  const Transport::OnLine& on_line, std::stop_token stop) {
  const std::string call = CallOf(request);
  request.user_agent = options.user_agent;
  HETERO_RETURN_IF_ERROR(Admit(call, clock.Now() + options.timeout, stop));
  absl::StatusOr<Response> response =
      transport.Stream(request, idle, limit_of_all, on_line, std::move(stop));
  Count(request.method, response);
  if (!response.ok()) return response.status();
  return response->status == 200 ? absl::OkStatus() : ErrorOfResponse(call, *response);
}

Client::Client(Transport& transport, base::Clock& clock, metrics::Registry& registry,
               Options options)
    : impl_(std::make_shared<Impl>(transport, clock, registry, std::move(options))) {}
Client::Client(std::shared_ptr<Impl> impl, std::stop_token until)
    : impl_(std::move(impl)), until_(std::move(until)) {}
Client::~Client() = default;

Client Client::Until(std::stop_token stop) const { return Client(impl_, std::move(stop)); }

absl::StatusOr<json> Client::Get(const Resource& resource, const ObjectKey& key,
                                 std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(Request request, ForObject("GET", resource, key));
  const base::EitherStop ends(until_, stop);
  return impl_->CallForObject(std::move(request), ends.token());
}

absl::StatusOr<ObjectList> Client::List(const Resource& resource, const std::string& name_space,
                                        const ListOptions& options, std::stop_token stop) {
  Query query;
  query.Add("labelSelector", options.label_selector)
      .Add("fieldSelector", options.field_selector)
      .Add("limit", options.limit > 0 ? std::to_string(options.limit) : "")
      .Add("continue", options.continue_token);
  const Request request{.path = ResourcePath(resource, name_space) + query.text()};
  const base::EitherStop ends(until_, stop);
  HETERO_ASSIGN_OR_RETURN(Response response, impl_->Call(request, ends.token()));
  HETERO_ASSIGN_OR_RETURN(json page, ParseObject(request, response));
  ObjectList list;
  list.bytes = response.body.size();
  response.body =
      std::string();  // as large as the page: it is not to wait until that has been used
  if (const auto metadata = page.find("metadata"); metadata != page.end()) {
    list.resource_version = base::TextOf(*metadata, "resourceVersion");
    list.continue_token = base::TextOf(*metadata, "continue");
  }
  const auto items = page.find("items");
  if (items == page.end() || items->is_null()) return list;
  if (!items->is_array()) {
    return absl::UnavailableError(CallOf(request) + ": the reply's items are no array");
  }
  for (json& item : *items) {
    if (!item.is_object()) {
      return absl::UnavailableError(CallOf(request) + ": an item of the reply is no object");
    }
    list.items.push_back(std::move(item));
  }
  return list;
}

absl::StatusOr<json> Client::Create(const Resource& resource, const std::string& name_space,
                                    const json& object, std::stop_token stop) {
  Request request{.method = "POST", .path = ResourcePath(resource, name_space)};
  SetBody(request, Dump(object), "application/json");
  const base::EitherStop ends(until_, stop);
  return impl_->CallForObject(std::move(request), ends.token());
}

absl::StatusOr<json> Client::Update(const Resource& resource, const ObjectKey& key,
                                    const json& object, const std::string& subresource,
                                    std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(Request request, ForObject("PUT", resource, key, subresource));
  SetBody(request, Dump(object), "application/json");
  const base::EitherStop ends(until_, stop);
  return impl_->CallForObject(std::move(request), ends.token());
}

absl::StatusOr<json> Client::Patch(const Resource& resource, const ObjectKey& key, PatchType type,
                                   const json& patch, const std::string& subresource,
                                   std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(Request request, ForObject("PATCH", resource, key, subresource));
  SetBody(request, Dump(patch), ContentType(type));
  const base::EitherStop ends(until_, stop);
  return impl_->CallForObject(std::move(request), ends.token());
}

absl::StatusOr<json> Client::Apply(const Resource& resource, const ObjectKey& key,
                                   const json& object, const std::string& field_manager, bool force,
                                   std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(Request request, ForObject("PATCH", resource, key));
  Query query;
  query.Add("fieldManager", field_manager).Add("force", force ? "true" : "false");
  request.path += query.text();
  SetBody(request, Dump(object), "application/apply-patch+yaml");
  const base::EitherStop ends(until_, stop);
  return impl_->CallForObject(std::move(request), ends.token());
}

absl::Status Client::Delete(const Resource& resource, const ObjectKey& key,
                            const DeleteOptions& options, std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(Request request, ForObject("DELETE", resource, key));
  SetBody(request, DeleteBody(options), "application/json");
  const base::EitherStop ends(until_, stop);
  return impl_->Call(std::move(request), ends.token()).status();
}

absl::Status Client::DeleteCollection(const Resource& resource, const std::string& name_space,
                                      const std::string& label_selector,
                                      const DeleteOptions& options, std::stop_token stop) {
  Query query;
  query.Add("labelSelector", label_selector);
  Request request{.method = "DELETE", .path = ResourcePath(resource, name_space) + query.text()};
  SetBody(request, DeleteBody(options), "application/json");
  const base::EitherStop ends(until_, stop);
  return impl_->Call(std::move(request), ends.token()).status();
}

absl::Status Client::Watch(const Resource& resource, const std::string& name_space,
                           const WatchOptions& options, const OnEvent& on_event,
                           std::stop_token stop) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.timeout).count();
  Query query;
  query.Add("watch", "true")
      .Add("allowWatchBookmarks", "true")
      .Add("labelSelector", options.label_selector)
      .Add("fieldSelector", options.field_selector)
      .Add("resourceVersion", options.resource_version)
      .Add("timeoutSeconds", std::to_string(std::max<int64_t>(seconds, 1)));
  const Request request{.path = ResourcePath(resource, name_space) + query.text()};
  const std::string call = CallOf(request);
  absl::Status in_stream;
  const auto on_line = [&](std::string_view line) {
    json event = ParseWithoutManagedFields(line);
    const std::string type = base::TextOf(event, "type");
    const auto object = event.is_object() ? event.find("object") : event.end();
    if (type.empty() || object == event.end() || !object->is_object()) {
      in_stream = absl::UnavailableError(call + ": a line of " + std::to_string(line.size()) +
                                         " bytes is no watch event");
    } else if (type == "ERROR") {
      in_stream = ErrorOfStatusObject(call, *object);
    } else if (type == "ADDED" || type == "MODIFIED" || type == "DELETED" || type == "BOOKMARK") {
      on_event(type, std::move(*object));
    } else {
      in_stream = absl::UnavailableError(call + ": unknown watch event " + type);
    }
    return in_stream.ok();
  };
  const base::Duration guard = options.timeout + kWatchGrace;
  const base::EitherStop ends(until_, stop);
  const absl::Status ended = impl_->Stream(request, options.silence, guard, on_line, ends.token());
  return in_stream.ok() ? ended : in_stream;
}

absl::StatusOr<json> Client::GetPath(const std::string& path, std::stop_token stop) {
  const base::EitherStop ends(until_, stop);
  return impl_->CallForObject(Request{.path = path}, ends.token());
}

absl::StatusOr<std::string> Client::GetText(const std::string& path, std::stop_token stop) {
  const base::EitherStop ends(until_, stop);
  HETERO_ASSIGN_OR_RETURN(Response response,
                          impl_->Call(Request{.path = path, .accept = "*/*"}, ends.token()));
  return std::move(response.body);
}

absl::Status Client::GetLines(const std::string& path, const Transport::OnLine& on_line,
                              std::stop_token stop) {
  const base::EitherStop ends(until_, stop);
  return impl_->Stream(Request{.path = path, .accept = "*/*"}, kForAsLongAsWanted,
                       kForAsLongAsWanted, on_line, ends.token());
}

}  // namespace hetero::kube
