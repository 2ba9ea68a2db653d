#include "runtime/pipeline/exact_math.h"

#include <bit>
#include <cmath>

namespace hetero::pipeline {
namespace {

// ln 2 in two parts; the first has 20 trailing zero bits, so that k * kLn2High is exact.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kLn2 = 6.93147180559945286227e-01;
constexpr double kSqrt2 = 1.41421356237309514547e+00;

// 2^k for k in the normal range.
double PowerOfTwo(int64_t k) { return std::bit_cast<double>(uint64_t(k + 1023) << 52); }

}  // namespace

double ExactExp(double x) {
  if (x < -700) return 0;
  const int64_t k = RoundHalfEven(x / kLn2);
  const double r = (x - double(k) * kLn2High) - double(k) * kLn2Low;
  // Taylor series in Horner form; |r| <= 0.35, so the 18th term is below 1e-24.
  double sum = 1;
  for (int n = 18; n >= 1; --n) sum = 1 + sum * r / n;
  return sum * PowerOfTwo(k);
}

double ExactLog(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = int64_t((bits >> 52) & 0x7ff) - 1023;
  double m = std::bit_cast<double>((bits & 0x000f'ffff'ffff'ffffULL) | (uint64_t{1023} << 52));
  if (m > kSqrt2) {
    m /= 2;
    ++exponent;
  }
  // log m = 2 artanh(s), s = (m - 1) / (m + 1), |s| <= 0.172.
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = 27; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return double(exponent) * kLn2High + (2 * s * sum + double(exponent) * kLn2Low);
}

SinCos ExactSinCos(double degrees) {
  constexpr double kRadians = 3.14159265358979323846e+00 / 180;
  const int64_t quarter = RoundHalfEven(degrees / 90);
  const double x = (degrees - double(quarter) * 90) * kRadians;
  const double square = x * x;
  // Taylor series in Horner form; |x| <= pi / 4, so the terms after the last are below 1e-19.
  double sin = 1, cos = 1;
  for (int n = 18; n >= 2; n -= 2) {
    cos = 1 - cos * square / (n * (n - 1));
    sin = 1 - sin * square / (n * (n + 1));
  }
  sin *= x;
  switch (quarter & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

int64_t RoundHalfEven(double x) {
  const double below = std::floor(x);
  const double rest = x - below;
  const int64_t whole = int64_t(below);
  if (rest < 0.5) return whole;
  if (rest > 0.5) return whole + 1;
  return whole + (whole & 1);
}

}  // namespace hetero::pipeline
