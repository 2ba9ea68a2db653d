#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/transport.h"

namespace hetero::reconcile {

// An API server in memory, as far as the reconciler can tell: create, get, replace, merge patches
// of a status, delete with preconditions and of collections by label; 404, 409 of both kinds, and
// resourceVersions that rise. Pods are deleted at once unless they run and have a grace period;
// what has finalizers stays until Remove().
// No watches: FakeCluster copies the objects into the stores. Safe from any thread.
class FakeApi : public kube::Transport {
 public:
  struct Write {
    std::string method;
    std::string path;
    bool operator==(const Write&) const = default;
  };
  // Looked at before each write, counted from 0. kLoseRequest and kLoseReply stand for a process or
  // a connection that dies before or after the server has done its work.
  enum class Fate { kPass, kLoseRequest, kLoseReply };
  using Decide = std::function<Fate(int nth_write, const kube::Request& request)>;
  // A reply instead of the server's own; empty: none.
  using Intercept = std::function<std::optional<kube::Response>(const kube::Request& request)>;

  absl::StatusOr<kube::Response> Send(const kube::Request& request, base::Duration timeout,
                                      std::stop_token stop = {}) override;
  absl::StatusOr<kube::Response> Stream(const kube::Request&, base::Duration, base::Duration,
                                        const OnLine&, std::stop_token) override {
    return absl::UnimplementedError("the fake API server has no watches");
  }
  std::string host() const override { return "fake"; }

  void SetDecide(Decide decide);
  void SetIntercept(Intercept intercept);
  // Fields of a status that the resource definition does not have: gone from every write.
  void SetPruned(std::set<std::string> status_fields);

  // Objects of one kind ("pods"), by namespace/name.
  std::map<std::string, nlohmann::json> Objects(const std::string& plural) const;
  // What only the cluster itself does. `key` is namespace/name.
  std::string Put(const std::string& plural, const std::string& key, nlohmann::json object);
  void Change(const std::string& plural, const std::string& key,
              const std::function<void(nlohmann::json& object)>& change);
  void Remove(const std::string& plural, const std::string& key);
  // Removes every object whose owner has gone.
  void CollectGarbage();

  std::vector<Write> writes() const;
  int gets() const;

  static kube::Response Error(int code, const std::string& reason, const std::string& message);

 private:
  struct Path;
  kube::Response Handle(const kube::Request& request);
  kube::Response Create(const Path& path, nlohmann::json object);
  kube::Response Replace(const Path& path, const nlohmann::json& object);
  kube::Response MergePatch(const Path& path, const nlohmann::json& patch);
  kube::Response Delete(const Path& path, const nlohmann::json& options);
  kube::Response DeleteCollection(const Path& path);
  void Stamp(nlohmann::json& object);
  bool DeleteOne(const std::string& plural, const std::string& key, const nlohmann::json& options);

  mutable std::mutex mutex_;                                              // guards all below
  std::map<std::string, std::map<std::string, nlohmann::json>> objects_;  // by plural, key
  int64_t version_ = 100;
  int64_t uids_ = 0;
  int writes_begun_ = 0;
  int gets_ = 0;
  std::vector<Write> writes_;
  Decide decide_;
  Intercept intercept_;
  std::set<std::string> pruned_;
};

}  // namespace hetero::reconcile
