#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "api/enums.h"
#include "runtime/insight/figures.h"
#include "runtime/local/dataset_lines.h"
#include "runtime/local/inspection.h"

namespace hetero::local {
namespace {

constexpr int64_t kBarWidth = 40;  // characters

std::string Row(const char* name, const std::vector<int64_t>& sorted,
                std::string (*text)(double figure)) {
  return absl::StrFormat("  %-8s %10s %10s %10s\n", name, text(static_cast<double>(sorted.front())),
                         text(static_cast<double>(sorted[sorted.size() / 2])),
                         text(static_cast<double>(sorted.back())));
}

std::string PixelsText(double pixels) { return absl::StrCat(static_cast<int64_t>(pixels)); }

// The bound of a bar: the smallest of 1, 2, 5, 10, 20, ... bytes that is more than `size`.
int64_t BoundAbove(int64_t size) {
  static constexpr int64_t kSteps[] = {1, 2, 5};
  int64_t power = 1;
  for (size_t i = 0;; ++i) {
    const int64_t bound = kSteps[i % std::size(kSteps)] * power;
    if (bound > size) return bound;
    if (i % std::size(kSteps) == std::size(kSteps) - 1) power *= 10;
  }
}

std::string Histogram(const std::vector<int64_t>& bytes) {
  std::map<int64_t, int64_t> bars;
  for (int64_t bound = BoundAbove(bytes.front()); bound <= bytes.back();
       bound = BoundAbove(bound)) {
    bars[bound] = 0;
  }
  for (const int64_t size : bytes) ++bars[BoundAbove(size)];
  int64_t highest = 0;
  for (const auto& [bound, count] : bars) highest = std::max(highest, count);
  std::string text;
  for (const auto& [bound, count] : bars) {
    const auto width = static_cast<size_t>((count * kBarWidth + highest - 1) / highest);
    absl::StrAppendFormat(&text, "  < %-9s %6d %s\n",
                          insight::BytesText(static_cast<double>(bound)), count,
                          std::string(width, '#'));
  }
  return text;
}

std::string Contents(const Inspection& inspection) {
  std::string text = absl::StrCat(inspection.uri, "\n");
  absl::StrAppendFormat(&text, "  format   %s%s\n", std::string(api::NameOf(inspection.format)),
                        inspection.shards == 0
                            ? ""
                            : absl::StrCat(", ", insight::CountText(inspection.shards),
                                           inspection.shards == 1 ? " shard" : " shards"));
  absl::StrAppendFormat(&text, "  samples  %s\n", insight::CountText(inspection.samples));
  if (inspection.classes > 0) absl::StrAppendFormat(&text, "  classes  %d\n", inspection.classes);
  return text;
}

// "0-2, 255"
std::string Values(const std::map<int32_t, int64_t>& pixels) {
  std::string text;
  for (auto at = pixels.begin(); at != pixels.end();) {
    const int32_t first = at->first;
    int32_t last = first;
    while (++at != pixels.end() && at->first == last + 1) last = at->first;
    absl::StrAppend(&text, text.empty() ? "" : ", ", first);
    if (last > first) absl::StrAppend(&text, "-", last);
  }
  return text;
}

std::string Looked(const Inspection& inspection) {
  std::string text = absl::StrCat(
      "\nOf ", inspection.looked_at, " samples, evenly spread: ",
      absl::StrJoin(inspection.encodings, ", ", [](std::string* out, const auto& encoding) {
        absl::StrAppend(out, encoding.second, " ", encoding.first);
      }));
  if (!inspection.labels.empty()) {
    absl::StrAppend(&text, ", ", inspection.labels.size(),
                    inspection.labels.size() == 1 ? " class" : " classes");
  }
  absl::StrAppendFormat(&text, "\n  %-8s %10s %10s %10s\n", "", "smallest", "median", "largest");
  text += Row("bytes", inspection.bytes, insight::BytesText);
  text += Row("height", inspection.heights, PixelsText);
  text += Row("width", inspection.widths, PixelsText);
  if (!inspection.mask_pixels.empty()) {
    absl::StrAppend(&text, "  masks    of the values ", Values(inspection.mask_pixels), "\n");
  }
  return absl::StrCat(text, "\nBytes of a picture\n", Histogram(inspection.bytes));
}

std::string Manifest(const Inspection& inspection) {
  api::DatasetSource source;
  source.uri = inspection.uri;
  source.format = inspection.format;
  source.samples = inspection.samples;
  if (inspection.classes > 0) source.classes = inspection.classes;
  source.fields = inspection.fields;
  return DatasetLines(source, inspection.label);
}

}  // namespace

std::string InspectionText(const Inspection& inspection) {
  std::string text = Contents(inspection);
  if (!inspection.bytes.empty()) text += Looked(inspection);
  if (inspection.bad > 0) {
    absl::StrAppend(&text, "\n", inspection.bad, " of ", inspection.looked_at,
                    inspection.bad == 1 ? " samples is bad: " : " samples are bad: ",
                    inspection.first_bad, "\n");
  }
  return text + Manifest(inspection);
}

std::string InspectionJson(const Inspection& inspection) {
  const auto figures = [](const std::vector<int64_t>& sorted) {
    if (sorted.empty()) return nlohmann::ordered_json();
    return nlohmann::ordered_json{{"smallest", sorted.front()},
                                  {"median", sorted[sorted.size() / 2]},
                                  {"largest", sorted.back()}};
  };
  nlohmann::ordered_json labels = nlohmann::ordered_json::object();
  for (const auto& [label, count] : inspection.labels) labels[std::to_string(label)] = count;
  nlohmann::ordered_json json = {{"uri", inspection.uri},
                                 {"format", std::string(api::NameOf(inspection.format))},
                                 {"shards", inspection.shards},
                                 {"samples", inspection.samples},
                                 {"classes", inspection.classes},
                                 {"fingerprint", inspection.fingerprint},
                                 {"lookedAt", inspection.looked_at},
                                 {"encodings", inspection.encodings},
                                 {"labels", std::move(labels)},
                                 {"bytes", figures(inspection.bytes)},
                                 {"heights", figures(inspection.heights)},
                                 {"widths", figures(inspection.widths)},
                                 {"badSamples", inspection.bad}};
  for (const auto& [value, count] : inspection.mask_pixels) {
    json["maskPixels"][std::to_string(value)] = count;
  }
  if (inspection.bad > 0) json["firstBadSample"] = inspection.first_bad;
  // A path may be no UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace hetero::local
