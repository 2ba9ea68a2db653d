#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "operator/kube/transport.h"

namespace hetero::kube {

// A kind of object as the API's paths name it: {"", "v1", "pods"}.
struct Resource {
  std::string group;  // empty: the core group
  std::string version;
  std::string plural;
  bool namespaced = true;
  bool operator==(const Resource&) const = default;
};
extern const Resource kPods, kServices, kConfigMaps, kSecrets, kNodes, kNamespaces,
    kNetworkPolicies, kLeases, kEvents /* events.k8s.io/v1 */;

struct ObjectKey {
  std::string name_space;  // empty: cluster-wide
  std::string name;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the comparison with 0 inside for one.
  auto operator<=>(const ObjectKey&) const = default;
  std::string ToString() const { return name_space.empty() ? name : name_space + "/" + name; }
  static ObjectKey Parse(std::string_view text);      // of ToString
  static ObjectKey Of(const nlohmann::json& object);  // of its metadata
};

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  int limit = 500;
  std::string continue_token;
};
struct ObjectList {
  std::vector<nlohmann::json> items;
  std::string resource_version;
  std::string continue_token;  // empty: this was the last page
  size_t bytes = 0;            // of the reply
};

struct WatchOptions {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  base::Duration timeout =
      std::chrono::seconds(290);  // asked of the server; the client's own guard is 10 s later
  // Of a server that is there: it sends a bookmark a minute, to within 2 s.
  base::Duration silence = std::chrono::seconds(75);
};

enum class Propagation { kBackground, kForeground, kOrphan };
struct DeleteOptions {
  Propagation propagation = Propagation::kBackground;
  std::optional<int64_t> grace_period_seconds;
  std::string uid;               // delete only this very object
  std::string resource_version;  // ... and only as it was read
};

enum class PatchType { kMerge, kJson, kStrategic };

// Typed only as far as REST goes: objects are JSON, those that come without their
// metadata.managedFields (slim_json.h). Safe from any thread. Each call has a deadline
// (30 s) and, on 429 and 503 with Retry-After, waits and tries again as client-go does (at most 10
// times, inside the deadline); on 401 it refreshes the credential once. Calls are limited to `qps`,
// `burst`. A stop ends a call at once, while it waits too, with kCancelled: whether a write that
// was under way has been done is then not known.
//
// Errors carry the server's own message and: 400 and 422 kInvalidArgument, 401 kUnauthenticated,
// 403 kPermissionDenied (quota too: IsQuotaExceeded), 404 kNotFound, 409 AlreadyExists
// kAlreadyExists, 409 otherwise kAborted (stale resourceVersion or uid), 410 kOutOfRange, 429
// kResourceExhausted, 5xx kUnavailable; and what Transport reports.
class Client {
 public:
  struct Options {
    double qps = 200;
    int burst = 400;
    base::Duration timeout = std::chrono::seconds(30);
    std::string user_agent = "hetero-operator";
  };
  // Counts rest_client_requests_total{code,method,host} in `registry`. All outlive the client.
  Client(Transport& transport, base::Clock& clock, metrics::Registry& registry, Options options);
  ~Client();

  // The same client, with the same limits, whose calls all end with `stop` as with their own: for a
  // part of the program that must not outlast it. Lives as long as it likes.
  Client Until(std::stop_token stop) const;

  absl::StatusOr<nlohmann::json> Get(const Resource& resource, const ObjectKey& key,
                                     std::stop_token stop = {});
  // One page.
  absl::StatusOr<ObjectList> List(const Resource& resource, const std::string& name_space,
                                  const ListOptions& options, std::stop_token stop = {});
  absl::StatusOr<nlohmann::json> Create(const Resource& resource, const std::string& name_space,
                                        const nlohmann::json& object, std::stop_token stop = {});
  // Replaces the object; its metadata.resourceVersion, when set, must be current. `subresource`: ""
  // or "status".
  absl::StatusOr<nlohmann::json> Update(const Resource& resource, const ObjectKey& key,
                                        const nlohmann::json& object,
                                        const std::string& subresource = "",
                                        std::stop_token stop = {});
  absl::StatusOr<nlohmann::json> Patch(const Resource& resource, const ObjectKey& key,
                                       PatchType type, const nlohmann::json& patch,
                                       const std::string& subresource = "",
                                       std::stop_token stop = {});
  // Server-side apply.
  absl::StatusOr<nlohmann::json> Apply(const Resource& resource, const ObjectKey& key,
                                       const nlohmann::json& object,
                                       const std::string& field_manager, bool force = true,
                                       std::stop_token stop = {});
  // OK when the server accepted; the object may still be there for its grace period.
  absl::Status Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options,
                      std::stop_token stop = {});
  absl::Status DeleteCollection(const Resource& resource, const std::string& name_space,
                                const std::string& label_selector, const DeleteOptions& options,
                                std::stop_token stop = {});

  // Events until the server ends the watch (OK) or an error. An ERROR event becomes the error of
  // its code, 410 thus kOutOfRange. kDeadlineExceeded: it was opened and then nothing came for as
  // long as `silence`. `type` is ADDED, MODIFIED, DELETED or BOOKMARK.
  using OnEvent = std::function<void(std::string_view type, nlohmann::json object)>;
  absl::Status Watch(const Resource& resource, const std::string& name_space,
                     const WatchOptions& options, const OnEvent& on_event, std::stop_token stop);

  // Raw GET of any path whose reply is one JSON object; for what is no object of a kind.
  absl::StatusOr<nlohmann::json> GetPath(const std::string& path, std::stop_token stop = {});
  // The same, as the bytes that come.
  absl::StatusOr<std::string> GetText(const std::string& path, std::stop_token stop = {});
  // Raw GET of any path, line by line; for logs and discovery.
  absl::Status GetLines(const std::string& path, const Transport::OnLine& on_line,
                        std::stop_token stop);

 private:
  struct Impl;
  Client(std::shared_ptr<Impl> impl, std::stop_token until);

  std::shared_ptr<Impl> impl_;
  std::stop_token until_;
};

// A create refused because the namespace's ResourceQuota is used up.
bool IsQuotaExceeded(const absl::Status& status);
// A 404 of the path itself, by no handler's word about an object: the server does not have this API
// or this version of it.
bool IsNotServed(const absl::Status& status);
// What Retry-After asked for, when the error carries it.
std::optional<base::Duration> RetryAfter(const absl::Status& status);

}  // namespace hetero::kube
