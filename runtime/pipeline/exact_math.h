#pragma once

#include <cstdint>

// The functions of libm that parameters need, from IEEE 754 basic operations only, so that every
// machine and every C library gives the same bits. Relative error below 1e-15.
namespace hetero::pipeline {

// e^x. 0 below -700, where the true value no longer matters to any weight; x <= 700.
double ExactExp(double x);

// Natural logarithm of a normal x > 0.
double ExactLog(double x);

// Sine and cosine of an angle in degrees, |degrees| < 2^30; exact at multiples of 90.
struct SinCos {
  double sin;
  double cos;
};
SinCos ExactSinCos(double degrees);

// Nearest integer, ties to even: Python's round().
int64_t RoundHalfEven(double x);

}  // namespace hetero::pipeline
