#include "runtime/source/shape_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

enum Shape { kCircle, kSquare, kTriangle, kCross, kRing, kStar, kBar, kDiamond, kShapes };
constexpr std::array<const char*, kShapes> kShapeNames = {
    "circle", "square", "triangle", "cross", "ring", "star", "bar", "diamond"};

using Colour = std::array<double, 3>;
constexpr int kColours = 8;
constexpr std::array<const char*, kColours> kColourNames = {"red",     "green", "blue",  "yellow",
                                                            "magenta", "cyan",  "white", "orange"};
constexpr std::array<Colour, kColours> kPalette = {{{225, 40, 40},
                                                    {40, 185, 60},
                                                    {50, 80, 225},
                                                    {235, 225, 50},
                                                    {215, 60, 205},
                                                    {40, 205, 215},
                                                    {245, 245, 245},
                                                    {240, 135, 25}}};

enum Texture { kSolid, kRows, kColumns, kChecks, kTextures };

// What a class looks like. Each round of eight classes gives a shape another colour, three on: of
// few classes, those of one colour have shapes that are hard to mistake (circle and cross).
Shape ShapeOf(int32_t label) { return static_cast<Shape>(label % kShapes); }
int VariantOf(int32_t label) { return (label + 3 * (label / kShapes)) % kColours; }

struct Point {
  double u = 0;
  double v = 0;
};

// A five-pointed star of radius 1, point up: the points inside at least four of the five lines
// through its tips, which pass the centre at a distance of cos 72 degrees.
bool InsideStar(Point p) {
  constexpr std::array<Point, 5> kNormals = {{{0, 1},
                                              {0.95105652, 0.30901699},
                                              {0.58778525, -0.80901699},
                                              {-0.58778525, -0.80901699},
                                              {-0.95105652, 0.30901699}}};
  int inside = 0;
  for (const Point& n : kNormals) inside += p.u * n.u + p.v * n.v <= 0.30901699;
  return inside >= 4;
}

// Whether `p` is inside `shape`, which fits the unit circle; v points down.
bool Inside(Shape shape, Point p) {
  const double u = std::abs(p.u);
  const double v = std::abs(p.v);
  const double r2 = u * u + v * v;
  switch (shape) {
    case kCircle:
      return r2 <= 0.72;
    case kSquare:
      return std::max(u, v) <= 0.74;
    case kTriangle:
      return p.v <= 0.6 && u <= (p.v + 1) * 0.577;
    case kCross:
      return std::min(u, v) <= 0.25 && std::max(u, v) <= 0.95;
    case kRing:
      return r2 <= 0.9 && r2 >= 0.3;
    case kStar:
      return InsideStar(p);
    case kBar:
      return u <= 0.97 && v <= 0.24;
    case kDiamond:
      return u / 0.55 + v <= 1;
    case kShapes:
      break;
  }
  return false;
}

bool Painted(Texture texture, Point p) {
  constexpr double kStripe = 0.38;
  const bool row = static_cast<int>(std::floor(p.v / kStripe)) & 1;
  const bool column = static_cast<int>(std::floor(p.u / kStripe)) & 1;
  switch (texture) {
    case kSolid:
      return true;
    case kRows:
      return row;
    case kColumns:
      return column;
    case kChecks:
      return row != column;
    case kTextures:
      break;
  }
  return true;
}

// Where the shape lies: maps a pixel position to the shape's own coordinates.
struct Pose {
  double x, y, radius, cosine, sine;

  Pose(api::Size size, CounterRandom& random) {
    const double side = std::min(size.height, size.width);
    radius = side * random.Uniform(0.32, 0.44);
    x = size.width / 2.0 + (size.width / 2.0 - radius) * random.Uniform(-0.6, 0.6);
    y = size.height / 2.0 + (size.height / 2.0 - radius) * random.Uniform(-0.6, 0.6);
    // Up to 17 degrees either way by t = tan(angle / 2): a square stays apart from a diamond.
    const double t = random.Uniform(-0.15, 0.15);
    cosine = (1 - t * t) / (1 + t * t);
    sine = 2 * t / (1 + t * t);
  }

