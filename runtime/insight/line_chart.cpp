#include "runtime/insight/line_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/html_text.h"

namespace hetero::insight {
namespace {

constexpr size_t kMaxBuckets = 300;  // two points each: finer than a screen shows
constexpr size_t kMaxTooltips = 120;
constexpr int kTicks = 6;

struct Axes {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  double X(double x) const { return (x - x_low) / (x_high - x_low); }  // 0..1 from the left
  double Y(double y) const { return (y - y_low) / (y_high - y_low); }  // 0..1 from the bottom
};

std::vector<ChartPoint> FinitePoints(const ChartSeries& series) {
  std::vector<ChartPoint> points;
  for (const ChartPoint& point : series.points) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) points.push_back(point);
  }
  return points;
}

// Those that the axes fit, by x.
std::vector<ChartPoint> DecidingPoints(const LineChart& chart) {
  if (!chart.equals) return FinitePoints(chart.series.front());
  std::vector<ChartPoint> all;
  for (const ChartSeries& series : chart.series) {
    const std::vector<ChartPoint> points = FinitePoints(series);
    all.insert(all.end(), points.begin(), points.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  return all;
}

double Percentile(std::vector<ChartPoint> points, double share) {
  std::sort(points.begin(), points.end(),
            [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; });
  return points[static_cast<size_t>(share * static_cast<double>(points.size() - 1))].y;
}

// The largest value that the axis must show.
double HighestShown(const std::vector<ChartPoint>& points) {
  const double highest = Percentile(points, 1);
  const double usual = Percentile(points, 0.98);
  const bool extreme = points.size() >= 20 && usual > 0 && highest > 2 * usual;
  return extreme ? usual * 1.25 : highest;
}

Axes FitAxes(const LineChart& chart, const std::vector<ChartPoint>& points) {
  Axes axes;
  axes.x_low = points.front().x;
  axes.x_high = points.back().x;
  // Room for whole dots at both ends.
  const double room = axes.x_high > axes.x_low ? 0.015 * (axes.x_high - axes.x_low) : 0.5;
  axes.x_low -= room;
  axes.x_high += room;
  double low = Percentile(points, 0);
  double high = HighestShown(points);
  // A dot far above the curve (the first evaluation of an unsettled model) may leave the picture.
  const double highest_dot = high > 0 ? 3 * high : std::numeric_limits<double>::infinity();
  for (const ChartSeries& series : chart.series) {
    if (series.style != "dots") continue;
    for (const ChartPoint& point : FinitePoints(series)) {
      low = std::min(low, point.y);
      if (point.y <= highest_dot) high = std::max(high, point.y);
    }
  }
  // From zero, so that a flat curve looks flat; losses and times are not negative.
  low = std::min(low, 0.0);
  if (high <= low) high = low + 1;
  const std::vector<double> ticks = AxisTicks(low, high, kTicks);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : high - low;
  axes.y_low = std::floor(low / step + 1e-9) * step;
  axes.y_high = std::ceil(1.03 * high / step) * step;  // the line stays clear of the edge
  return axes;
}

// Lowest and highest point of each of at most kMaxBuckets stretches, so that no spike is lost.
std::vector<ChartPoint> Thinned(const std::vector<ChartPoint>& points) {
  if (points.size() <= 2 * kMaxBuckets) return points;
  std::vector<ChartPoint> kept;
  for (size_t bucket = 0; bucket < kMaxBuckets; ++bucket) {
    const auto begin = points.begin() + bucket * points.size() / kMaxBuckets;
    const auto end = points.begin() + (bucket + 1) * points.size() / kMaxBuckets;
    auto [low, high] = std::minmax_element(
        begin, end, [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  return kept;
}

std::string Path(const ChartSeries& series, const Axes& axes, bool own_colour) {
  std::string path;
  const std::vector<ChartPoint> points = Thinned(FinitePoints(series));
  const bool dots = series.style == "dots" || points.size() == 1;
  for (size_t i = 0; i < points.size(); ++i) {
    absl::StrAppendFormat(&path, "%s%.1f %.1f", dots || i == 0 ? "M" : "L",
                          axes.X(points[i].x) * 1000, (1 - axes.Y(points[i].y)) * 1000);
    if (dots) path += "h0";
  }
  if (path.empty()) return "";
  std::string style = series.style;
  if (dots) style = own_colour ? "dots " + style : "dots";
  return absl::StrCat("<path class=\"", style, "\" d=\"", path, "\"/>\n");
}

// Invisible bands, one per shown point: the browser's own tooltip without a script.
std::string Tooltips(const LineChart& chart, const std::vector<ChartPoint>& points,
                     const Axes& axes) {
  const size_t count = std::min(points.size(), kMaxTooltips);
  std::string bands;
  for (size_t i = 0; i < count; ++i) {
    const ChartPoint& point = points[(2 * i + 1) * points.size() / (2 * count)];
    const double width = 1000.0 / static_cast<double>(count);
    const double left = std::clamp(axes.X(point.x) * 1000 - width / 2, 0.0, 1000.0 - width);
    absl::StrAppendFormat(&bands,
                          "<rect class=\"band\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"1000\">"
                          "<title>%s %s: %s</title></rect>\n",
                          left, width, EscapeHtml(chart.x_name), CountText(std::llround(point.x)),
                          EscapeHtml(chart.y_text(point.y)));
  }
  return bands;
}

// "0.500" -> "0.5", "1.50 s" -> "1.5 s", "300 ms" as it is: ticks are round numbers.
std::string WithoutTrailingZeros(std::string text) {
  const size_t point = text.find('.');
  if (point == std::string::npos || text.find('e') != std::string::npos) return text;
  size_t end = text.find(' ', point);
  if (end == std::string::npos) end = text.size();
  size_t keep = end;
  while (text[keep - 1] == '0') --keep;
  if (keep - 1 == point) --keep;
  return text.erase(keep, end - keep);
}

std::string Labels(const LineChart& chart, const Axes& axes, std::string* grid) {
  std::string labels;
  for (double tick : AxisTicks(axes.y_low, axes.y_high, kTicks)) {
    const double y = axes.Y(tick);
    absl::StrAppendFormat(grid, "<path class=\"grid\" d=\"M0 %.1fH1000\"/>\n", (1 - y) * 1000);
    absl::StrAppendFormat(&labels, "<span class=\"y\" style=\"bottom:%.2f%%\">%s</span>\n", y * 100,
                          EscapeHtml(WithoutTrailingZeros(chart.y_text(tick))));
  }
  for (double tick : AxisTicks(axes.x_low, axes.x_high, kTicks)) {
    if (tick != std::floor(tick)) continue;  // there is no half step
    absl::StrAppendFormat(&labels, "<span class=\"x\" style=\"left:%.2f%%\">%s</span>\n",
                          axes.X(tick) * 100, CountText(std::llround(tick)));
  }
  absl::StrAppend(&labels, "<span class=\"xname\">", EscapeHtml(chart.x_name), "</span>\n");
  return labels;
}

std::string Legend(const LineChart& chart) {
  std::string legend;
  for (const ChartSeries& series : chart.series) {
    if (series.name.empty() || FinitePoints(series).empty()) continue;
    absl::StrAppend(&legend, "<span><i class=\"", series.style, "\"></i>", EscapeHtml(series.name),
                    "</span>");
  }
  return legend.empty() ? "" : absl::StrCat("<p class=\"legend\">", legend, "</p>\n");
}

std::string NoteOnExtremes(const LineChart& chart, const std::vector<ChartPoint>& points,
                           const Axes& axes) {
  int64_t above = 0;
  ChartPoint highest = points.front();
  for (const ChartPoint& point : points) {
    if (point.y > axes.y_high) ++above;
    if (point.y > highest.y) highest = point;
  }
  if (above == 0) return "";
  return absl::StrCat("<p class=\"note\">", CountText(above), above == 1 ? " point" : " points",
                      " above the axis; the highest is ", EscapeHtml(chart.y_text(highest.y)),
                      " at ", EscapeHtml(chart.x_name), " ", CountText(std::llround(highest.x)),
                      ".</p>\n");
}

}  // namespace

std::vector<double> AxisTicks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const auto first = std::llround(std::ceil(low / step - 1e-9));
  const auto last = std::llround(std::floor(high / step + 1e-9));
  for (auto i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  if (ticks.empty()) ticks.push_back(low);
  return ticks;
}

std::vector<ChartPoint> RunningMedian(const std::vector<ChartPoint>& points, int window) {
  std::vector<ChartPoint> medians;
  const auto size = static_cast<int64_t>(points.size());
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    values.clear();
    const int64_t end = std::min(size, i + window / 2 + 1);
    for (int64_t j = std::max<int64_t>(0, i - window / 2); j < end; ++j) {
      if (std::isfinite(points[j].y)) values.push_back(points[j].y);
    }
    if (values.empty()) continue;
    const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    medians.push_back({points[i].x, *middle});
  }
  return medians;
}

std::string RenderLineChart(const LineChart& chart) {
  if (chart.series.empty()) return "";
  const std::vector<ChartPoint> points = DecidingPoints(chart);
  if (points.empty()) return "";
  const Axes axes = FitAxes(chart, points);
  std::string grid;
  const std::string labels = Labels(chart, axes, &grid);
  std::string paths;
  for (const ChartSeries& series : chart.series) paths += Path(series, axes, chart.equals);
  return absl::StrCat(Legend(chart), "<div class=\"chart\">\n<svg viewBox=\"0 0 1000 1000\" ",
                      "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
                      EscapeHtml(chart.description), "\">\n", grid, paths,
                      chart.equals ? "" : Tooltips(chart, points, axes), "</svg>\n", labels,
                      "</div>\n", NoteOnExtremes(chart, points, axes));
}

}  // namespace hetero::insight
