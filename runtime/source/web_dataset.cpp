#include "runtime/source/web_dataset.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/source/sample_finder.h"
#include "runtime/source/sample_rule.h"
#include "runtime/source/shard_scan.h"
#include "runtime/source/sharded_dataset.h"
#include "runtime/source/tar.h"
#include "runtime/source/web_dataset_sample.h"

namespace hetero::source {
namespace {

constexpr UsualNames kUsual = {"jpg;png;jpeg", "cls", "json/label"};

class WebDataset : public ShardedDataset {
 public:
  explicit WebDataset(SampleRule rule) : rule_(std::move(rule)) {}

 protected:
  bool labels_are_classes() const override { return rule_.classes(); }

  absl::Status Unpack(const SampleLocation& location, RawSample* sample) const override {
    if (rule_.masks()) HETERO_RETURN_IF_ERROR(UnpackMembers(rule_, &sample->bytes, &sample->mask));
    HETERO_RETURN_IF_ERROR(FindEncoding("the picture", sample->bytes, &sample->encoding));
    if (location.label_length == 0) return absl::OkStatus();
    if (location.label_length > kMaxLabelBytes) {
      return absl::FailedPreconditionError("a label beyond all limits; make the index again");
    }
    std::string text(location.label_length, '\0');
    HETERO_RETURN_IF_ERROR(
        ReadBytes(location, location.offset + location.label,
                  absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
    // Which of several names it was is not kept; all but the path in a JSON are alike here.
    absl::Status status = absl::OkStatus();
    for (const std::string& name : rule_.label) {
      status = ReadLabelNumbers(text, name, rule_, &sample->fields);
      if (status.ok()) break;
    }
    return status;
  }

 private:
  const SampleRule rule_;
};

bool IsPackedName(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(absl::string_view(name.data(), name.size()));
  for (const char* ending : {".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"}) {
    if (absl::EndsWith(lower, ending)) return true;
  }
  return false;
}

// Packed archives are found as well: to be refused, not to be missing.
absl::Status CheckUnpacked(const storage::Store& store,
                           const std::vector<storage::Object>& shards) {
  for (const storage::Object& shard : shards) {
    if (!IsPackedName(shard.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        store.uri(), "/", shard.name,
        ": a compressed archive; samples inside cannot be read one by one. Unpack it to .tar "
        "(gunzip): pictures are compressed already"));
  }
  return absl::OkStatus();
}

// Finds the samples of an archive; the files that hold classes are read, whatever they are wanted
// for, to find those that are none.
ShardScan ArchiveScan(const SampleRule& rule) {
  return [&rule](BlockReader& archive, std::vector<SampleLocation>* samples) -> absl::Status {
    TarReader tar(archive);
    SampleBuilder builder(archive, rule);
    TarMember member;
    while (true) {
      HETERO_ASSIGN_OR_RETURN(const bool found, tar.Next(&member));
      if (!found) return builder.Finish(samples);
      HETERO_RETURN_IF_ERROR(builder.Add(member, samples));
    }
  };
}

}  // namespace

bool IsWebDatasetName(std::string_view name) {
  return absl::EndsWithIgnoreCase(absl::string_view(name.data(), name.size()), ".tar") ||
         IsPackedName(name);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenWebDataset(const ShardSource& shards,
                                                        const api::DatasetSource& source,
                                                        job::Split, const api::Label& label) {
  SampleRule rule = RuleOf(source, label, kUsual);
  for (std::string& name : rule.image) absl::AsciiStrToLower(&name);  // as the fields are
  for (std::string& name : rule.mask) absl::AsciiStrToLower(&name);
  IndexedShards archives{.format = "WebDataset", .rule = rule.Text()};
  HETERO_ASSIGN_OR_RETURN(archives.shards,
                          FindShards(shards, IsWebDatasetName, "archives of samples, *.tar"));
  HETERO_RETURN_IF_ERROR(CheckUnpacked(*shards.store, archives.shards));
  ShardedDataset::Contents contents;
  contents.store = shards.store;
  HETERO_ASSIGN_OR_RETURN(
      contents.samples,
      FindSamples(shards, {*shards.store, archives, rule.classes() && !source.classes,
                           [&rule](bool) { return ArchiveScan(rule); }}));
  contents.shards = std::move(archives.shards);
  contents.rule = std::move(archives.rule);
  auto dataset = std::make_unique<WebDataset>(rule);
  HETERO_RETURN_IF_ERROR(dataset->Fill("WebDataset", std::move(contents), source,
                                       rule.classes() ? ShardedDataset::kCountClasses : 0));
  return dataset;
}

}  // namespace hetero::source
