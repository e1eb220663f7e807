// Attention of cuda in bf16, on emulated tensor cores and without, against fp64.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "suite.hpp"

namespace {

/// Of so many rows of bf16 in device memory, `offset` scalars behind an aligned address.
class bf16_rows {
 public:
  bf16_rows(gyre_test::shuffled_cuda& device, gyre::index rows, gyre::index cols, std::uint64_t salt, gyre::index offset)
      : device_(device),
        rows_(rows),
        cols_(cols),
        bytes_(2 * static_cast<std::size_t>(rows * cols + offset + 1)),
        memory_(device.allocate(bytes_)),
        data_(reinterpret_cast<__nv_bfloat16*>(memory_) + offset) {
    const gyre::random_stream stream(gyre::seed{salt}, gyre::purpose::task, 0);
    std::vector<float> x(static_cast<std::size_t>(rows * cols));
    stream.fill_normal(std::span<float>(x), gyre::counter{}, 1.0);
    for (std::size_t i = 0; i < x.size(); ++i) data_[i] = __float2bfloat16_rn(x[i]);
  }
  ~bf16_rows() { device_.deallocate(memory_, bytes_); }
  bf16_rows(const bf16_rows&) = delete;
  bf16_rows& operator=(const bf16_rows&) = delete;

  gyre::matrix_view<__nv_bfloat16> view() const { return {data_, rows_, cols_, cols_}; }
  gyre::matrix_view<const __nv_bfloat16> read() const { return view(); }
  double at(gyre::index i, gyre::index j) const { return static_cast<double>(__bfloat162float(data_[i * cols_ + j])); }
  void spoil(gyre::index first) {
    for (gyre::index i = first * cols_; i < rows_ * cols_; ++i) data_[i] = __float2bfloat16_rn(std::nanf(""));
  }
  std::vector<std::uint16_t> bits(gyre::index rows) const {
    std::vector<std::uint16_t> x(static_cast<std::size_t>(rows * cols_));
    std::memcpy(x.data(), data_, 2 * x.size());
    return x;
  }

 private:
  gyre_test::shuffled_cuda& device_;
  gyre::index rows_, cols_;
  std::size_t bytes_;
  std::byte* memory_;
  __nv_bfloat16* data_;
};

struct bf16_case {
  gyre::index length, kv_heads, group, width, offset = 0;
};

}  // namespace

