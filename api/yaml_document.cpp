#include "api/yaml_document.h"

#include <charconv>
#include <set>
#include <sstream>
#include <utility>

#include "api/field_table.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace hetero::api {
namespace {

using nlohmann::json;

// An API server stores objects of at most 1.5 MiB; the other two bound what aliases can expand to.
constexpr size_t kMaxBytes = 3 << 20;
constexpr int kMaxNodes = 200'000;
constexpr int kMaxDepth = 100;

std::string LineColumn(const YAML::Mark& mark) {
  if (mark.is_null()) return "manifest";
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1);
}

// Whole `text` as a number in `base`; false when it is not one.
template <typename T, typename... Base>
bool ParseWhole(std::string_view text, T& value, Base... base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  return error == std::errc() && end == text.data() + text.size();
}

bool IsDigits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? without its sign.
bool LooksLikeFloat(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t from = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at > from;
  };
  const bool whole = digits();
  bool fraction = false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    fraction = digits();
  }
  if (!whole && !fraction) return false;
  if (at == text.size()) return true;
  if (text[at] != 'e' && text[at] != 'E') return false;
  ++at;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  return digits() && at == text.size();
}

json ResolveInteger(std::string_view unsigned_text, bool negative, int base) {
  uint64_t magnitude = 0;
  if (!ParseWhole(unsigned_text, magnitude, base)) return nullptr;
  if (!negative) {
    if (magnitude <= INT64_MAX) return static_cast<int64_t>(magnitude);
    return magnitude;
  }
  if (magnitude > uint64_t{1} << 63) return nullptr;
  return static_cast<int64_t>(~magnitude + 1);
}

class Converter {
 public:
  explicit Converter(YamlDocument& document) : document_(document) {}

  json Convert(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) {
      if (!too_large_) Fail(node, path, "the document is nested too deeply or expands to too much");
      too_large_ = true;
      return nullptr;
    }
    document_.positions.try_emplace(path, Position{nodes_, node.Mark().line + 1});
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return nullptr;
      case YAML::NodeType::Scalar:
        return Scalar(node, path);
      case YAML::NodeType::Sequence:
        return Sequence(node, path, depth);
      case YAML::NodeType::Map:
        return Map(node, path, depth);
    }
    return nullptr;
  }

 private:
  json Scalar(const YAML::Node& node, const std::string& path) {
    const std::string& tag = node.Tag();
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return node.Scalar();
    if (!tag.empty() && tag != "?") Fail(node, path, "the tag " + tag + " is not supported");
    return ResolvePlainScalar(node.Scalar());
  }

  json Sequence(const YAML::Node& node, const std::string& path, int depth) {
    json list = json::array();
    for (const YAML::Node& element : node) {
      if (too_large_) break;
      list.push_back(Convert(element, Element(path, list.size()), depth + 1));
    }
    return list;
  }

  json Map(const YAML::Node& node, const std::string& path, int depth) {
    json object = json::object();
    for (const auto& entry : node) {
      if (too_large_) break;
      if (!entry.first.IsScalar()) {
        Fail(entry.first, path, "a key must be a plain word");
        continue;
      }
      const std::string key = entry.first.Scalar();
      if (key.empty()) {  // it would have no path
        Fail(entry.first, path, "a key is empty; write the field's name before the colon");
        continue;
      }
      if (object.contains(key)) {
        Fail(entry.first, Child(path, key), "the key is given twice; keep one");
        continue;
      }
      object[key] = Convert(entry.second, Child(path, key), depth + 1);
    }
    return object;
  }

  void Fail(const YAML::Node& node, const std::string& path, std::string reason) {
    document_.errors.push_back(
        {path.empty() ? LineColumn(node.Mark()) : path, std::move(reason), node.Mark().line + 1});
  }

  YamlDocument& document_;
  int nodes_ = 0;
  bool too_large_ = false;
};

// Where a document begins. yaml-cpp never leaves a character such as "," or "]" that stands there,
// and would find empty documents at it for ever.
class DocumentStarts : public YAML::EventHandler {
 public:
  // Throws where a document begins at the place of the one before it.
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_) throw YAML::ParserException(mark, "no document begins so");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

std::vector<YAML::Node> LoadDocuments(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  while (parser.HandleNextDocument(starts)) {
  }
  return YAML::LoadAll(text);
}

// `complaint` says what is wrong with the documents found, empty if nothing is.
template <typename Complaint>
YamlDocument Read(std::string_view text, Complaint complaint) {
  YamlDocument document;
  if (text.size() > kMaxBytes) {
    document.errors.push_back({"manifest", "the text has " + std::to_string(text.size()) +
                                               " bytes; at most 3 MiB are read"});
    return document;
  }
  try {
    const std::vector<YAML::Node> documents = LoadDocuments(std::string(text));
    std::string reason = complaint(documents);
    if (!reason.empty()) {
      document.errors.push_back({"manifest", std::move(reason)});
    } else if (!documents.empty()) {
      document.root = Converter(document).Convert(documents[0], "", 0);
    }
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 0 : error.mark.line + 1;
    document.errors.push_back({LineColumn(error.mark), "not valid YAML: " + error.msg, line});
  }
  return document;
}

}  // namespace

json ResolvePlainScalar(const std::string& text) {
  static const std::set<std::string> kNull = {"", "~", "null", "Null", "NULL"};
  static const std::set<std::string> kTrue = {"true", "True", "TRUE"};
  static const std::set<std::string> kFalse = {"false", "False", "FALSE"};
  if (kNull.contains(text)) return nullptr;
  if (kTrue.contains(text)) return true;
  if (kFalse.contains(text)) return false;

  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  json integer;
  if (digits.starts_with("0x")) {
    integer = ResolveInteger(digits.substr(2), negative, 16);
  } else if (digits.starts_with("0o")) {
    integer = ResolveInteger(digits.substr(2), negative, 8);
  } else if (digits.size() > 1 && digits[0] == '0' && IsDigits(digits, "01234567")) {
    integer = ResolveInteger(digits, negative, 8);
  } else if (IsDigits(digits, "0123456789")) {
    integer = ResolveInteger(digits, negative, 10);
  }
  if (!integer.is_null()) return integer;

  double number = 0;
  if (LooksLikeFloat(digits) && ParseWhole(digits, number)) return negative ? -number : number;
  return text;
}

YamlDocument ReadYaml(std::string_view text) {
  return Read(text, [](const std::vector<YAML::Node>& documents) -> std::string {
    if (documents.empty() || (documents.size() == 1 && documents[0].IsNull())) {
      return "the text is empty; a HeteroTrainingJob is needed";
    }
    if (documents.size() > 1) {
      return "the text holds " + std::to_string(documents.size()) +
             " YAML documents; give one HeteroTrainingJob per file";
    }
    if (!documents[0].IsMap()) {
      return "the text is not a map; it must begin with apiVersion, kind, ...";
    }
    return {};
  });
}

YamlDocument ReadYamlValue(std::string_view text) {
  return Read(text, [](const std::vector<YAML::Node>& documents) -> std::string {
    return documents.size() > 1 ? "the value holds several YAML documents; give one" : "";
  });
}

}  // namespace hetero::api
