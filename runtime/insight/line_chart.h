#pragma once

#include <functional>
#include <string>
#include <vector>

// A line chart as HTML: an SVG that stretches with the page, labels as text beside it so that they
// keep their size on any screen. Pure.
namespace hetero::insight {

struct ChartPoint {
  double x = 0;
  double y = 0;  // not finite: a gap in the line
};

struct ChartSeries {
  std::string name;                // legend
  std::string style;               // CSS classes: "raw", "smooth", "dots"
  std::vector<ChartPoint> points;  // x ascending
};

struct LineChart {
  std::string description;  // for screen readers
  std::string x_name;       // "step"
  std::function<std::string(double)> y_text;
  std::vector<ChartSeries> series;  // the first decides the axes and carries the tooltips
  bool equals = false;              // no series is the first: all decide, and there are no tooltips
};

// Round numbers covering [low, high], about `count` of them. low < high.
std::vector<double> AxisTicks(double low, double high, int count);

// Median of the `window` points around each point, fewer at the ends: a single slow step does not
// bend it. Values that are not finite are left out.
std::vector<ChartPoint> RunningMedian(const std::vector<ChartPoint>& points, int window);

// The chart. A few extreme values do not flatten the rest: when the largest value is far beyond the
// 98th percentile the axis ends below it and a note says what lies above. Empty when no point is
// finite.
std::string RenderLineChart(const LineChart& chart);

}  // namespace hetero::insight
