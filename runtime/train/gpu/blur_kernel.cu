#include "runtime/train/gpu/blur_kernel.h"
#include "runtime/train/gpu/blur_value.h"

namespace hetero::train::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65536;

__global__ void AlongRows(const uint8_t* __restrict__ in, PictureBatch batch,
                          const uint16_t* __restrict__ weights, int radius,
                          uint16_t* __restrict__ out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t count = batch.bytes();
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride) {
    out[at] = BlurredAlongRow(in, batch, weights, radius, at);
  }
}

__global__ void AlongColumns(const uint16_t* __restrict__ in, PictureBatch batch,
                             const uint16_t* __restrict__ weights, int radius,
                             uint8_t* __restrict__ out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t count = batch.bytes();
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride) {
    out[at] = BlurredAlongColumn(in, batch, weights, radius, at);
  }
}

}  // namespace

cudaError_t Blur(const uint8_t* in, const PictureBatch& batch, const uint16_t* weights, int radius,
                 uint16_t* between, uint8_t* out, cudaStream_t stream) {
  if (batch.bytes() == 0) return cudaSuccess;
  const int64_t wanted = (batch.bytes() + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks);
  AlongRows<<<blocks, kThreads, 0, stream>>>(in, batch, weights, radius, between);
  AlongColumns<<<blocks, kThreads, 0, stream>>>(between, batch, weights, radius, out);
  return cudaGetLastError();
}

}  // namespace hetero::train::gpu
