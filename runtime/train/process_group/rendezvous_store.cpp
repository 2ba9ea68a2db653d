#include "runtime/train/process_group/rendezvous_store.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hetero::train {
namespace {

// A wait asks in slices of this, so that a stop request is seen while a peer is missing.
constexpr base::Duration kSlice = std::chrono::milliseconds(200);

void ThrowIfError(const absl::Status& status, const std::string& what) {
  TORCH_CHECK_WITH(DistStoreError, status.ok(), what, ": ", status.ToString());
}

std::string ToString(const std::vector<uint8_t>& bytes) {
  return std::string(bytes.begin(), bytes.end());
}

std::vector<uint8_t> ToBytes(const std::string& text) {
  return std::vector<uint8_t>(text.begin(), text.end());
}

// Calls `ask(slice)` until it gives anything but kDeadlineExceeded, `stop` or `timeout`.
template <typename Ask>
absl::Status AskInSlices(base::Clock& clock, std::stop_token stop, base::Duration timeout,
                         Ask ask) {
  const base::Instant deadline = clock.Now() + timeout;
  while (!stop.stop_requested()) {
    const base::Duration left = deadline - clock.Now();
    absl::Status status = ask(std::clamp(left, base::Duration::zero(), kSlice));
    if (!absl::IsDeadlineExceeded(status) || left <= kSlice) return status;
  }
  return absl::CancelledError("a stop was requested");
}

}  // namespace

RendezvousStore::RendezvousStore(std::shared_ptr<KeyValueStore> store, std::string prefix,
                                 base::Clock& clock, std::stop_token stop,
                                 std::chrono::milliseconds timeout)
    : c10d::Store(timeout),
      store_(std::move(store)),
      prefix_(std::move(prefix)),
      clock_(clock),
      stop_(std::move(stop)) {}

c10::intrusive_ptr<c10d::Store> RendezvousStore::clone() {
  return c10::make_intrusive<RendezvousStore>(store_, prefix_, clock_, stop_, timeout_);
}

std::vector<std::string> RendezvousStore::Prefixed(const std::vector<std::string>& keys) const {
  std::vector<std::string> prefixed;
  prefixed.reserve(keys.size());
  for (const std::string& key : keys) prefixed.push_back(Prefixed(key));
  return prefixed;
}

void RendezvousStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  ThrowIfError(store_->Set(Prefixed(key), ToString(value)), absl::StrCat("rendezvous: set ", key));
}

std::vector<uint8_t> RendezvousStore::get(const std::string& key) {
  absl::StatusOr<std::string> value = absl::InternalError("not asked");
  const absl::Status status = AskInSlices(clock_, stop_, timeout_, [&](base::Duration slice) {
    value = store_->Get(Prefixed(key), slice);
    return value.status();
  });
  ThrowIfError(status, absl::StrCat("rendezvous: get ", key));
  return ToBytes(*value);
}

std::vector<uint8_t> RendezvousStore::compareSet(const std::string& key,
                                                 const std::vector<uint8_t>& expected,
                                                 const std::vector<uint8_t>& desired) {
  auto value = store_->CompareSet(Prefixed(key), ToString(expected), ToString(desired));
  ThrowIfError(value.status(), absl::StrCat("rendezvous: compare and set ", key));
  return ToBytes(*value);
}

int64_t RendezvousStore::add(const std::string& key, int64_t value) {
  auto sum = store_->Add(Prefixed(key), value);
  ThrowIfError(sum.status(), absl::StrCat("rendezvous: add to ", key));
  return *sum;
}

bool RendezvousStore::deleteKey(const std::string& key) {
  auto deleted = store_->Delete(Prefixed(key));
  ThrowIfError(deleted.status(), absl::StrCat("rendezvous: delete ", key));
  return *deleted;
}

bool RendezvousStore::check(const std::vector<std::string>& keys) {
  auto present = store_->Check(Prefixed(keys));
  ThrowIfError(present.status(), absl::StrCat("rendezvous: check ", absl::StrJoin(keys, ", ")));
  return *present;
}

int64_t RendezvousStore::getNumKeys() {
  auto count = store_->CountKeys();
  ThrowIfError(count.status(), "rendezvous: count keys");
  return *count;
}

void RendezvousStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void RendezvousStore::wait(const std::vector<std::string>& keys,
                           const std::chrono::milliseconds& timeout) {
  const std::vector<std::string> prefixed = Prefixed(keys);
  // LibTorch asks for up to its own default of 300 s; a group that takes longer than ours is
  // abandoned.
  const base::Duration limit = std::min(timeout, timeout_);
  const absl::Status status = AskInSlices(
      clock_, stop_, limit, [&](base::Duration slice) { return store_->Wait(prefixed, slice); });
  ThrowIfError(status, absl::StrCat("rendezvous: wait for ", absl::StrJoin(keys, ", ")));
}

}  // namespace hetero::train
