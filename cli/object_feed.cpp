#include "cli/object_feed.h"

#include <algorithm>

#include "base/json_access.h"
#include "base/thread.h"

namespace hetero::cli {

ObjectFeed::ObjectFeed(kube::Client& client, base::Clock& clock, kube::Watcher::Options options)
    : clock_(clock),
      watcher_(
          client, clock, registry_, std::move(options),
          {.list_begins =
               [this] {
                 const base::MutexLock lock(mutex_);
                 for (const auto& [key, object] : objects_) unlisted_.insert(key);
               },
           .apply = [this](nlohmann::json object) { Apply(std::move(object)); },
           .remove = [this](const nlohmann::json& object) { Remove(kube::ObjectKey::Of(object)); },
           .list_ends = [this] { EndList(); },
           .trouble = [this](const absl::Status& status) { SetTrouble(status); }}),
      thread_([this](std::stop_token stop) {
        base::SetThreadName("feed");
        watcher_.Run(std::move(stop));
      }) {}

ObjectFeed::~ObjectFeed() = default;

bool ObjectFeed::synced() const {
  const base::MutexLock lock(mutex_);
  return synced_;
}

int64_t ObjectFeed::version() const {
  const base::MutexLock lock(mutex_);
  return version_;
}

std::vector<nlohmann::json> ObjectFeed::Objects() const {
  const base::MutexLock lock(mutex_);
  std::vector<nlohmann::json> objects;
  for (const auto& [key, object] : objects_) objects.push_back(object);
  return objects;
}

std::pair<absl::Status, base::Instant> ObjectFeed::trouble() const {
  const base::MutexLock lock(mutex_);
  return {trouble_, trouble_since_};
}

void ObjectFeed::Apply(nlohmann::json object) {
  const kube::ObjectKey key = kube::ObjectKey::Of(object);
  const base::MutexLock lock(mutex_);
  unlisted_.erase(key);
  nlohmann::json& known = objects_[key];
  if (known == object) return;
  known = std::move(object);
  ++version_;
}

void ObjectFeed::Remove(const kube::ObjectKey& key) {
  const base::MutexLock lock(mutex_);
  if (objects_.erase(key) == 0) return;
  ++version_;
}

void ObjectFeed::EndList() {
  std::set<kube::ObjectKey> gone;
  {
    const base::MutexLock lock(mutex_);
    gone.swap(unlisted_);
    synced_ = true;
    ++version_;
  }
  for (const kube::ObjectKey& key : gone) Remove(key);
}

void ObjectFeed::SetTrouble(const absl::Status& status) {
  const base::MutexLock lock(mutex_);
  if (status.ok() && trouble_.ok()) return;
  if (trouble_.ok()) trouble_since_ = clock_.Now();
  trouble_ = status;
  ++version_;
}

std::vector<FeedChanges::Change> FeedChanges::Take() {
  if (!feed_.synced()) return {};
  // Before the objects: what changes after it is looked for again.
  const int64_t version = feed_.version();
  if (version == version_) return {};
  version_ = version;
  std::vector<Change> changes;
  std::map<kube::ObjectKey, nlohmann::json> before = std::exchange(objects_, {});
  for (nlohmann::json& object : feed_.Objects()) {
    const kube::ObjectKey key = kube::ObjectKey::Of(object);
    const auto known = before.find(key);
    if (known == before.end() || known->second != object) changes.push_back({.object = object});
    if (known != before.end()) before.erase(known);
    objects_.emplace(key, std::move(object));
  }
  for (auto& [key, object] : before) changes.push_back({.object = std::move(object), .gone = true});
  return changes;
}

}  // namespace hetero::cli
