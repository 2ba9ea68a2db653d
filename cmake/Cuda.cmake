# The CUDA language and NCCL out of the wheels that scripts/setup.sh --cuda unpacks; no GPU, driver or installed toolkit
# is needed to build. -DHETERO_CUDA_TOOLKIT names another toolkit.
set(HETERO_CUDA_TOOLKIT "${LIBTORCH_ROOT}/nvidia/cu13" CACHE PATH "toolkit of the GPU build")
if(NOT DEFINED CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${HETERO_CUDA_TOOLKIT}/bin/nvcc" CACHE FILEPATH "CUDA compiler")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # A100, H100, and newer ones by translation at load time
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
# CMake 3.25's FindCUDAToolkit fails on toolkits without the old nvToolsExt; the runtime is all that is needed of it.
find_path(CUDART_INCLUDE_DIR cuda_runtime.h PATHS "${HETERO_CUDA_TOOLKIT}/include" NO_DEFAULT_PATH REQUIRED)
find_library(CUDART_LIBRARY cudart PATHS "${HETERO_CUDA_TOOLKIT}/lib" NO_DEFAULT_PATH REQUIRED)
add_library(hetero_cudart INTERFACE)
target_include_directories(hetero_cudart SYSTEM INTERFACE "${CUDART_INCLUDE_DIR}")
target_link_libraries(hetero_cudart INTERFACE "${CUDART_LIBRARY}")
find_path(NCCL_INCLUDE_DIR nccl.h PATHS "${LIBTORCH_ROOT}/nvidia/nccl/include" REQUIRED)
find_file(NCCL_LIBRARY libnccl.so.2 PATHS "${LIBTORCH_ROOT}/nvidia/nccl/lib" REQUIRED)
add_library(hetero_nccl INTERFACE)
target_include_directories(hetero_nccl SYSTEM INTERFACE "${NCCL_INCLUDE_DIR}"
                           "${CMAKE_SOURCE_DIR}/third_party/cuda_stub")
target_link_libraries(hetero_nccl INTERFACE hetero_cudart "${NCCL_LIBRARY}")
