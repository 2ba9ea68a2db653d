#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/controller/manager.h"
#include "operator/kube/informer.h"

namespace hetero::program {

// One kind of object in all namespaces, or in some: then one Informer each (a service account with
// rights in these alone may not list all), whose stores are joined into one. Values are shared, not
// copied.
template <typename T>
class NamespacedInformer {
 public:
  using Informer = kube::Informer<T>;

  // `options.name_space` is ignored. `namespaces` empty: all. `on_change` runs on the informers'
  // threads, one per namespace.
  NamespacedInformer(kube::Client& client, base::Clock& clock, metrics::Registry& registry,
                     kube::Watcher::Options options, const std::vector<std::string>& namespaces,
                     typename Informer::Project project, typename Informer::OnChange on_change,
                     typename kube::Store<T>::Index index = nullptr)
      : plural_(options.resource.plural), namespaces_(namespaces), joined_(index) {
    if (namespaces.size() <= 1) {
      options.name_space = namespaces.empty() ? "" : namespaces.front();
      informers_.push_back(std::make_unique<Informer>(client, clock, registry, std::move(options),
                                                      std::move(project), std::move(on_change),
                                                      std::move(index)));
      return;
    }
    const auto join = [this, on_change](const kube::ObjectKey& key,
                                        const typename Informer::Value& before,
                                        const typename Informer::Value& now) {
      joined_.Put(key, now);
      on_change(key, before, now);
    };
    for (const std::string& name_space : namespaces) {
      options.name_space = name_space;
      informers_.push_back(
          std::make_unique<Informer>(client, clock, registry, options, project, join));
    }
  }

  const kube::Store<T>& store() const {
    return informers_.size() == 1 ? informers_.front()->store() : joined_;
  }
  // The server knows the kind, as far as that namespace goes.
  bool served(const std::string& name_space) const {
    if (informers_.size() == 1) return informers_.front()->served();
    const auto found = std::find(namespaces_.begin(), namespaces_.end(), name_space);
    return found != namespaces_.end() && informers_[found - namespaces_.begin()]->served();
  }
  // Once, before the manager starts; both live as long as it runs.
  void AddTo(controller::Manager& manager, const std::vector<std::string>& namespaces) {
    for (size_t i = 0; i < informers_.size(); ++i) {
      Informer* const informer = informers_[i].get();
      const std::string name = i < namespaces.size() ? plural_ + " in " + namespaces[i] : plural_;
      manager.AddCache(
          name, [informer](std::stop_token stop) { informer->Run(std::move(stop)); },
          [informer] { return informer->synced(); });
    }
  }

 private:
  const std::string plural_;
  const std::vector<std::string> namespaces_;  // in the order of informers_; empty: all
  kube::Store<T> joined_;  // of several informers; each writes its own namespace's keys
  std::vector<std::unique_ptr<Informer>> informers_;
};

}  // namespace hetero::program
