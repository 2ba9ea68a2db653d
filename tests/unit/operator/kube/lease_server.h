#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>

#include "fake_transport.h"

namespace hetero::kube {

// One Lease as an API server keeps it: versions, conflicts, and failures when told to. Safe from
// any thread.
class LeaseServer {
 public:
  explicit LeaseServer(FakeTransport& transport) {
    transport.Always([this](const Request& request, std::stop_token stop) {
      return Answer(request, std::move(stop));
    });
  }

  // Puts a lease there, as another candidate would.
  void Put(nlohmann::json spec) {
    std::lock_guard lock(mutex_);
    Store({{"metadata", {{"name", "op"}, {"namespace", "sys"}}}, {"spec", std::move(spec)}});
  }
  void Delete() {
    std::lock_guard lock(mutex_);
    lease_ = nullptr;
  }
  nlohmann::json spec() const {
    std::lock_guard lock(mutex_);
    return lease_.is_object() ? lease_.value("spec", nlohmann::json()) : nlohmann::json();
  }
  int writes() const {
    std::lock_guard lock(mutex_);
    return writes_;
  }
  // From now on every request fails so; OK: none.
  void FailWith(absl::Status status) {
    std::lock_guard lock(mutex_);
    failure_ = std::move(status);
  }
  // Runs before the next write is looked at, for races.
  void BeforeNextWrite(std::function<void()> action) {
    std::lock_guard lock(mutex_);
    before_write_ = std::move(action);
  }
  // Requests get no answer until Unblock, or until their callers leave: then nothing is done.
  void Block() {
    std::lock_guard lock(mutex_);
    blocked_ = true;
  }
  void Unblock() {
    std::lock_guard lock(mutex_);
    blocked_ = false;
    changed_.notify_all();
  }
  void WaitUntilOneIsBlocked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }

 private:
  absl::StatusOr<Response> Answer(const Request& request, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (request.method != "GET" && before_write_) {
      auto action = std::exchange(before_write_, nullptr);
      lock.unlock();
      action();
      lock.lock();
    }
    if (blocked_) {
      ++waiting_;
      changed_.notify_all();
      const bool answered = changed_.wait(lock, stop, [&] { return !blocked_; });
      --waiting_;
      if (!answered) return absl::CancelledError("stopped");
    }
    if (!failure_.ok()) return failure_;
    if (request.method == "GET") {
      return lease_.is_null() ? ErrorReply(404, "NotFound", "lease not found")
                              : JsonReply(200, lease_);
    }
    nlohmann::json wanted = nlohmann::json::parse(request.body);
    if (request.method == "POST") {
      if (!lease_.is_null()) return ErrorReply(409, "AlreadyExists", "lease already exists");
    } else {
      if (lease_.is_null()) return ErrorReply(404, "NotFound", "lease not found");
      if (wanted["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"]) {
        return ErrorReply(409, "Conflict", "the object has been modified");
      }
    }
    ++writes_;
    Store(std::move(wanted));
    return JsonReply(request.method == "POST" ? 201 : 200, lease_);
  }
  void Store(nlohmann::json lease) {
    lease_ = std::move(lease);
    lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
  }

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  nlohmann::json lease_;
  int version_ = 100;
  int writes_ = 0;
  int waiting_ = 0;
  bool blocked_ = false;
  absl::Status failure_;
  std::function<void()> before_write_;
};

}  // namespace hetero::kube
