#include "runtime/train/checkpoint/checkpoint_bucket.h"

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace hetero::train {
namespace {

constexpr size_t kBlock = size_t{16} << 20;  // of an object that is read, at once

std::string ObjectName(const std::string& checkpoint, const std::string& file) {
  return absl::StrCat(checkpoint, "/", file);
}

}  // namespace

std::string CheckpointBucket::Where(const std::string& checkpoint) const {
  return absl::StrCat(store_->uri(), "/", checkpoint);
}

std::string CheckpointBucket::Suffix() const {
  return absl::StrCat("-", std::random_device()() & 0x7fffffff);
}

bool CheckpointBucket::IsOfPlace(const absl::Status& status) const {
  return !status.ok() && !absl::IsNotFound(status) && !absl::IsDataLoss(status) &&
         !absl::IsOutOfRange(status) && !absl::IsFailedPrecondition(status);
}

absl::StatusOr<std::vector<std::string>> CheckpointBucket::NamesOf(bool whole) const {
  const absl::StatusOr<std::vector<storage::Object>> objects = store_->List(kCheckpointPrefix);
  // A place without checkpoints is an empty list; kNotFound would mean that there are none.
  if (absl::IsNotFound(objects.status())) return absl::UnavailableError(objects.status().message());
  HETERO_RETURN_IF_ERROR(objects.status());
  std::map<std::string, bool> found;  // whether DONE is there, by name
  for (const storage::Object& object : *objects) {
    const size_t slash = object.name.find('/');
    const std::string name = object.name.substr(0, slash);
    if (slash == std::string::npos || StepOfCheckpoint(name) < 0) continue;
    found[name] |= object.name.substr(slash + 1) == kCheckpointDone;
  }
  std::vector<std::string> names;
  for (const auto& [name, done] : found) {
    if (done == whole) names.push_back(name);
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> CheckpointBucket::Names() const {
  return NamesOf(/*whole=*/true);
}

absl::Status CheckpointBucket::RemoveLeftovers() const {
  if (!alone_) return absl::OkStatus();
  HETERO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOf(/*whole=*/false));
  absl::Status first_error;
  for (const std::string& name : names) {
    // Listings of some servers lag behind what was written.
    const absl::Status done = HeadOf(name, kCheckpointDone).status();
    if (absl::IsNotFound(done)) first_error.Update(Remove(name));
  }
  return first_error;
}

absl::StatusOr<storage::Object> CheckpointBucket::HeadOf(const std::string& checkpoint,
                                                         const std::string& file) const {
  absl::StatusOr<storage::Object> object = store_->Head(ObjectName(checkpoint, file));
  // Of what the server says, not of the checkpoint.
  if (absl::IsDataLoss(object.status())) return absl::InternalError(object.status().message());
  return object;
}

absl::StatusOr<int64_t> CheckpointBucket::SizeOf(const std::string& checkpoint,
                                                 const std::string& file) const {
  HETERO_ASSIGN_OR_RETURN(const storage::Object object, HeadOf(checkpoint, file));
  return object.size;
}

absl::StatusOr<std::string> CheckpointBucket::Read(const std::string& checkpoint,
                                                   const std::string& file, int64_t most) const {
  HETERO_ASSIGN_OR_RETURN(const storage::Object object, HeadOf(checkpoint, file));
  if (object.size > most) {
    return absl::OutOfRangeError(
        absl::StrCat(Where(object.name), " has ", object.size, " bytes, more than ", most));
  }
  std::string bytes(static_cast<size_t>(object.size), '\0');
  const absl::Span<uint8_t> all(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
  for (size_t at = 0; at < all.size(); at += kBlock) {
    HETERO_RETURN_IF_ERROR(store_->Read(object, static_cast<int64_t>(at), all.subspan(at, kBlock)));
  }
  return bytes;
}

absl::Status CheckpointBucket::WriteObject(const std::string& name,
                                           const std::string& bytes) const {
  HETERO_RETURN_IF_ERROR(may_write_());
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectWriter> writer,
                          store_->Create(name));
  HETERO_RETURN_IF_ERROR(
      writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  HETERO_RETURN_IF_ERROR(may_write_());
  return writer->Close().status();
}

absl::Status CheckpointBucket::WriteAll(const std::string& checkpoint,
                                        const CheckpointFiles& files) const {
  for (const auto& [file, bytes] : files) {
    const absl::Status written = WriteObject(ObjectName(checkpoint, file), bytes);
    if (written.ok()) continue;
    if (may_write_().ok()) Remove(checkpoint).IgnoreError();  // else it may be another's by now
    return written;
  }
  return absl::OkStatus();
}

// DONE first: what is removed in part is none.
absl::Status CheckpointBucket::Remove(const std::string& checkpoint) const {
  HETERO_RETURN_IF_ERROR(may_write_());
  HETERO_RETURN_IF_ERROR(store_->Delete(ObjectName(checkpoint, kCheckpointDone)));
  HETERO_ASSIGN_OR_RETURN(const std::vector<storage::Object> objects,
                          store_->List(ObjectName(checkpoint, "")));
  for (const storage::Object& object : objects) {
    HETERO_RETURN_IF_ERROR(may_write_());
    HETERO_RETURN_IF_ERROR(store_->Delete(object.name));
  }
  return absl::OkStatus();
}

}  // namespace hetero::train
