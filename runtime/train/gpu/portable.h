#pragma once

// Marks functions that run on the GPU and, in tests, on the CPU too.
#ifdef __CUDACC__
#define HETERO_HOST_DEVICE __host__ __device__
#else
#define HETERO_HOST_DEVICE
#endif
