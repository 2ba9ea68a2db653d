#include "runtime/storage/aws/xml.h"

#include <expat.h>

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"

namespace hetero::storage {
namespace {

constexpr size_t kMostLevels = 16;
constexpr size_t kMostElements = 100'000;

struct FreeParser {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

class Reader {
 public:
  Reader() : parser_(XML_ParserCreate("UTF-8")) {}

  absl::StatusOr<XmlElement> Read(std::string_view text) {
    if (parser_ == nullptr) return absl::ResourceExhaustedError("no memory to read XML");
    if (text.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
      return absl::DataLossError("XML of more than 2 GiB");
    }
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), &OnStart, &OnEnd);
    XML_SetCharacterDataHandler(parser_.get(), &OnText);
    XML_SetStartDoctypeDeclHandler(parser_.get(), &OnDoctype);
    const XML_Status status =
        XML_Parse(parser_.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
    if (status == XML_STATUS_OK) return std::move(root_);
    const std::string why =
        refused_.empty() ? XML_ErrorString(XML_GetErrorCode(parser_.get())) : refused_;
    return absl::DataLossError(
        absl::StrCat("line ", XML_GetCurrentLineNumber(parser_.get()), " of its XML: ", why));
  }

 private:
  static Reader& Self(void* self) { return *static_cast<Reader*>(self); }
  static void OnStart(void* self, const char* name, const char**) { Self(self).Start(name); }
  static void OnEnd(void* self, const char*) { Self(self).open_.pop_back(); }
  static void OnText(void* self, const char* text, int size) {
    // None comes once it was stopped.
    Self(self).open_.back()->text.append(text, static_cast<size_t>(size));
  }
  static void OnDoctype(void* self, const char*, const char*, const char*, int) {
    Self(self).Refuse("it declares a document type");
  }

  void Start(std::string_view name) {
    if (open_.size() == kMostLevels) Refuse("it is too deep");
    if (++elements_ > kMostElements) Refuse("it has too many elements");
    if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
      name.remove_prefix(colon + 1);
    }
    XmlElement* element = &root_;
    if (!open_.empty()) element = &open_.back()->children.emplace_back();
    element->name = std::string(name);
    open_.push_back(element);
  }

  void Refuse(std::string why) {
    refused_ = std::move(why);
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  const std::unique_ptr<XML_ParserStruct, FreeParser> parser_;
  XmlElement root_;
  // From the root down. Their places hold still: only the last one gets children.
  std::vector<XmlElement*> open_;
  size_t elements_ = 0;
  std::string refused_;
};

}  // namespace

const XmlElement* XmlElement::Find(std::string_view child) const {
  for (const XmlElement& element : children) {
    if (element.name == child) return &element;
  }
  return nullptr;
}

std::string XmlElement::TextOf(std::string_view child) const {
  const XmlElement* element = Find(child);
  return element == nullptr ? "" : element->text;
}

absl::StatusOr<XmlElement> ParseXml(std::string_view text) { return Reader().Read(text); }

}  // namespace hetero::storage