  Point At(double px, double py) const {
    const double dx = (px - x) / radius;
    const double dy = (py - y) / radius;
    return {dx * cosine + dy * sine, dy * cosine - dx * sine};
  }
};

// How much of a pixel the paint and the unpainted gaps of a texture cover, each 0..1.
struct Coverage {
  double paint = 0;
  double gap = 0;
};

Coverage Cover(Shape shape, Texture texture, const Pose& pose, int32_t x, int32_t y) {
  constexpr int kGrid = 3;
  Coverage cover;
  for (int i = 0; i < kGrid * kGrid; ++i) {
    const int row = i / kGrid;
    const int column = i % kGrid;
    const Point p = pose.At(x + (column + 0.5) / kGrid, y + (row + 0.5) / kGrid);
    if (!Inside(shape, p)) continue;
    (Painted(texture, p) ? cover.paint : cover.gap) += 1.0 / (kGrid * kGrid);
  }
  return cover;
}

uint8_t ToByte(double value) { return static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0)); }

struct Paint {
  Colour background, foreground, gap;
};

void Draw(Shape shape, Texture texture, const Paint& paint, api::Size size, int channels,
          CounterRandom& random, std::vector<uint8_t>* pixels) {
  const Pose pose(size, random);
  const double noise = random.Uniform(4, 14);
  // The background grows lighter along a random direction, so no level of grey is a background.
  const double slope_x = random.Uniform(-25, 25) / size.width;
  const double slope_y = random.Uniform(-25, 25) / size.height;
  pixels->resize(static_cast<size_t>(size.height) * size.width * channels);
  uint8_t* out = pixels->data();
  for (int32_t y = 0; y < size.height; ++y) {
    for (int32_t x = 0; x < size.width; ++x) {
      const Coverage cover = Cover(shape, texture, pose, x, y);
      const double shade = slope_x * x + slope_y * y;
      for (int c = 0; c < channels; ++c) {
        const double bare = (paint.background[c] + shade) * (1 - cover.paint - cover.gap);
        const double value = bare + paint.foreground[c] * cover.paint + paint.gap[c] * cover.gap;
        *out++ = ToByte(value + random.Uniform(-noise, noise));
      }
    }
  }
}

}  // namespace

std::string ShapeClassName(int32_t label) {
  return absl::StrCat(kColourNames[VariantOf(label)], "-", kShapeNames[ShapeOf(label)]);
}

void DrawColourShape(int32_t label, api::Size size, CounterRandom random,
                     std::vector<uint8_t>* pixels) {
  const double brightness = random.Uniform(0.8, 1.0);
  const double grey = random.Uniform(30, 105);
  Paint paint{};
  for (int c = 0; c < 3; ++c) {
    paint.background[c] = grey + random.Uniform(-15, 15);
    paint.foreground[c] = kPalette[VariantOf(label)][c] * brightness;
  }
  Draw(ShapeOf(label), kSolid, paint, size, 3, random, pixels);
}

void DrawGreyShape(int32_t label, api::Size size, CounterRandom random,
                   std::vector<uint8_t>* pixels) {
  const int variant = VariantOf(label);
  const double dark = random.Uniform(15, 75);
  const double light = random.Uniform(165, 240);
  const bool light_on_dark = variant < kTextures;
  const double background = light_on_dark ? dark : light;
  const double foreground = light_on_dark ? light : dark;
  Paint paint{};
  paint.background[0] = background;
  paint.foreground[0] = foreground;
  paint.gap[0] = background + 0.3 * (foreground - background);
  Draw(ShapeOf(label), static_cast<Texture>(variant % kTextures), paint, size, 1, random, pixels);
}

}  // namespace hetero::source
