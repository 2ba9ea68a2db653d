#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/source/manifest_entry.h"

namespace hetero::source {
namespace {

using nlohmann::json;

// The parser keeps a text until it ends, so it is ended where none is so long.
class ListBytes {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  ListBytes() = default;
  ListBytes(ByteStream* text, const int64_t* limit) : text_(text), limit_(limit) {}

  char operator*() const { return static_cast<char>(text_->Peek()); }
  ListBytes& operator++() {
    text_->Next();
    return *this;
  }
  // With the end, which alone is asked.
  bool operator==(const ListBytes&) const {
    return text_->offset() >= *limit_ || text_->Peek() == ByteStream::kEnd;
  }
  bool operator!=(const ListBytes& other) const { return !(*this == other); }

 private:
  ByteStream* text_ = nullptr;
  const int64_t* limit_ = nullptr;
};

// Takes what the parser meets: nothing is deeper than the object with the prefix.
class ListTaker : public nlohmann::json_sax<json> {
 public:
  ListTaker(ByteStream& text, const SampleRule& rule, const ManifestSink& sink)
      : text_(text), rule_(rule), sink_(sink) {}

  const int64_t* limit() const { return &limit_; }
  const absl::Status& status() const { return status_; }

  bool start_array(size_t) override {
    return depth_++ == 0 ? Go() : Wrong("is a list; paths stand in one list alone");
  }
  bool end_array() override {
    --depth_;
    return Go();
  }
  bool start_object(size_t) override {
    if (depth_ == 1 && next_ == 0 && !has_prefix_) {
      ++depth_;
      return Go();
    }
    return Wrong(R"(is an object; {"prefix": "s3://bucket/folder/"} stands before all paths)");
  }
  bool end_object() override {
    --depth_;
    return has_prefix_ ? Go() : Wrong(R"(is an object without "prefix")");
  }
  bool key(string_t& name) override {
    return name == "prefix" ? Go() : Wrong(absl::StrCat("has \"", name, "\" beside \"prefix\""));
  }
  bool string(string_t& text) override {
    if (depth_ == 2) {
      has_prefix_ = true;
      prefix_ = text;
      return Go();
    }
    return depth_ == 1 ? TakePath(text) : Wrong("is no list of paths");
  }

  bool null() override { return NoText("null"); }
  bool boolean(bool) override { return NoText("a boolean"); }
  bool number_integer(number_integer_t) override { return NoText("a number"); }
  bool number_unsigned(number_unsigned_t) override { return NoText("a number"); }
  bool number_float(number_float_t, const string_t&) override { return NoText("a number"); }
  bool binary(binary_t&) override { return NoText("binary"); }
  bool parse_error(size_t, const std::string&, const json::exception&) override {
    if (text_.offset() >= limit_) {
      return Wrong(absl::StrCat("has more than ", kMostEntryBytes, " bytes"));
    }
    return Wrong("is no JSON, or the file is cut short");
  }

 private:
  int64_t place() const { return next_ + (has_prefix_ ? 1 : 0); }
  // The limit of what comes next.
  bool Go() {
    limit_ = text_.offset() + static_cast<int64_t>(kMostEntryBytes);
    return true;
  }
  bool Wrong(std::string_view what) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat(absl::string_view(what.data(), what.size()), "; write [",
                     R"({"prefix": "s3://bucket/folder/"}, "cat/a.jpg", ...])")));
  }
  bool NoText(absl::string_view what) { return Wrong(absl::StrCat("is ", what, ", not a path")); }
  bool Fail(const absl::Status& status) {
    status_ =
        absl::Status(status.code(), absl::StrCat(text_.where(), ": byte ", text_.offset(),
                                                 ": element ", place(), " ", status.message()));
    return false;
  }

  bool TakePath(std::string_view element) {
    absl::string_view text(element.data(), element.size());
    while (absl::ConsumePrefix(&text, "./")) {
    }
    const bool whole = absl::StrContains(text, "://");
    entry_.path = whole ? std::string(text) : absl::StrCat(prefix_, text);
    if (rule_.classes()) {
      absl::string_view below = text;
      if (whole && (prefix_.empty() || !absl::ConsumePrefix(&below, prefix_))) {
        return Fail(absl::InvalidArgumentError(absl::StrCat(
            "is ", text, ", which is not below the prefix, so nothing says its class; name the ",
            "folder of all classes as prefix, or use JSON lines or CSV, which have labels")));
      }
      const size_t slash = below.find('/');
      if (slash == absl::string_view::npos || slash == 0) {
        return Fail(absl::InvalidArgumentError(absl::StrCat(
            "is ", text, ", which lies in no folder that would be its class; move it into one, or ",
            "set dataset.label.type: None")));
      }
      entry_.label = std::string(below.substr(0, slash));
      entry_.label_is_folder = true;
    }
    entry_.line = place();
    const absl::Status taken = sink_(entry_);
    if (!taken.ok()) return Fail(taken);
    ++next_;
    return Go();
  }

  ByteStream& text_;
  const SampleRule& rule_;
  const ManifestSink& sink_;
  int64_t limit_ = static_cast<int64_t>(kMostEntryBytes);  // an offset in text_
  int depth_ = 0;
  bool has_prefix_ = false;
  std::string prefix_;
  ManifestEntry entry_;
  int64_t next_ = 0;  // paths before this one
  absl::Status status_;
};

}  // namespace

absl::Status ReadManifestList(ByteStream& text, const SampleRule& rule, const ManifestSink& sink) {
  if (rule.kind.numbers()) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.where(),
                     ": line 1: a list of paths has no labels that are numbers; use JSON lines or "
                     "CSV, or set dataset.label.type: None"));
  }
  ListTaker taker(text, rule, sink);
  json::sax_parse(ListBytes(&text, taker.limit()), ListBytes(), &taker);
  return text.status().ok() ? taker.status() : text.status();
}

}  // namespace hetero::source
