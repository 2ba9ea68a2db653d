#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/storage/writable_store.h"

namespace hetero::storage {

// The folder at `path`, an absolute path, as "file://<path>".
//
// Objects are its regular files, at any depth, hidden ones too; links are followed, to wherever
// they lead, because whoever can put a link there chose what is in the dataset. Links into a folder
// above themselves and links that lead nowhere are passed over, and so are devices and sockets.
// Names are the bytes of the path below the root, and no name leaves it. A version is the time of
// the file's last change. Whatever has ".hetero-writing-" in its last part is no object: what a
// writer that was killed has left.
//
// A write is synced: after OK it survives a power cut. The conditional ones hold a lock (flock) on
// the file that they replace: they exclude each other on one machine, and on NFS where it passes
// locks on.
//
// kNotFound: there is no folder at `path`.
absl::StatusOr<std::unique_ptr<WritableStore>> OpenFileStore(const std::string& path);

}  // namespace hetero::storage
