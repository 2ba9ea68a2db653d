#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hetero::storage {

// An element of a small XML document, such as S3 and STS reply with.
struct XmlElement {
  std::string name;  // without its namespace
  std::string text;  // all text that is directly in it
  std::vector<XmlElement> children;

  // The first of this name; null: there is none.
  const XmlElement* Find(std::string_view child) const;
  // Its text; "" where there is none.
  std::string TextOf(std::string_view child) const;
};

// Reads a document in UTF-8 by libexpat, which stays inside xml.cpp. kDataLoss, with the line: it
// is not well-formed, is more than 16 elements deep, has more than 100,000, or declares a document
// type: nothing that is read here has one, and entities are how small documents become large ones.
absl::StatusOr<XmlElement> ParseXml(std::string_view text);

}  // namespace hetero::storage
