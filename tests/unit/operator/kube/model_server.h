#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fake_transport.h"
#include "instant_clock.h"

namespace hetero::kube {

// An API server that holds one kind of object, its history as far back as the last compaction, and
// no good intentions: what goes wrong next is drawn from a seed. Everything happens inside the
// client's own calls, on its thread. After `chaos` changes it turns honest, delivers what is left
// and calls `quiet`.
class ModelServer {
 public:
  ModelServer(FakeTransport& transport, InstantClock& clock, uint32_t seed, int chaos,
              std::function<void()> quiet)
      : clock_(clock), random_(seed), left_(chaos), quiet_(std::move(quiet)) {
    transport.Always([this](const Request& request, std::stop_token) { return List(request); });
    transport.AlwaysStream([this](const Request& request, const Transport::OnLine& on_line,
                                  std::stop_token) { return Watch(request, on_line); });
    for (int i = Draw(30); i > 0; --i) Change();
  }

  // Object name -> version.
  const std::map<std::string, int>& truth() const { return truth_; }
  int lists() const { return lists_; }
  int expired() const { return expired_; }

 private:
  struct Event {
    int version;
    std::string type;
    std::string name;
  };
  struct Snapshot {
    int version;
    std::vector<std::pair<std::string, int>> rest;
  };

  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }
  bool Honest() const { return left_ <= 0; }

  void Change() {
    const std::string name = "pod-" + std::to_string(Draw(25));
    const auto it = truth_.find(name);
    ++version_;
    --left_;
    if (it == truth_.end()) {
      truth_[name] = version_;
      history_.push_back({version_, "ADDED", name});
    } else if (Draw(3) == 0) {
      truth_.erase(it);
      history_.push_back({version_, "DELETED", name});
    } else {
      it->second = version_;
      history_.push_back({version_, "MODIFIED", name});
    }
  }
  void Compact() {
    compacted_ = version_ - Draw(5);
    std::erase_if(history_, [this](const Event& event) { return event.version <= compacted_; });
    snapshots_.clear();
  }
  static nlohmann::json Object(const std::string& name, int version) {
    return {{"metadata",
             {{"namespace", "n"}, {"name", name}, {"resourceVersion", std::to_string(version)}}}};
  }
  static std::string Parameter(const std::string& path, const std::string& name) {
    const size_t at = path.find(name + "=");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 1;
    return path.substr(begin, path.find('&', begin) - begin);
  }
  static Response Gone() { return ErrorReply(410, "Expired", "too old resource version"); }

  absl::StatusOr<Response> Trouble() {
    switch (Draw(4)) {
      case 0:
        return absl::UnavailableError("connection reset");
      case 1:
        return absl::DeadlineExceededError("silence");
      case 2:
        return ErrorReply(500, "InternalError", "etcdserver: leader changed");
      default:
        return ErrorReply(403, "Forbidden", "pods is forbidden");
    }
  }

  absl::StatusOr<Response> List(const Request& request) {
    ++lists_;
    if (!Honest()) {
      for (int i = Draw(4); i > 0; --i) Change();
      if (Draw(6) == 0) Compact();
      if (Draw(5) == 0) return Trouble();
    }
    const std::string token = Parameter(request.path, "continue");
    if (!token.empty() && !snapshots_.contains(token)) {
      ++expired_;
      return Gone();
    }
    Snapshot snapshot = token.empty() ? Snapshot{version_, {truth_.begin(), truth_.end()}}
                                      : std::exchange(snapshots_[token], {});
    const size_t size = std::min<size_t>(snapshot.rest.size(), 1 + Draw(8));
    nlohmann::json page = {{"metadata", {{"resourceVersion", std::to_string(snapshot.version)}}},
                           {"items", nlohmann::json::array()}};
    for (size_t i = 0; i < size; ++i) {
      page["items"].push_back(Object(snapshot.rest[i].first, snapshot.rest[i].second));
    }
    snapshot.rest.erase(snapshot.rest.begin(), snapshot.rest.begin() + static_cast<long>(size));
    if (!snapshot.rest.empty()) {
      const std::string next = "t" + std::to_string(++tokens_);
      page["metadata"]["continue"] = next;
      snapshots_[next] = std::move(snapshot);
    }
    return JsonReply(200, page);
  }

  absl::StatusOr<Response> Watch(const Request& request, const Transport::OnLine& on_line) {
    const std::string text = Parameter(request.path, "resourceVersion");
    int sent = 0;
    std::from_chars(text.data(), text.data() + text.size(), sent);
    clock_.Advance(std::chrono::milliseconds(Draw(3000)));
    if (!Honest() && Draw(5) == 0) Compact();
    if (!Honest() && Draw(6) == 0) return Trouble();
    if (sent < compacted_) {
      ++expired_;
      if (Draw(2) == 0) return Gone();
      on_line(Line("ERROR", StatusObject(410, "Expired", "too old resource version")));
      return Response{.status = 200};
    }
    while (true) {
      if (!Honest()) Change();
      // Some of what is due, in order.
      for (const Event& event : history_) {
        if (event.version <= sent) continue;
        if (!Honest() && Draw(8) == 0) break;
        sent = event.version;
        on_line(Line(event.type, Object(event.name, event.version)));
      }
      if (Honest() && sent == version_) break;
      if (Draw(6) == 0 && sent >= version_) on_line(Line("BOOKMARK", Object("", version_)));
      switch (Draw(12)) {
        case 0:
          return Response{.status = 200};
        case 1:
          return Trouble();
        case 2:
          ++expired_;
          on_line(Line("ERROR", StatusObject(410, "Expired", "too old resource version")));
          return Response{.status = 200};
        default:
          clock_.Advance(std::chrono::milliseconds(Draw(500)));
      }
    }
    quiet_();
    return Response{.status = 200};
  }
  static std::string Line(const std::string& type, const nlohmann::json& object) {
    return nlohmann::json{{"type", type}, {"object", object}}.dump();
  }

  InstantClock& clock_;
  std::mt19937 random_;
  int left_;
  std::function<void()> quiet_;
  std::map<std::string, int> truth_;
  std::vector<Event> history_;
  std::map<std::string, Snapshot> snapshots_;
  int version_ = 0;
  int compacted_ = 0;
  int tokens_ = 0;
  int lists_ = 0;
  int expired_ = 0;
};

}  // namespace hetero::kube
