#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/block_reader.h"
#include "runtime/source/sample_rule.h"
#include "runtime/source/shard_scan.h"
#include "runtime/source/tar.h"

// One sample of a WebDataset. Internal to web_dataset.
namespace hetero::source {

// "a/000.seg.PNG" is the field "seg.png" of the sample "a/000". An empty field: no file of a
// sample.
struct FieldName {
  std::string_view sample;
  std::string field;
};
FieldName FieldOf(std::string_view member);

// A label's name in a rule: a field, and for JSON a path in it ("/label"), else empty.
struct LabelPath {
  std::string field;
  std::string pointer;
};
LabelPath ParseLabelPath(const std::string& name);

// The numbers of a label that is no class, from the field's text. kDataLoss says what is there.
absl::Status ReadLabelNumbers(std::string_view text, const std::string& name,
                              const SampleRule& rule, std::vector<uint8_t>* numbers);

// The picture and the mask in the members that lie in `*bytes`: the picture's bytes are left
// there, and the mask's are copied into `*mask`. kDataLoss: one is missing, or these are no
// members.
absl::Status UnpackMembers(const SampleRule& rule, std::vector<uint8_t>* bytes,
                           std::vector<uint8_t>* mask);

// Gathers the files of a sample and finds its parts among them.
class SampleBuilder {
 public:
  SampleBuilder(BlockReader& archive, const SampleRule& rule) : archive_(archive), rule_(rule) {}

  // Takes a file; appends the sample before when the file begins another one.
  absl::Status Add(const TarMember& member, std::vector<SampleLocation>* samples);
  // Appends the last sample. With a mask, a location is of all bytes from the first part's header
  // on to the last part's end, which UnpackMembers() takes apart.
  absl::Status Finish(std::vector<SampleLocation>* samples);

 private:
  struct Part {
    std::string field;
    int64_t header = 0;
    int64_t offset = 0;
    int64_t size = 0;
  };

  const Part* Find(std::string_view field) const;
  absl::Status FindLabel(SampleLocation* location);
  SampleLocation WithMask(const Part& picture) const;
  absl::Status Error(std::string_view what, std::string_view remedy) const;
  std::string Fields() const;

  BlockReader& archive_;
  const SampleRule& rule_;
  std::string name_;
  int64_t begin_ = 0;
  std::vector<Part> parts_;
};

}  // namespace hetero::source
