#include "operator/children/resource_sum.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/json_access.h"

namespace hetero::children {
namespace {

using absl::int128;
using base::ListOf;
using base::ObjectOf;
using nlohmann::json;

constexpr int64_t kUnit = 1'000'000'000;
constexpr int kMostDigits = 18;  // of a number with its fraction: none is meant to have more
constexpr int kMostAfterPoint = 9;
constexpr int kMostScale = 28;  // the power of ten above which all amounts are alike: 10^19 units

int128 Power(int64_t base, int exponent) {
  int128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= base;
  return power;
}

// Of what stands behind the number, in billionths; 0: it is none.
int128 ScaleOf(std::string_view suffix) {
  constexpr std::string_view kSmall = "num", kLarge = "kMGTPE", kBinary = "KMGTPE";
  if (suffix.empty()) return kUnit;
  if (suffix.size() == 1) {
    const size_t small = kSmall.find(suffix[0]), large = kLarge.find(suffix[0]);
    if (small != kSmall.npos) return Power(1000, static_cast<int>(small));
    return large == kLarge.npos ? 0 : kUnit * Power(1000, static_cast<int>(large) + 1);
  }
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const size_t binary = kBinary.find(suffix[0]);
    return binary == kBinary.npos ? 0 : kUnit * Power(1024, static_cast<int>(binary) + 1);
  }
  int exponent = 0;
  if ((suffix[0] != 'e' && suffix[0] != 'E') ||
      !absl::SimpleAtoi(std::string(suffix.substr(1)), &exponent) || exponent < -9 ||
      exponent > 18) {
    return 0;
  }
  return exponent < 0 ? kUnit / Power(10, -exponent) : kUnit * Power(10, exponent);
}

// Of `part`, "requests" or "limits"; what is known already stands.
void Take(const json& resources, const char* part, Amounts& asked) {
  for (const auto& [name, value] : ObjectOf(resources, part).items()) {
    asked.try_emplace(name,
                      ParseQuantity(value.is_string() ? value.get<std::string>() : value.dump()));
  }
}

Amounts AskedBy(const json& container) {
  Amounts asked;
  for (const char* part : {"requests", "limits"}) {
    Take(ObjectOf(container, "resources"), part, asked);
  }
  return asked;
}

void Add(Amounts& to, const Amounts& more) {
  for (const auto& [name, amount] : more) to[name] += amount;
}

void Raise(Amounts& to, const Amounts& least) {
  for (const auto& [name, amount] : least) to[name] = std::max(to[name], amount);
}

Amounts OfPod(const json& spec) {
  Amounts asked;
  for (const json& container : ListOf(spec, "containers")) Add(asked, AskedBy(container));
  Amounts sidecars, initial;
  for (const json& container : ListOf(spec, "initContainers")) {
    Amounts own = AskedBy(container);
    if (base::TextOf(container, "restartPolicy") == "Always") {
      Add(asked, own);
      Add(sidecars, own);
      own = sidecars;
    } else {
      Add(own, sidecars);
    }
    Raise(initial, own);
  }
  Raise(asked, initial);
  Amounts whole, overhead;
  Take(ObjectOf(spec, "resources"), "requests", whole);
  whole.insert(asked.begin(), asked.end());
  Take(ObjectOf(spec, "resources"), "limits", whole);
  Take(spec, "overhead", overhead);
  Add(whole, overhead);
  return whole;
}

std::string Text(int128 amount) {
  int128 scale = kUnit;
  const char* suffix = "";
  for (const char* smaller : {"m", "u", "n"}) {
    if (amount % scale == 0) break;
    scale /= 1000;
    suffix = smaller;
  }
  std::ostringstream text;
  text << amount / scale << suffix;
  return text.str();
}

}  // namespace

int128 ParseQuantity(std::string_view text) {
  size_t end = 0;
  int128 digits = 0;
  int count = 0, after_point = 0;
  bool point = false, more = false;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '.' && !point) {
      point = true;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      if (++count > kMostDigits) return 0;
      if (after_point == kMostAfterPoint) {  // Kubernetes rounds up to billionths, too
        more |= c != '0';
        continue;
      }
      digits = digits * 10 + (c - '0');
      after_point += point;
    } else {
      break;
    }
  }
  if (count == 0) return 0;
  digits += more;
  const int128 most = Power(10, kMostScale);
  const int128 divisor = Power(10, after_point), scale = ScaleOf(text.substr(end));
  if (digits > 0 && scale > most * divisor / digits) return most;
  return (digits * scale + divisor - 1) / divisor;
}

void ResourceSum::AddPods(const json& spec, int count) {
  for (const auto& [name, amount] : OfPod(spec)) amounts_[name] += amount * count;
}

json ResourceSum::ToJson() const {
  json list = json::object();
  for (const auto& [name, amount] : amounts_) {
    if (amount > 0) list[name] = Text(amount);
  }
  return list;
}

}  // namespace hetero::children
