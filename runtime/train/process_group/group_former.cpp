#include "runtime/train/process_group/group_former.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace hetero::train {
namespace {

struct Attempt {
  std::mutex mutex;  // guards all below
  std::condition_variable_any ended;
  bool over = false;
  bool given_up = false;
  std::shared_ptr<GlooGroup> group;
  std::exception_ptr error;
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
    const std::lock_guard lock(attempt->mutex);
    attempt->over = true;
    attempt->error = error;
    if (!attempt->given_up) attempt->group = std::move(group);
    attempt->ended.notify_all();
  });
  std::unique_lock lock(attempt->mutex);
  const bool over = attempt->ended.wait(lock, interrupt, [&] { return attempt->over; });
  if (!over) {
    attempt->given_up = true;
    lock.unlock();
    log::Info("gave up forming a process group", {{"generation", options.generation}});
    thread.detach();
    return nullptr;
  }
  lock.unlock();
  thread.join();
  if (attempt->error) std::rethrow_exception(attempt->error);
  return std::move(attempt->group);
}

}  // namespace hetero::train
