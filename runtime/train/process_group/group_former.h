#pragma once

#include <memory>
#include <stop_token>

#include "base/clock.h"
#include "runtime/train/process_group/gloo_group.h"
#include "runtime/train/process_group/key_value_store.h"

namespace hetero::train {

// Forms process groups so that forming can be given up at any moment. When a rank dies while the
// others connect, Gloo waits for its connection and looks at nothing else; such an attempt is left
// to a thread of its own, where it ends with Gloo's time-out at the latest, and the next group
// forms meanwhile. Such a thread owns all it needs except the clock, which must never be destroyed,
// and nothing waits for it: a process that is done leaves without (see main.cpp). Belongs to one
// thread.
class GroupFormer {
 public:
  explicit GroupFormer(base::Clock& clock) : clock_(clock) {}

  // Null when `interrupt` was requested first. Throws what GlooGroup's constructor throws.
  std::shared_ptr<GlooGroup> Form(const GlooGroup::Options& options,
                                  std::shared_ptr<KeyValueStore> store, std::stop_token interrupt);

 private:
  base::Clock& clock_;
};

}  // namespace hetero::train
