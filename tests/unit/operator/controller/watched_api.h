#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/operator/kube/fake_transport.h"

namespace hetero::program {

// An API server whose lists and watches a test fills by hand, path by path ("/api/v1/pods").
// Watches stay open until they are told to end. Safe from any thread.
class WatchedApi : public kube::FakeTransport {
 public:
  WatchedApi() {
    Always([this](const kube::Request& request, std::stop_token stop) {
      return List(PathOf(request), std::move(stop));
    });
    AlwaysStream([this](const kube::Request& request, const OnLine& on_line, std::stop_token stop) {
      return Watch(PathOf(request), on_line, std::move(stop));
    });
  }

  // What the next lists of `path` hold; without: nothing.
  void SetList(const std::string& path, std::vector<nlohmann::json> objects) {
    const std::lock_guard lock(mutex_);
    lists_[path] = std::move(objects);
  }
  // Whether the server knows the kind at all.
  void SetServed(const std::string& path, bool served) {
    const std::lock_guard lock(mutex_);
    if (served) {
      unserved_.erase(path);
    } else {
      unserved_.insert(path);
    }
  }
  // Lists of `path` are not answered until Release().
  void Hold(const std::string& path) {
    const std::lock_guard lock(mutex_);
    held_.insert(path);
  }
  void Release(const std::string& path) {
    const std::lock_guard lock(mutex_);
    held_.erase(path);
    changed_.notify_all();
  }
  // On the open watch of `path`, or the next one.
  void Send(const std::string& path, const std::string& type, const nlohmann::json& object) {
    const std::lock_guard lock(mutex_);
    lines_[path].push_back(nlohmann::json{{"type", type}, {"object", object}}.dump());
    changed_.notify_all();
  }
  // The version that the watch of `path` goes on from is too old.
  void Expire(const std::string& path) {
    Send(path, "ERROR", kube::StatusObject(410, "Expired", "too old resource version"));
  }
  // Until watches of `path` have been opened `times` times: the list before is taken in then. False
  // after 10 s.
  bool AwaitWatch(const std::string& path, int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return watches_[path] >= times; });
  }

 private:
  static std::string PathOf(const kube::Request& request) {
    return request.path.substr(0, request.path.find('?'));
  }
  absl::StatusOr<kube::Response> List(const std::string& path, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return !held_.contains(path); })) {
      return absl::CancelledError("stopped");
    }
    if (unserved_.contains(path)) {
      return kube::JsonReply(404, kube::StatusObject(404, "NotFound", "no such resource"));
    }
    return kube::JsonReply(200,
                           {{"metadata", {{"resourceVersion", "1"}}}, {"items", lists_[path]}});
  }
  absl::StatusOr<kube::Response> Watch(const std::string& path, const OnLine& on_line,
                                       std::stop_token stop) {
    std::unique_lock lock(mutex_);
    ++watches_[path];
    changed_.notify_all();
    while (changed_.wait(lock, stop, [&] { return !lines_[path].empty(); })) {
      const std::string line = std::move(lines_[path].front());
      lines_[path].pop_front();
      lock.unlock();
      if (!on_line(line)) return kube::Response{.status = 200};
      lock.lock();
    }
    return absl::CancelledError("stopped");
  }

  std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  std::map<std::string, std::vector<nlohmann::json>> lists_;
  std::map<std::string, std::deque<std::string>> lines_;
  std::map<std::string, int> watches_;
  std::set<std::string> held_;
  std::set<std::string> unserved_;
};

// What has happened, in order. Safe from any thread.
class Happened {
 public:
  void Add(std::string what) {
    const std::lock_guard lock(mutex_);
    what_.push_back(std::move(what));
    changed_.notify_all();
  }
  // What has happened since the last call, as soon as it is `count` things; fewer after 10 s.
  std::vector<std::string> Take(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return what_.size() >= count; });
    return std::exchange(what_, {});
  }

 private:
  std::mutex mutex_;  // guards what_
  std::condition_variable changed_;
  std::vector<std::string> what_;
};

}  // namespace hetero::program
