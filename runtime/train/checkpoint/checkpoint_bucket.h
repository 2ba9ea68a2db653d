#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/storage/writable_store.h"
#include "runtime/train/checkpoint/checkpoint_place.h"

namespace hetero::train {

// Checkpoints below a store's root, "s3://bucket/prefix". Each has a name that nobody else picks,
// so a writer that has lost its place and does not know yet writes over none. What has no DONE is
// none yet, or one that is being removed.
class CheckpointBucket : public CheckpointPlace {
 public:
  // Asked before each object; after an error nothing is written any more.
  using MayWrite = std::function<absl::Status()>;

  // `alone`: nobody else writes there, so what has no DONE is left over.
  CheckpointBucket(std::unique_ptr<storage::WritableStore> store, MayWrite may_write, bool alone)
      : store_(std::move(store)), may_write_(std::move(may_write)), alone_(alone) {}

  std::string UriOf(const std::string& checkpoint) const override { return checkpoint; }

 protected:
  const std::string& name() const override { return store_->uri(); }
  std::string Where(const std::string& checkpoint) const override;
  bool Replaces() const override { return false; }
  std::string Suffix() const override;
  bool IsOfPlace(const absl::Status& status) const override;
  absl::StatusOr<std::vector<std::string>> Names() const override;
  absl::StatusOr<int64_t> SizeOf(const std::string& checkpoint,
                                 const std::string& file) const override;
  absl::StatusOr<std::string> Read(const std::string& checkpoint, const std::string& file,
                                   int64_t most) const override;
  absl::Status WriteAll(const std::string& checkpoint, const CheckpointFiles& files) const override;
  absl::Status Remove(const std::string& checkpoint) const override;
  absl::Status RemoveLeftovers() const override;

 private:
  // Those with DONE, or those without.
  absl::StatusOr<std::vector<std::string>> NamesOf(bool whole) const;
  absl::StatusOr<storage::Object> HeadOf(const std::string& checkpoint,
                                         const std::string& file) const;
  absl::Status WriteObject(const std::string& name, const std::string& bytes) const;

  const std::unique_ptr<storage::WritableStore> store_;
  const MayWrite may_write_;
  const bool alone_;
};

}  // namespace hetero::train
