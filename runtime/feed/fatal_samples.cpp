#include "runtime/feed/fatal_samples.h"

#include <algorithm>

namespace hetero::feed {

FatalSamples::~FatalSamples() {
  for (const Link* link = newest_; link != nullptr;) {
    const Link* const older = link->older;
    delete link;
    link = older;
  }
}

void FatalSamples::Add(const FatalSample& sample) {
  const base::MutexLock lock(adding_);
  if (count_ >= kMost || Find(sample.split, sample.id) != nullptr) return;
  ++count_;
  newest_ = new Link{sample, newest_};
}

const std::string* FatalSamples::Find(job::Split split, int64_t id) const {
  for (const Link* link = newest_; link != nullptr; link = link->older) {
    if (link->sample.split == split && link->sample.id == id) return &link->sample.reason;
  }
  return nullptr;
}

std::vector<FatalSample> FatalSamples::All() const {
  std::vector<FatalSample> all;
  for (const Link* link = newest_; link != nullptr; link = link->older) {
    all.push_back(link->sample);
  }
  std::reverse(all.begin(), all.end());
  return all;
}

}  // namespace hetero::feed
