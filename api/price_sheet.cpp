#include "api/price_sheet.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/money.h"
#include "api/yaml_document.h"

namespace hetero::api {
namespace {

using nlohmann::json;

constexpr char kTypes[] = "instanceTypes";

class SheetReader {
 public:
  PriceSheet Read(const json& root) {
    PriceSheet sheet;
    if (!root.is_object()) {
      Wrong("the sheet", "has to be a map with instanceTypes");
      return sheet;
    }
    for (const auto& [name, value] : root.items()) {
      if (name == kTypes) {
        ReadTypes(value, sheet);
      } else if (name == "region" || name == "date") {
        (name == "region" ? sheet.region : sheet.date) = TextAt(name, value);
      } else if (name == "currency") {
        if (TextAt(name, value) != "USD") Wrong(name, "only USD is known");
      } else {
        Wrong(name, "is not known; there are instanceTypes, region, date and currency");
      }
    }
    if (!root.contains(kTypes)) Wrong(kTypes, "is missing");
    return sheet;
  }

  absl::Status status() const {
    if (errors_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrJoin(errors_, "; "));
  }

 private:
  void Wrong(const std::string& path, const std::string& reason) {
    errors_.push_back(absl::StrCat(path, ": ", reason));
  }

  std::string TextAt(const std::string& path, const json& value) {
    if (value.is_string()) return value.get<std::string>();
    Wrong(path, "has to be a text");
    return "";
  }

  void ReadTypes(const json& types, PriceSheet& sheet) {
    if (!types.is_object() || types.empty()) {
      return Wrong(kTypes, "has to be a map from names of instance types to their prices");
    }
    for (const auto& [name, prices] : types.items()) {
      const std::string path = absl::StrCat(kTypes, ".", name);
      if (!prices.is_object() || prices.empty()) {
        Wrong(path, "has to be a map with onDemand, spot or both");
        continue;
      }
      PriceSheet::Entry& entry = sheet.instance_types[name];
      for (const auto& [kind, price] : prices.items()) {
        const std::string place = absl::StrCat(path, ".", kind);
        if (kind != "onDemand" && kind != "spot") {
          Wrong(place, "is not known; there are onDemand and spot");
          continue;
        }
        (kind == "spot" ? entry.spot : entry.on_demand) = PriceAt(place, price);
      }
    }
  }

  std::optional<int64_t> PriceAt(const std::string& path, const json& price) {
    const std::string text = price.is_string()   ? price.get<std::string>()
                             : price.is_number() ? price.dump()
                                                 : std::string();
    const std::optional<int64_t> dollars = MicroDollars(text);
    if (!dollars) Wrong(path, "has to be a decimal in dollars an hour, such as \"2.48\"");
    return dollars;
  }

  std::vector<std::string> errors_;
};

}  // namespace

std::optional<NodePrice> PriceSheet::Find(const std::string& instance_type, bool spot) const {
  const auto found = instance_types.find(instance_type);
  if (found == instance_types.end()) return std::nullopt;
  const Entry& entry = found->second;
  const std::optional<int64_t> paid = spot ? entry.spot : entry.on_demand;
  if (!paid) return std::nullopt;
  return NodePrice{.paid = *paid, .on_demand = entry.on_demand.value_or(*paid)};
}

absl::StatusOr<PriceSheet> ParsePriceSheet(std::string_view text) {
  const YamlDocument document = ReadYamlValue(text);
  if (!document.errors.empty()) {
    return absl::InvalidArgumentError(
        absl::StrJoin(document.errors, "; ", [](std::string* all, const FieldError& error) {
          absl::StrAppend(all, error.path, error.path.empty() ? "" : ": ", error.reason);
        }));
  }
  SheetReader reader;
  PriceSheet sheet = reader.Read(document.root);
  if (absl::Status status = reader.status(); !status.ok()) return status;
  return sheet;
}

}  // namespace hetero::api
