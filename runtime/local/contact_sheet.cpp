#include "runtime/local/contact_sheet.h"

#include <png.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <opencv2/imgproc.hpp>

#include "absl/strings/str_cat.h"

namespace hetero::local {
namespace {

constexpr int kMinPictureEdge = 128;
constexpr int kMinCellWidth = 160;
constexpr int kMargin = 8;
constexpr int kCaptionHeight = 20;
constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
constexpr double kFontScale = 0.4;

int TextWidth(const std::string& text) {
  int baseline = 0;
  return cv::getTextSize(text, kFont, kFontScale, 1, &baseline).width;
}

std::string Fit(std::string caption, int width) {
  if (TextWidth(caption) <= width) return caption;
  while (!caption.empty() && TextWidth(caption + "...") > width) caption.pop_back();
  return caption + "...";
}

cv::Mat Enlarged(const pipeline::Image& image, int factor) {
  const cv::Mat stored(image.shape.height, image.shape.width,
                       image.shape.channels == 3 ? CV_8UC3 : CV_8UC1,
                       const_cast<uint8_t*>(image.bytes.data()));
  cv::Mat colour;
  if (image.shape.channels == 3) {
    colour = stored;
  } else {
    cv::cvtColor(stored, colour, cv::COLOR_GRAY2RGB);
  }
  cv::Mat large;
  cv::resize(colour, large, cv::Size(), factor, factor, cv::INTER_NEAREST);
  return large;
}

// Pictures as they are drawn, and the size of a cell that holds the largest.
struct Layout {
  std::vector<cv::Mat> pictures;
  int columns = 1;
  int cell_width = kMinCellWidth;
  int cell_height = 0;
};

Layout Arrange(const std::vector<ContactSheetEntry>& entries) {
  Layout layout;
  int edge = 1;
  for (const ContactSheetEntry& entry : entries) {
    edge = std::max({edge, entry.image.shape.height, entry.image.shape.width});
  }
  const int factor = std::max(1, (kMinPictureEdge + edge - 1) / edge);
  for (const ContactSheetEntry& entry : entries) {
    layout.pictures.push_back(Enlarged(entry.image, factor));
    layout.cell_width = std::max(layout.cell_width, layout.pictures.back().cols);
    layout.cell_height = std::max(layout.cell_height, layout.pictures.back().rows);
  }
  while (size_t(layout.columns) * size_t(layout.columns) < entries.size()) ++layout.columns;
  return layout;
}

cv::Mat Draw(const std::vector<ContactSheetEntry>& entries) {
  const Layout layout = Arrange(entries);
  const int columns = layout.columns;
  const int rows = (int(entries.size()) + columns - 1) / columns;
  const int step_x = layout.cell_width + kMargin;
  const int step_y = layout.cell_height + kCaptionHeight + kMargin;
  cv::Mat sheet(rows * step_y + kMargin, columns * step_x + kMargin, CV_8UC3,
                cv::Scalar(255, 255, 255));
  for (int i = 0; i < int(entries.size()); ++i) {
    const cv::Mat& picture = layout.pictures[size_t(i)];
    const int x = kMargin + i % columns * step_x;
    const int y = kMargin + i / columns * step_y;
    picture.copyTo(sheet(cv::Rect(x, y, picture.cols, picture.rows)));
    cv::putText(sheet, Fit(entries[size_t(i)].caption, layout.cell_width),
                cv::Point(x, y + layout.cell_height + kCaptionHeight - 6), kFont, kFontScale,
                cv::Scalar(0, 0, 0), 1, cv::LINE_AA);
  }
  return sheet;
}

absl::Status WritePng(const cv::Mat& sheet, const std::string& path) {
  png_image header;
  std::memset(&header, 0, sizeof(header));
  header.version = PNG_IMAGE_VERSION;
  header.width = png_uint_32(sheet.cols);
  header.height = png_uint_32(sheet.rows);
  header.format = PNG_FORMAT_RGB;
  errno = 0;
  if (png_image_write_to_file(&header, path.c_str(), 0, sheet.data, png_int_32(sheet.step[0]),
                              nullptr) == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write ", path, ": ", header.message,
                     errno != 0 ? absl::StrCat(", ", std::strerror(errno)) : std::string()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteContactSheet(const std::vector<ContactSheetEntry>& entries,
                               const std::string& path) {
  if (entries.empty()) return absl::InvalidArgumentError("a contact sheet needs a picture");
  for (const ContactSheetEntry& entry : entries) {
    const api::ImageShape& shape = entry.image.shape;
    if (shape.height < 1 || shape.width < 1 || (shape.channels != 1 && shape.channels != 3) ||
        pipeline::ByteSize(shape) != int64_t(entry.image.bytes.size())) {
      return absl::InvalidArgumentError(absl::StrCat("picture \"", entry.caption, "\" of shape ",
                                                     pipeline::ToString(shape),
                                                     " cannot be drawn; it needs 1 or 3 channels"));
    }
  }
  try {
    return WritePng(Draw(entries), path);
  } catch (const cv::Exception& e) {
    return absl::InternalError(absl::StrCat("cannot draw the contact sheet: ", e.what()));
  }
}

}  // namespace hetero::local
