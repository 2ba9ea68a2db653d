#include "runtime/source/index_place.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "api/enums.h"
#include "base/status_macros.h"
#include "runtime/source/in_parallel.h"
#include "runtime/source/nameless_file.h"
#include "runtime/source/shard_source.h"
#include "runtime/source/uri.h"
#include "runtime/storage/object_uri.h"

namespace hetero::source {
namespace {

constexpr int64_t kPiece = int64_t{8} << 20;
constexpr int kTries = 3;
constexpr char kUsualName[] = "/_index.hetero";

// As a shell takes it for one word.
std::string Word(const std::string& text) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_-./:=,@%+", c);
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Where an index of what this URI names is best put: a file's beside the file, under its name, so
// that files of one folder do not share one. Nobody writes to a web server.
std::string UsualUri(const std::string& uri) {
  if (IsWebUri(uri)) return absl::StrCat("file:///FOLDER", kUsualName);
  if (const std::optional<NamedFiles> one = AsOneFile(uri)) {
    return absl::StrCat(one->folder, "/_", one->names.front(), ".hetero");
  }
  const absl::StatusOr<NamedFiles> named = ExpandRanges(uri);
  const std::string& folder = named.ok() ? named->folder : uri;
  return absl::StrCat(absl::StripSuffix(folder, "/"), kUsualName);
}

absl::StatusOr<storage::FileDescriptor> Fetch(const storage::Store& store,
                                              const std::string& name) {
  HETERO_ASSIGN_OR_RETURN(const storage::Object object, store.Head(name));
  std::vector<uint8_t> head(static_cast<size_t>(std::min(object.size, kIndexHead)));
  HETERO_RETURN_IF_ERROR(store.Read(object, 0, absl::MakeSpan(head)));
  HETERO_RETURN_IF_ERROR(CheckIndexHead(head, object.size, absl::StrCat(store.uri(), "/", name)));
  HETERO_ASSIGN_OR_RETURN(NamelessFile file, NamelessFile::Create());
  const auto pieces = static_cast<size_t>((object.size + kPiece - 1) / kPiece);
  HETERO_RETURN_IF_ERROR(InParallel(pieces, [&](size_t i) -> absl::Status {
    const int64_t at = static_cast<int64_t>(i) * kPiece;
    std::vector<uint8_t> piece(static_cast<size_t>(std::min(kPiece, object.size - at)));
    HETERO_RETURN_IF_ERROR(store.Read(object, at, absl::MakeSpan(piece)));
    const absl::Status written = file.WriteAt(at, piece);
    if (written.ok()) return written;
    return absl::Status(written.code(),
                        absl::StrCat(written.message(), "; a copy of ", store.uri(), "/", name,
                                     " takes ", object.size, " bytes there"));
  }));
  return std::move(file).Release();
}

}  // namespace

std::string IndexCommand(const api::DatasetSource& source, const api::Label& label,
                         const std::string& uri, bool with_storage) {
  std::string command = absl::StrCat("hetero-runtime index ", Word(source.uri));
  const auto add = [&command](const std::string& option, const std::string& value) {
    absl::StrAppend(&command, " ", option, " ", Word(value));
  };
  if (!uri.empty()) {
    absl::StrAppend(&command, " ", Word(uri));
  } else {
    absl::StrAppend(&command, " ", Word(UsualUri(source.uri)));
  }
  if (source.format != api::DatasetFormat::kAuto) {
    add("--format", std::string(api::NameOf(source.format)));
  }
  const api::SampleFields& fields = source.fields;
  if (!fields.image.empty()) add("--image", fields.image);
  if (!fields.label.field.empty()) add("--label", fields.label.field);
  if (fields.label.offset) add("--label-offset", absl::StrCat(*fields.label.offset));
  if (!fields.mask.empty()) add("--mask", fields.mask);
  if (label.type != api::LabelType::kClass) {
    add("--label-type", std::string(api::NameOf(label.type)));
  }
  if (!label.field.empty()) add("--label-field", label.field);
  if (!label.shape.empty()) add("--label-shape", absl::StrJoin(label.shape, ","));
  if (with_storage) absl::StrAppend(&command, " --storage JOB.yaml");
  return command;
}

absl::Status CheckIndexUri(const api::DatasetSource& source, const std::string& uri) {
  HETERO_RETURN_IF_ERROR(storage::ParseObjectUri(uri).status());
  if (!absl::StartsWith(uri, "file://") && !absl::StartsWith(uri, "s3://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("an index at ", uri, ": write it to file:///folder/name or s3://bucket/key"));
  }
  HETERO_ASSIGN_OR_RETURN(const NamedFiles named, ExpandRanges(source.uri));
  const std::string root = absl::StrCat(absl::StripSuffix(named.folder, "/"), "/");
  if (!named.names.empty() || !absl::StartsWith(uri, root)) return absl::OkStatus();
  for (const absl::string_view part : absl::StrSplit(uri.substr(root.size()), '/')) {
    if (absl::StartsWith(part, "_") || absl::StartsWith(part, ".")) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("an index at ", uri, ": lies in the dataset's folder, where it would be taken ",
                   "for one of the files; name it ", absl::StripSuffix(root, "/"), kUsualName));
}

absl::StatusOr<storage::FileDescriptor> OpenIndex(const std::string& uri,
                                                  const storage::Stores& stores) {
  absl::string_view path = uri;
  if (absl::ConsumePrefix(&path, "file://")) {
    // Without waiting: it may be a pipe to which nobody writes.
    storage::FileDescriptor file(
        open(std::string(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.ok()) return file;
    return absl::ErrnoToStatus(errno, absl::StrCat(uri, ": cannot be opened"));
  }
  HETERO_ASSIGN_OR_RETURN(const storage::ObjectUri named, storage::ParseObjectUri(uri));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::Store> store, stores.OpenRootOf(named));
  for (int tries = 1;; ++tries) {
    absl::StatusOr<storage::FileDescriptor> file = Fetch(*store, named.name);
    // Others may write the same index at this moment.
    if (!absl::IsFailedPrecondition(file.status()) || tries == kTries) return file;
  }
}

absl::Status CheckIndexOutput(const std::string& uri, const storage::Stores& stores) {
  HETERO_ASSIGN_OR_RETURN(const storage::ObjectUri named, storage::ParseObjectUri(uri));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::WritableStore> store,
                          stores.OpenWritableRootOf(named));
  const std::string probe = absl::StrCat(named.name, ".probe");
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectWriter> writer,
                          store->Create(probe));
  const uint8_t byte = 0;
  HETERO_RETURN_IF_ERROR(writer->Append({&byte, 1}));
  HETERO_RETURN_IF_ERROR(writer->Close().status());
  store->Delete(probe).IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<IndexOutput> IndexOutput::Create(const std::string& uri,
                                                const storage::Stores& stores) {
  IndexOutput output;
  HETERO_ASSIGN_OR_RETURN(const storage::ObjectUri named, storage::ParseObjectUri(uri));
  HETERO_ASSIGN_OR_RETURN(output.store_, stores.OpenWritableRootOf(named));
  HETERO_ASSIGN_OR_RETURN(output.writer_, output.store_->Create(named.name));
  return output;
}

absl::Status IndexOutput::Write(const IndexedShards& shards,
                                absl::Span<const SampleLocation> samples) {
  HETERO_RETURN_IF_ERROR(WriteIndex(shards, samples, *writer_));
  return writer_->Close().status();
}

}  // namespace hetero::source