TEST_CASE("attention of cuda in bf16 agrees with fp64", "[cuda_kernels]") {
  for (const bf16_case& c :
       {bf16_case{131, 1, 1, 64}, bf16_case{45, 2, 3, 128}, bf16_case{7, 1, 5, 64}, bf16_case{40, 1, 1, 40},
        bf16_case{40, 1, 2, 64, 1}, bf16_case{290, 1, 1, 64}, bf16_case{20, 1, 1, 256}}) {
    CAPTURE(c.length, c.kv_heads, c.group, c.width, c.offset);
    gyre_test::shuffled_cuda device;
    const gyre::index heads = c.kv_heads * c.group, wide = heads * c.width, narrow = c.kv_heads * c.width;
    const gyre::attention_shape shape{heads, c.kv_heads, c.width, 1 / std::sqrt(static_cast<double>(c.width))};
    bf16_rows q(device, c.length, wide, 1, c.offset), k(device, c.length, narrow, 2, c.offset),
        v(device, c.length, narrow, 3, c.offset), o(device, c.length, wide, 4, c.offset);
    std::byte* const memory = device.allocate(sizeof(float) * static_cast<std::size_t>(c.length * heads));
    float* const lse = reinterpret_cast<float*>(memory);
    device.attention(q.read(), k.read(), v.read(), gyre::batch_layout::uniform(1, c.length), shape, o.view(), lse);
    double worst = 0, worst_lse = 0;  // over their tolerances
    for (gyre::index i = 0; i < c.length; ++i)
      for (gyre::index h = 0; h < heads; ++h) {
        const gyre::index g = h / c.group;
        std::vector<double> p;
        double sum = 0, terms = 0;  // terms: the largest sum of absolute products of a score
        for (gyre::index j = 0; j <= i; ++j) {
          double score = 0, size = 0;
          for (gyre::index n = 0; n < c.width; ++n) {
            const double product = q.at(i, h * c.width + n) * k.at(j, g * c.width + n) * shape.scale;
            score += product, size += std::fabs(product);
          }
          p.push_back(std::exp(score));
          sum += p.back();
          terms = (std::max)(terms, size);
        }
        // fp32: sums of n terms as the contract has them, exponentials 4 eps. bf16, whose unit is 2^-8: the weight's rounding and
        // the result's.
        const double eps = std::ldexp(1, -23), n = static_cast<double>(c.width + i + 1),
                     of_weights = 2 * (2 * n * eps * terms + 4 * eps) + 2 * n * eps;
        for (gyre::index f = 0; f < c.width; ++f) {
          double exact = 0, size = 0;
          for (gyre::index j = 0; j <= i; ++j) {
            const double x = p[static_cast<std::size_t>(j)] / sum * v.at(j, g * c.width + f);
            exact += x, size += std::fabs(x);
          }
          const double tolerance =
              (of_weights + std::ldexp(1, -8)) * size + std::ldexp(1, -8) * (1 + of_weights) * std::fabs(exact);
          worst = (std::max)(worst, std::fabs(o.at(i, h * c.width + f) - exact) / tolerance);
        }
        worst_lse = (std::max)(
            worst_lse, std::fabs(lse[i * heads + h] - std::log(sum)) / (of_weights + 4 * eps * (1 + std::fabs(std::log(sum)))));
      }
    device.deallocate(memory, sizeof(float) * static_cast<std::size_t>(c.length * heads));
    CHECK(worst <= 1);
    CHECK(worst > 0);
    CHECK(worst_lse <= 1);
  }
}

TEST_CASE("attention of cuda in bf16 keeps its promises to the bit", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::index length = 270, width = 64, narrow = width, wide = 3 * narrow;
  const gyre::attention_shape shape{3, 1, width, 0.125};
  bf16_rows q(device, length, wide, 1, 0), k(device, length, narrow, 2, 0), v(device, length, narrow, 3, 0),
      o(device, length, wide, 4, 0), o2(device, length, wide, 4, 0), cached(device, length, wide, 5, 0),
      cache(device, length, 2 * narrow, 6, 0);
  const auto layout = gyre::batch_layout::uniform(1, length);
  float* const no_lse = nullptr;
  device.attention(q.read(), k.read(), v.read(), layout, shape, o.view(), no_lse);

  const std::vector<gyre::cache_lane<__nv_bfloat16>> lanes{{cache.view().data, length, nullptr}};
  const std::span<const gyre::cache_lane<__nv_bfloat16>> all(lanes);
  gyre::index past = 0;
  for (const gyre::index count : {70, 1, 2, 183, 1, 13}) {
    gyre::batch_layout some;
    some.add(count, past, 1);
    device.cache_append(k.read().slice(past, count), v.read().slice(past, count), some, all, gyre::index{0});
    device.cached_attention(q.read().slice(past, count), some, all, gyre::index{0}, shape, 0, cached.view().slice(past, count));
    past += count;
  }
  REQUIRE(past == length);
  CHECK(o.bits(length) == cached.bits(length));

  for (const gyre::index cut : {269, 250, 37, 3}) {
    CAPTURE(cut);
    q.spoil(cut), k.spoil(cut), v.spoil(cut);
    device.attention(q.read(), k.read(), v.read(), layout, shape, o2.view(), no_lse);
    CHECK(o.bits(cut) == o2.bits(cut));
    CHECK(std::isnan(o2.at(cut, 0)));
  }
}
