#include <cuda_bf16.h>

#include "runtime/train/gpu/convert_kernel.h"

namespace hetero::train::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65536;

template <typename Value>
__device__ Value Rounded(float value);
template <>
__device__ float Rounded<float>(float value) {
  return value;
}
template <>
__device__ __nv_bfloat16 Rounded<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

template <typename Value, PixelLayout kLayout>
__global__ void Convert(const uint8_t* __restrict__ bytes, int64_t count, int64_t pixels,
                        int channels, PixelScale scale, Value* __restrict__ out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const PixelSource source = SourceOf<kLayout>(i, pixels, channels);
    out[i] = Rounded<Value>(ScaledPixel(bytes[source.byte], scale, source.channel));
  }
}

template <typename Value>
cudaError_t Launch(const uint8_t* bytes, int64_t samples, int64_t pixels, int channels,
                   const PixelScale& scale, PixelLayout layout, Value* out, cudaStream_t stream) {
  const int64_t count = samples * pixels * channels;
  if (count == 0) return cudaSuccess;
  const int64_t wanted = (count + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks);
  if (layout == PixelLayout::kChannelsLast) {
    Convert<Value, PixelLayout::kChannelsLast>
        <<<blocks, kThreads, 0, stream>>>(bytes, count, pixels, channels, scale, out);
  } else {
    Convert<Value, PixelLayout::kChannelsFirst>
        <<<blocks, kThreads, 0, stream>>>(bytes, count, pixels, channels, scale, out);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t ConvertPixels(const uint8_t* bytes, int64_t samples, int64_t pixels, int channels,
                          const PixelScale& scale, PixelLayout layout, float* out,
                          cudaStream_t stream) {
  return Launch(bytes, samples, pixels, channels, scale, layout, out, stream);
}

cudaError_t ConvertPixelsToBfloat16(const uint8_t* bytes, int64_t samples, int64_t pixels,
                                    int channels, const PixelScale& scale, PixelLayout layout,
                                    void* out, cudaStream_t stream) {
  return Launch(bytes, samples, pixels, channels, scale, layout, static_cast<__nv_bfloat16*>(out),
                stream);
}

}  // namespace hetero::train::gpu
