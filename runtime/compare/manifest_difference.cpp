#include "runtime/compare/manifest_difference.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/manifest.h"
#include "base/json_access.h"

namespace hetero::compare {
namespace {

using nlohmann::json;

// One field of each manifest; null where it has none.
using Values = std::vector<const json*>;

// A manifest is a page or two; parsing YAML takes its time.
constexpr size_t kMostBytesToRead = size_t{1} << 20;

template <typename Predicate>
bool All(const Values& values, const Predicate& holds) {
  return std::all_of(values.begin(), values.end(),
                     [&](const json* value) { return value != nullptr && holds(*value); });
}

bool AllEqual(const Values& values) {
  return std::all_of(values.begin(), values.end(), [&](const json* value) {
    if (value == nullptr || values.front() == nullptr) return value == values.front();
    return *value == *values.front();
  });
}

// "spec.roles" is "roles", as for --set.
std::string Below(const std::string& path, const std::string& name) {
  if (path.empty() || path == "spec") return name;
  return absl::StrCat(path, ".", name);
}

// What tells the entries of these lists apart; empty: nothing that all of them have.
std::string KeyOf(const Values& lists) {
  for (const char* key : {"name", "op", "prefix"}) {
    if (All(lists, [&](const json& list) {
          return std::all_of(list.begin(), list.end(),
                             [&](const json& entry) { return !base::TextOf(entry, key).empty(); });
        })) {
      return key;
    }
  }
  return "";
}

bool HoldsObjects(const json& list) {
  return std::any_of(list.begin(), list.end(), [](const json& entry) { return entry.is_object(); });
}

struct NamedEntry {
  std::string name;
  const json* entry;
};

std::vector<NamedEntry> EntriesOf(const json& list, const std::string& key) {
  std::vector<NamedEntry> entries;
  std::map<std::string, int> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string name = key.empty() ? absl::StrCat(i) : base::TextOf(list[i], key);
    if (const int count = ++seen[name]; count > 1) absl::StrAppend(&name, "#", count);
    entries.push_back({std::move(name), &list[i]});
  }
  return entries;
}

class Search {
 public:
  void Compare(const std::string& path, const Values& values) {
    if (AllEqual(values)) return;
    if (All(values, [](const json& value) { return value.is_object(); })) {
      CompareObjects(path, values);
    } else if (All(values, [](const json& value) { return value.is_array(); }) &&
               std::any_of(values.begin(), values.end(),
                           [](const json* value) { return HoldsObjects(*value); })) {
      CompareLists(path, values);
    } else {
      Add(path, values);
    }
  }

  std::vector<Difference> Take() { return std::move(found_); }

 private:
  void Add(const std::string& path, const Values& values) {
    Difference difference{.path = path.empty() ? "manifest" : path, .values = {}};
    for (const json* value : values) {
      difference.values.push_back(value == nullptr ? std::nullopt : std::optional<json>(*value));
    }
    found_.push_back(std::move(difference));
  }

  void CompareObjects(const std::string& path, const Values& objects) {
    std::set<std::string> names;
    for (const json* object : objects) {
      for (const auto& [name, value] : object->items()) names.insert(name);
    }
    for (const std::string& name : names) {
      Values values;
      for (const json* object : objects) {
        const auto found = object->find(name);
        values.push_back(found == object->end() ? nullptr : &*found);
      }
      Compare(Below(path, name), values);
    }
  }

  void CompareLists(const std::string& path, const Values& lists) {
    const std::string key = KeyOf(lists);
    std::vector<std::string> names;  // of all, as they come
    std::vector<std::map<std::string, const json*>> entries;
    std::vector<std::vector<std::string>> orders;
    std::set<std::string> known;
    for (const json* list : lists) {
      std::map<std::string, const json*>& own = entries.emplace_back();
      std::vector<std::string>& order = orders.emplace_back();
      for (NamedEntry& entry : EntriesOf(*list, key)) {
        own[entry.name] = entry.entry;
        order.push_back(entry.name);
        if (known.insert(entry.name).second) names.push_back(std::move(entry.name));
      }
    }
    for (const std::string& name : names) {
      Values values;
      for (const auto& own : entries) {
        const auto found = own.find(name);
        values.push_back(found == own.end() ? nullptr : found->second);
      }
      Compare(absl::StrCat(path, "[", name, "]"), values);
    }
    if (!key.empty()) CompareOrders(path, orders, entries);
  }

  // Of the entries that all have.
  void CompareOrders(const std::string& path, std::vector<std::vector<std::string>>& orders,
                     const std::vector<std::map<std::string, const json*>>& entries) {
    for (std::vector<std::string>& order : orders) {
      std::erase_if(order, [&](const std::string& name) {
        return !std::all_of(entries.begin(), entries.end(),
                            [&](const auto& own) { return own.contains(name); });
      });
    }
    if (std::all_of(orders.begin(), orders.end(),
                    [&](const auto& order) { return order == orders.front(); })) {
      return;
    }
    Difference difference{.path = absl::StrCat(path, " (order)"), .values = {}};
    for (const std::vector<std::string>& order : orders) difference.values.emplace_back(order);
    found_.push_back(std::move(difference));
  }

  std::vector<Difference> found_;
};

// These follow replicas where nobody says otherwise: then they are no difference of their own.
void DropBoundsThatFollow(json& manifest) {
  for (json& role : manifest["spec"]["roles"]) {
    for (const char* bound : {"minReplicas", "maxReplicas"}) {
      if (base::FieldOf(role, bound) == base::FieldOf(role, "replicas")) role.erase(bound);
    }
  }
}

std::string PlainText(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    return absl::StrCat("[",
                        absl::StrJoin(value, ", ",
                                      [](std::string* out, const json& entry) {
                                        absl::StrAppend(out, PlainText(entry));
                                      }),
                        "]");
  }
  if (value.is_object()) {
    std::vector<std::string> fields;
    for (const auto& [name, field] : value.items()) {
      fields.push_back(absl::StrCat(name, ": ", PlainText(field)));
    }
    return absl::StrCat("{", absl::StrJoin(fields, ", "), "}");
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::vector<Difference> ManifestDifferences(const std::vector<json>& manifests) {
  if (manifests.size() < 2) return {};
  Values values;
  for (const json& manifest : manifests) {
    values.push_back(manifest.is_null() ? nullptr : &manifest);
  }
  Search search;
  search.Compare("", values);
  return search.Take();
}

std::vector<json> WithDefaults(std::vector<json> manifests) {
  std::vector<json> filled;
  for (const json& manifest : manifests) {
    const std::string text = manifest.dump(-1, ' ', false, json::error_handler_t::replace);
    if (!manifest.is_object() || text.size() > kMostBytesToRead) return manifests;
    const api::ManifestResult read = api::ParseJobDocument(text);
    if (!read.errors.empty()) return manifests;
    json whole = json::parse(api::ToJson(read.job), nullptr, /*allow_exceptions=*/false);
    if (!whole.is_object()) return manifests;
    DropBoundsThatFollow(whole);
    filled.push_back(std::move(whole));
  }
  return filled;
}

std::string ValueText(const std::optional<json>& value) { return value ? PlainText(*value) : "-"; }

}  // namespace hetero::compare
