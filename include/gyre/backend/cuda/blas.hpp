// Dense products by cuBLAS.
#pragma once

#if defined(__CUDACC__)

#include <cublas_v2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <gyre/backend/cuda/check.hpp>
#include <gyre/core/types.hpp>
#include <gyre/simt.hpp>

GYRE_BEGIN

namespace detail {

template <class T>
inline constexpr cudaDataType_t cublas_type = std::is_same_v<T, double>  ? CUDA_R_64F
                                              : std::is_same_v<T, float> ? CUDA_R_32F
                                                                         : CUDA_R_16BF;

/// A cuBLAS handle, its own or the user's, bound to a stream and to a workspace of ours: with cuBLAS's own, equal calls may differ
/// in their last bits, and a captured graph would allocate.
class blas {
 public:
  /// The user's handle gets its stream, its modes and cuBLAS's own workspace back in the end.
  blas(int device, cudaStream_t stream, cublasHandle_t handle, std::size_t workspace_bytes)
      : workspace_(device_memory(device, workspace_bytes, "cuBLAS's workspace")) {
    const device_scope scope(device);
    if (handle == nullptr) {
      check_cublas(cublasCreate(&handle), "cublasCreate");
      own_ = owned_blas(device, handle);
    } else {
      users_ = borrowed(handle);
    }
    handle_ = handle;
    check_cublas(cublasSetStream(handle, stream), "cublasSetStream");  // forgets the workspace, so it comes first
    check_cublas(cublasSetWorkspace(handle, workspace_.get(), workspace_bytes), "cublasSetWorkspace");
    check_cublas(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
    check_cublas(cublasSetMathMode(handle, math), "cublasSetMathMode");
    check_cublas(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
  }

  cublasHandle_t handle() const { return handle_; }

  /// c (m, n) (+)= op(a) op(b). cuBLAS stores by columns: in its eyes each of our matrices is its transpose, and so is the product,
  /// whose factors have changed places.
  template <class A, class C>
  void multiply(matrix_view<const A> a, bool transposed_a, matrix_view<const A> b, bool transposed_b, matrix_view<C> c,
                bool accumulate) const {
    using scale = std::conditional_t<std::is_same_v<A, double>, double, float>;
    constexpr cublasComputeType_t compute = std::is_same_v<A, double> ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    const scale one = 1, old = accumulate ? 1 : 0;
    check_cublas(
        cublasGemmEx_64(handle_, operation_of(transposed_b), operation_of(transposed_a), c.cols, c.rows,
                        transposed_a ? a.rows : a.cols, &one, b.data, cublas_type<A>, leading(b), a.data, cublas_type<A>,
                        leading(a), &old, c.data, cublas_type<C>, leading(c), compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }

 private:
  // fp32 is fp32, not TF32; sums of bf16 are fp32 to the end, also where a product is cut along its depth.
  static constexpr auto math =
      static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

  /// What the user's handle was set to.
  struct borrowed {
    cublasHandle_t handle = nullptr;
    cudaStream_t stream = nullptr;
    cublasPointerMode_t pointers{};
    cublasMath_t math{};
    cublasAtomicsMode_t atomics{};

    borrowed() = default;
    explicit borrowed(cublasHandle_t h) {
      check_cublas(cublasGetStream(h, &stream), "cublasGetStream");
      check_cublas(cublasGetPointerMode(h, &pointers), "cublasGetPointerMode");
      check_cublas(cublasGetMathMode(h, &math), "cublasGetMathMode");
      check_cublas(cublasGetAtomicsMode(h, &atomics), "cublasGetAtomicsMode");
      handle = h;
    }
    borrowed(borrowed&& other) noexcept : borrowed() { *this = std::move(other); }
    borrowed& operator=(borrowed&& other) noexcept {
      std::swap(handle, other.handle), std::swap(stream, other.stream), std::swap(pointers, other.pointers);
      std::swap(math, other.math), std::swap(atomics, other.atomics);
      return *this;
    }
    ~borrowed() {
      if (handle == nullptr) return;
      cublasSetStream(handle, stream), cublasSetPointerMode(handle, pointers);
      cublasSetMathMode(handle, math), cublasSetAtomicsMode(handle, atomics);
    }
  };
  static cublasOperation_t operation_of(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }
  template <class X>
  static std::int64_t leading(matrix_view<X> x) {
    return (std::max)({x.stride, x.cols, index{1}});  // the stride of a single row may be anything
  }

  owned_memory workspace_;
  owned_blas own_;
  borrowed users_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace detail

GYRE_END

#endif
