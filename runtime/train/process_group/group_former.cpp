#include "runtime/train/process_group/group_former.h"

#include <exception>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace hetero::train {
namespace {

struct Attempt {
  base::Mutex mutex;
  base::CondVar ended;
  bool over ABSL_GUARDED_BY(mutex) = false;
  bool given_up ABSL_GUARDED_BY(mutex) = false;
  std::shared_ptr<GlooGroup> group ABSL_GUARDED_BY(mutex);
  std::exception_ptr error ABSL_GUARDED_BY(mutex);
};

}  // namespace

std::shared_ptr<GlooGroup> GroupFormer::Form(const GlooGroup::Options& options,
                                             std::shared_ptr<KeyValueStore> store,
                                             std::stop_token interrupt) {
  auto attempt = std::make_shared<Attempt>();
  std::jthread thread([attempt, options, store = std::move(store), interrupt, &clock = clock_] {
    base::SetThreadName("form-group");
    std::shared_ptr<GlooGroup> group;
    std::exception_ptr error;
    try {
      group = std::make_shared<GlooGroup>(options, store, clock, interrupt);
    } catch (...) {
      error = std::current_exception();
    }
    const base::MutexLock lock(attempt->mutex);
    attempt->over = true;
    attempt->error = error;
    if (!attempt->given_up) attempt->group = std::move(group);
    attempt->ended.NotifyAll();
  });
  base::MutexLock lock(attempt->mutex);
  const bool over = attempt->ended.Wait(
      attempt->mutex, interrupt,
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(attempt->mutex) { return attempt->over; });
  if (!over) {
    attempt->given_up = true;
    lock.Unlock();
    log::Info("gave up forming a process group", {{"generation", options.generation}});
    thread.detach();
    return nullptr;
  }
  const std::exception_ptr error = attempt->error;
  std::shared_ptr<GlooGroup> group = std::move(attempt->group);
  lock.Unlock();
  thread.join();
  if (error) std::rethrow_exception(error);
  return group;
}

}  // namespace hetero::train
