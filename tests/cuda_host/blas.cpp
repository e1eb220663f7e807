// cuBLAS's functions. Products are computed, on the host: the order of storage and the sizes that the backend gives are right or wrong.
#include <cublas_v2.h>
#include <cuda_bf16.h>

#include <cstdlib>

#include "stand_in.hpp"

namespace {

using namespace stand_in;

struct handle {
  cudaStream_t stream;
  void* workspace;
  cublasMath_t math;
  cublasPointerMode_t pointers;
  cublasAtomicsMode_t atomics;
};
handle& of(cublasHandle_t h) { return *reinterpret_cast<handle*>(h); }
cublasStatus_t status_of(const char* call, cublasHandle_t h) {
  if (!now().blas.contains(h)) refuse(std::string(call) + " with a handle that is none");
  return fails(call) ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

std::size_t size_of(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
double load(const void* from, std::int64_t at, cudaDataType type) {
  if (type == CUDA_R_64F) return static_cast<const double*>(from)[at];
  if (type == CUDA_R_32F) return static_cast<const float*>(from)[at];
  return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[at]);
}
void store(void* to, std::int64_t at, cudaDataType type, double x) {
  if (type == CUDA_R_64F)
    static_cast<double*>(to)[at] = x;
  else if (type == CUDA_R_32F)
    static_cast<float*>(to)[at] = static_cast<float>(x);
  else
    static_cast<__nv_bfloat16*>(to)[at] = __float2bfloat16_rn(static_cast<float>(x));
}
bool in_memory(const void* x, std::int64_t rows, std::int64_t cols, std::int64_t leading, cudaDataType type) {
  return rows == 0 || cols == 0 || usable(x, static_cast<std::size_t>((cols - 1) * leading + rows) * size_of(type));
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* to) {
  if (now().capturing) refuse("cublasCreate during capture");
  if (fails("cublasCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  void* const made = std::calloc(1, sizeof(handle));
  now().blas.insert(made);
  *to = static_cast<cublasHandle_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t h) {
  const cublasStatus_t status = status_of("cublasDestroy", h);
  if (now().blas.erase(h) > 0) std::free(h);
  return status;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t h, cudaStream_t* to) {
  *to = of(h).stream;
  return status_of("cublasGetStream", h);
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t s) {
  of(h).stream = s, of(h).workspace = nullptr;  // as cuBLAS does
  return status_of("cublasSetStream", h);
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void* workspace, std::size_t bytes) {
  if (!usable(workspace, bytes) || reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
    refuse("cublasSetWorkspace: not memory of the device, or not aligned");
  of(h).workspace = workspace;
  return status_of("cublasSetWorkspace", h);
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t h, cublasPointerMode_t mode) {
  of(h).pointers = mode;
  return status_of("cublasSetPointerMode", h);
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t h, cublasPointerMode_t* to) {
  *to = of(h).pointers;
  return status_of("cublasGetPointerMode", h);
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t h, cublasAtomicsMode_t mode) {
  of(h).atomics = mode;
  return status_of("cublasSetAtomicsMode", h);
}
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t h, cublasAtomicsMode_t* to) {
  *to = of(h).atomics;
  return status_of("cublasGetAtomicsMode", h);
}
cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t mode) {
  of(h).math = mode;
  return status_of("cublasSetMathMode", h);
}
cublasStatus_t cublasGetMathMode(cublasHandle_t h, cublasMath_t* to) {
  *to = of(h).math;
  return status_of("cublasGetMathMode", h);
}
const char* cublasGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS_OF_THE_STAND_IN"; }
const char* cublasGetStatusString(cublasStatus_t) { return "made to fail"; }

cublasStatus_t cublasGemmEx_64(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, std::int64_t m, std::int64_t n,
                               std::int64_t k, const void* alpha, const void* a, cudaDataType at, std::int64_t lda,
                               const void* b, cudaDataType bt, std::int64_t ldb, const void* beta, void* c, cudaDataType ct,
                               std::int64_t ldc, cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (const cublasStatus_t status = status_of("cublasGemmEx", h); status != CUBLAS_STATUS_SUCCESS) return status;
  const bool plain_a = ta == CUBLAS_OP_N, plain_b = tb == CUBLAS_OP_N;
  const std::int64_t rows_a = plain_a ? m : k, cols_a = plain_a ? k : m, rows_b = plain_b ? k : n, cols_b = plain_b ? n : k;
  if (m < 0 || n < 0 || k < 0 || lda < rows_a || ldb < rows_b || ldc < m) {
    refuse("cublasGemmEx: sizes or leading dimensions");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!in_memory(a, rows_a, cols_a, lda, at) || !in_memory(b, rows_b, cols_b, ldb, bt) || !in_memory(c, m, n, ldc, ct))
    refuse("cublasGemmEx: a matrix reaches beyond its memory");
  if (of(h).workspace == nullptr) refuse("cublasGemmEx without a workspace of the backend's");
  constexpr unsigned exact = unsigned{CUBLAS_DEFAULT_MATH} | unsigned{CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION};
  if (static_cast<unsigned>(of(h).math) != exact || of(h).atomics != CUBLAS_ATOMICS_NOT_ALLOWED ||
      of(h).pointers != CUBLAS_POINTER_MODE_HOST || compute != (at == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F))
    refuse("cublasGemmEx in less than the precision of its operands");
  ++now().products;
  {
    const opened_memory own;
    const auto scale = [&](const void* x) { return load(x, 0, at == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F); };
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += load(a, plain_a ? i + l * lda : l + i * lda, at) * load(b, plain_b ? l + j * ldb : j + l * ldb, bt);
        const double old = scale(beta) != 0 ? scale(beta) * load(c, i + j * ldc, ct) : 0;
        store(c, i + j * ldc, ct, scale(alpha) * sum + old);
      }
  }
  enqueue(of(h).stream, "cublasGemmEx");
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
